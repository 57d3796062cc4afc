"""What gradients and steep directions have to do with each other."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._digits import hessian, on_the_way
from .._drawing import GRAY, ORANGE, Figure


class SteepGradients(Claim):
    """Gradients of small batches lie largely in the C steepest directions; those of all data leave them early."""

    source = "graduate course: Hessians of classifiers"
    formula = "|V^T g_B|^2 / |g_B|^2 >> C/P for batches B;   |V^T g|^2 / |g|^2 ~ 0 for descent of small rate"

    classes: int = setting(4, "Classes C: digits 0 to C - 1.", low=3, high=6)
    points: int = setting(200, "Images.", low=60, high=400, quick=120)
    width: int = setting(32, "Neurons in each of two hidden layers.", low=16, high=64, quick=24)
    batch: int = setting(8, "Images in a batch.", low=1, high=30)

    def run(self, seed: int) -> Result:
        steps = (0, 20, 80, 320)
        problem, states = on_the_way(seed, self.classes, self.points, self.width, steps)
        (net, x, y), rng, table = problem, generator(seed, "batches"), []
        for params in states:
            whole = hessian(problem, params)
            top = nk.geometry.top_eigenpairs(whole, self.classes).vectors
            chosen = [rng.choice(len(x), self.batch, replace=False) for _ in range(40)]
            shares = [nk.theory.gradient_share(hessian((net, x[b], y[b]), params), top) for b in chosen]
            table.append((np.mean(shares), nk.theory.gradient_share(whole, top), self.classes / len(top)))
        batches, full, chance = np.array(table).T
        rows = (
            at_least(
                "share of a batch's gradient, over chance, at the least", 30.0, np.min(batches / chance)
            ),
            at_least("share of a batch's gradient in the end", 0.2, batches[-1]),
            at_most("share of the whole gradient after 20 steps and later", 0.05, full[1:].max()),
        )
        return Result(rows, {"step": np.array(steps), "batches": batches, "all data": full, "chance": chance})

    figure = Figure(
        lambda data: data["step"] + 1, "share in the C steepest directions", xlabel="step + 1", log="xy"
    )
    figure.line("batches")
    figure.line("all data", ORANGE)
    figure.line("chance", GRAY)
