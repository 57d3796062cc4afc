"""Outliers of the Hessian after training with batches of several sizes."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import sem
from .._digits import digits, trained
from .._drawing import BLUE, Figure


class BatchOutliers(Claim):
    """Small batches leave smaller outliers in the Hessian than training on all data at the same learning rate."""

    source = "graduate course: Hessians of classifiers"
    formula = (
        "mean of the C largest eigenvalues at the end, over batch sizes, at equal rate and number of steps"
    )

    points: int = setting(96, "Images of three digits.", low=48, high=300, quick=60)
    steps: int = setting(3000, "Steps of training.", low=500, high=20_000, quick=1500)
    runs: int = setting(4, "Networks for each batch size.", low=3, high=20, quick=3)

    def run(self, seed: int) -> Result:
        import jax

        x, own = digits(3, self.points)
        y = np.eye(3)[own]
        net = nk.MLP(64, (24,), 3, "tanh", weight_var=1.0, parametrization="standard")
        sizes = np.array([2, 8, self.points])
        table, losses = np.empty((self.runs, 3)), np.empty((self.runs, 3))
        for run in range(self.runs):
            start = net.init(jax.random.key(seed * 100 + run))
            lr = 0.5 / nk.geometry.sharpness(net, start, x, y)
            for at, size in enumerate(sizes):
                params = trained(
                    net, start, x, y, nk.SGD(lr, int(size), self.steps), "squared", jax.random.key(run)
                )
                hessian = nk.geometry.Hessian(net, params, x, y)
                table[run, at] = nk.geometry.top_eigenpairs(hessian, 3).values.mean()
                losses[run, at] = 0.5 * np.sum((np.asarray(net(params, x)) - y) ** 2)
        ratio = table[:, 0] / table[:, 2]
        rows = (
            at_most("outliers of batches of 2 over those of all data", 0.98, ratio.mean(), sem(ratio)),
            at_most(
                "outliers of batches of 8 over those of all data", 1.0, np.mean(table[:, 1] / table[:, 2])
            ),
            at_most(
                "loss at the end over that of outputs 0, any batch size",
                0.1,
                losses.max() / (0.5 * np.sum(y**2)),
            ),
            at_least("outliers of batches of 2 over those of all data, at the least", 0.05, ratio.mean()),
        )
        return Result(
            rows, {"batch": sizes.astype(float), "outliers": table.mean(axis=0), "loss": losses.mean(axis=0)}
        )

    figure = Figure(
        "batch", "eigenvalues, over those of all data", xlabel="batch size", log="x", ylim=(0, None)
    )
    figure.line(lambda data: data["outliers"] / data["outliers"][-1], BLUE, label="mean of the C largest")
    figure.level(1)
