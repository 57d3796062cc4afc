"""A nearly-kernel method in the form of a kernel method, and where that form is right."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, exact, refuted, setting
from .._claim import slope
from .._drawing import BLUE, ORANGE, loglog
from ._problems import F, problem, solved, trained_outputs


class CompressedPrediction(Claim):
    """With more parameters than points, the kernel (f + f^E) f / 2 predicts direct optimization; k# does not."""

    source = "talk on the principles of deep learning theory: trained kernels"
    formula = "z = k_flat,BA (k_flat,AA)^-1 y,   k_flat = 1/2 (f + f^E) . f;   k# = (k + k^E)/2"
    erratum = Erratum(
        "talk on the principles of deep learning theory, lines 757 and 928",
        "one compressed prediction with k# for direct optimization, whatever the number of parameters",
        "with the inverse of k# itself, as in line 928; then it holds for as many points as parameters",
        "power of eps of the error, k#, as in line 928",
    )

    points: int = setting(6, "Training points; there are 11 features.", low=2, high=8)

    def run(self, seed: int) -> Result:
        eps, rule, data = np.geomspace(8e-3, 1e-3, 4), nk.DirectOptimization(), {}
        for n, name in ((self.points, "flat"), (self.points, "trained"), (F, "trained")):
            p, errors = problem(n, seed), []
            for e in eps:
                found = solved(rule, p, e).compressed_prediction(p.x_new, name)
                errors.append(np.linalg.norm(found - trained_outputs(rule, p, e)))
            data[f"{'k_flat' if name == 'flat' else 'k#'}, {n} points"] = np.array(errors)
        flat, sharp, square = (slope(eps, errors) for errors in data.values())
        rows = (
            exact("power of eps of the error, k_flat", 2, flat, 0.05),
            refuted("power of eps of the error, k#, as in line 928", 2, sharp, tolerance=0.2),
            exact("... which is", 1, sharp, 0.1),
            exact("... k# with as many points as parameters", 2, square, 0.05),
        )
        return Result(rows, {"eps": eps, **data})

    def draw(self, axes, result):
        for name, column in result.data.items():
            if name != "eps":
                color, line = (BLUE, "o-") if name.startswith("k_flat") else (ORANGE, "x--")
                axes.plot(result.data["eps"], column, line, color=color, label=name)
        loglog(axes)
        axes.set(xlabel="eps", ylabel="distance from the trained model")
