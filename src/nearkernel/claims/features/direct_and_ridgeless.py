"""Two rules that agree for linear models and not beyond."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, unlike
from .._claim import slope
from .._drawing import ORANGE, Figure
from ._problems import problem, solved, trained_outputs


class DirectAndRidgeless(Claim):
    """With more parameters than points, a vanishing ridge does not end at direct optimization."""

    source = "talk on the principles of deep learning theory: algorithm projectors"
    formula = (
        "Z_A = 0 for direct optimization (weights in the span of features), K^-1 x K^-1 for the least norm"
    )

    points: int = setting(6, "Training points; there are 11 features.", low=2, high=8)

    def run(self, seed: int) -> Result:
        p, eps = problem(self.points, seed), np.geomspace(8e-3, 1e-3, 4)
        least = nk.Ridge(0.0)
        errors: dict[str, list[float]] = {"least norm": [], "direct": []}
        for e in eps:
            real = trained_outputs(least, p, e)
            for name, rule in (("least norm", least), ("direct", nk.DirectOptimization())):
                errors[name].append(float(np.linalg.norm(solved(rule, p, e).predict(p.x_new).mean - real)))
        ridges = np.array([1e-2, 3e-3, 1e-3])
        real = trained_outputs(least, p, eps[0])
        away = [np.linalg.norm(trained_outputs(nk.Ridge(r), p, eps[0]) - real) for r in ridges]
        rows = (
            exact("power of eps: error of the least-norm rule", 2, slope(eps, errors["least norm"]), 0.05),
            unlike("the same of direct optimization", 2, slope(eps, errors["direct"]), tolerance=0.2),
            exact("power of eps that it has", 1, slope(eps, errors["direct"]), 0.05),
            exact("power of the ridge: its distance from the least norm", 1, slope(ridges, away), 0.05),
        )
        data = {"eps": eps} | {name: np.array(column) for name, column in errors.items()}
        return Result(rows, data)

    figure = Figure("eps", "distance from the ridgeless limit", log="xy")
    figure.line("least norm")
    figure.line("direct", ORANGE, "x--", "direct optimization")
