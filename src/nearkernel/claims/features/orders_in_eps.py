"""How much better each order of a quadratic model's prediction is."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import slope
from .._drawing import BLUE, GRAY, GREEN, Figure
from ._problems import problem, solved, trained_outputs


class OrdersInEps(Claim):
    """Predictions of a trained quadratic model are wrong by eps, eps^2 and eps^3 at orders 0, 1 and 2."""

    source = "talk on the principles of deep learning theory: nearly-kernel methods"
    formula = "z = z^F + eps z^I + eps^2 z^II + O(eps^3),   z^F = k K^-1 y, z^I from the meta-kernel mu"

    points: int = setting(6, "Training points; there are 11 features.", low=2, high=8)
    lr: float = setting(0.3, "Learning rate; the largest eigenvalue of the kernel is 4.", low=0.02, high=0.45)

    def run(self, seed: int) -> Result:
        p, eps = problem(self.points, seed), np.geomspace(1e-2, 6.25e-4, 4)
        descent = nk.GradientDescent(self.lr)
        errors = []
        for e in eps:
            terms, real = (
                solved(descent, p, e, order=2).predict(p.x_new).terms,
                trained_outputs(descent, p, e),
            )
            errors.append([np.linalg.norm(sum(terms[: k + 1]) - real) for k in range(3)])
        columns = np.array(errors).T
        rows = [
            exact(f"power of eps, order {k}", k + 1, slope(eps[1:], columns[k, 1:]), 0.05) for k in range(3)
        ]
        return Result(tuple(rows), {"eps": eps} | {f"error of order {k}": columns[k] for k in range(3)})

    figure = Figure("eps", "distance from the trained model", log="xy")
    figure.line("error of order 0", GRAY, label="order 0")
    figure.line("error of order 1", BLUE, label="order 1")
    figure.line("error of order 2", GREEN, label="order 2")
