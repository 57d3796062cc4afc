"""Learning a function about which nothing is known."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting, statistical
from .._claim import generator, sem
from .._drawing import BLUE, GRAY, Figure


class NoFreeLunch(Claim):
    """A function with independent values on more cells than points cannot be learned away from the points."""

    source = "graduate course: entropy and widths"
    formula = (
        "E[(f(x) - F(x))^2] = 1 + E[F(x)^2] >= 1 off the sample, for every learner F that sees m of N cells"
    )

    cells: int = setting(2000, "Cells N.", low=500, high=10_000)
    points: int = setting(200, "Points m that are seen.", low=50, high=400)
    trials: int = setting(40, "Functions.", low=10, high=500, quick=15)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "functions")
        centers = (np.arange(self.cells) + 0.5)[:, None] / self.cells
        kernels = {f"Laplace({scale:g})": nk.kernels.Laplace(scale) for scale in (1.0, 0.1, 0.01)}
        rows, means, spreads = [], [], []
        smooth = np.sin(7 * centers[:, 0])
        for name, kernel in kernels.items():
            errors, sizes, known = [], [], []
            for _ in range(self.trials):
                values, seen = rng.normal(size=self.cells), rng.permutation(self.cells)[: self.points]
                unseen = np.setdiff1d(np.arange(self.cells), seen)
                found = [
                    nk.theory.representer(kernel, centers[seen], f[seen], 0.1)(centers[unseen])
                    for f in (values, smooth)
                ]
                errors.append(np.mean((found[0] - values[unseen]) ** 2))
                sizes.append(1 + np.mean(found[0] ** 2))
                known.append(np.mean((found[1] - smooth[unseen]) ** 2) / np.var(smooth))
            away = np.array(errors) - sizes
            rows.append(
                statistical(f"error off the sample minus 1 + F^2, {name}", 0.0, away.mean(), sem(away))
            )
            rows.append(at_least(f"error off the sample, {name}", 1.0, np.mean(errors), sem(errors)))
            means.append(np.mean(errors))
            spreads.append(np.mean(known))
        rows.append(at_most("error of a smooth function, Laplace(1)", 0.01, spreads[0]))
        return Result(
            tuple(rows),
            {"scale": np.array([1.0, 0.1, 0.01]), "unknown": np.array(means), "smooth": np.array(spreads)},
        )

    figure = Figure(
        "scale", "error / variance, off the sample", xlabel="length scale of the kernel", log="xy"
    )
    figure.line("unknown", BLUE, label="independent values")
    figure.line("smooth", GRAY, label="a smooth function")
