"""A loss that is never convex."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._digits import hessian, on_the_way
from .._drawing import BLUE, ORANGE, Figure


class NegativeEdge(Claim):
    """The Hessian of a classifier has negative eigenvalues all along, which shrink beside the largest one."""

    source = "graduate course: Hessians of classifiers"
    formula = "lam_min(t) < 0 at every t;   |lam_min| / lam_max falls"

    classes: int = setting(4, "Classes: digits 0, 1, ...", low=3, high=6)
    points: int = setting(200, "Images.", low=60, high=400, quick=120)
    width: int = setting(32, "Neurons in each of two hidden layers.", low=16, high=64, quick=24)

    def run(self, seed: int) -> Result:
        steps = (0, 20, 80, 320)
        problem, states = on_the_way(seed, self.classes, self.points, self.width, steps)
        ends = np.array(
            [
                [
                    nk.geometry.top_eigenpairs(hessian(problem, p), 1, which).values[0]
                    for which in ("smallest", "largest")
                ]
                for p in states
            ]
        )
        least, most = ends.T
        net, x, y = problem
        errors = np.mean(np.argmax(np.asarray(net(states[-1], x)), axis=1) != np.argmax(y, axis=1))
        share = -least / most
        rows = (
            at_most("share of errors in the end", 0.02, errors),
            at_most("largest of the smallest eigenvalues, over the largest", -1e-3, (least / most).max()),
            at_least("size of the left edge over the right, start over end", 3.0, share[0] / share[-1]),
        )
        return Result(rows, {"step": np.array(steps), "smallest": least, "largest": most})

    figure = Figure(lambda data: data["step"] + 1, "eigenvalue of the Hessian", xlabel="step + 1", log="xy")
    figure.line("largest", ORANGE)
    figure.line(lambda data: -data["smallest"], BLUE, "v-", "minus the smallest")
