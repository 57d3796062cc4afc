"""The largest learning rate, and the best."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, exact, setting
from .._claim import generator
from .._drawing import BLUE, GRAY, GREEN


class StableRate(Claim):
    """Descent on a linear model converges below lr = 2/lam_max and fastest at 2/(lam_max + lam_min)."""

    source = "graduate course: learning rates"
    formula = (
        "worst factor per step: max |1 - lr lam|;  least at lr = 2/(lam_max + lam_min), 1 at lr = 2/lam_max"
    )

    points: int = setting(6, "Training points of an erf network of infinite width.", low=2, high=20)

    def run(self, seed: int) -> Result:
        x = generator(seed, "inputs").normal(size=(self.points, 4))
        net = nk.MLP(4, (8,), 1, "erf", weight_var=2.0, bias_var=0.1)
        rates = nk.statistics.learning_rates(net, x)
        kernel, e = nk.kernels.NTK(net)(x), generator(seed, "residual").normal(size=self.points)

        def factor(lr: float) -> float:
            """By which a residual shrinks in one step, late in training: by steps, with no spectrum."""
            residual = e
            for _ in range(3000):
                last = residual / np.linalg.norm(residual)
                residual = last - lr * kernel @ last
            return float(np.linalg.norm(residual))

        ratios = np.linspace(0.2, 1.1, 19)
        factors = np.array([factor(ratio * rates.stable) for ratio in ratios])
        rows = (
            exact("factor per step at the best rate", rates.contraction, factor(rates.best), 1e-3),
            at_least("factor at 0.9 of the best rate", rates.contraction, factor(0.9 * rates.best)),
            at_most("factor just below the stable rate", 1.0, factor(0.999 * rates.stable)),
            at_least("factor just above the stable rate", 1.0, factor(1.001 * rates.stable)),
        )
        best = np.array([rates.best / rates.stable])
        return Result(rows, {"lr / stable": ratios, "factor": factors, "best / stable": best})

    def draw(self, axes, result):
        data = result.data
        axes.plot(
            data["lr / stable"], 1 - data["factor"], "o-", ms=4, color=BLUE, label="1 - factor per step"
        )
        axes.axvline(data["best / stable"][0], color=GREEN, ls="--", label="best")
        axes.axhline(0, color=GRAY, lw=0.8)
        axes.set(xlabel="learning rate / (2/λ_max)", ylabel="part of the slowest mode removed per step")
