"""The whole law of gradients, not only moments."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, setting, statistical
from .._claim import sem
from .._drawing import BLUE, GRAY, ORANGE
from .._drawn import drawn


class GradientLaw(Claim):
    """The squared input gradient of a random relu network is a product of chi-squares, nearly log-normal."""

    source = "graduate course: exploding and vanishing gradients"
    formula = "|dz/dx|^2 ~ product over layers of chi-square laws with binomial numbers;  beta = 5 sum 1/n_l"

    width: int = setting(12, "Neurons in each hidden layer.", low=4, high=64)
    depth: int = setting(6, "Hidden layers.", low=1, high=20)
    networks: int = setting(20_000, "Networks that are drawn.", low=500, high=200_000, quick=5000)

    def run(self, seed: int) -> Result:
        import scipy.stats

        net = nk.MLP(8, (self.width,) * self.depth, 1, "relu", weight_var=2.0)
        law = nk.theory.input_gradient(net)
        x = np.ones((1, 8))
        squares = drawn(net, x, self.networks, seed, lambda nets: np.sum(nets.gradient[:, 0, 0] ** 2, axis=1))
        alive = squares > 0
        logs = np.log(np.maximum(squares, 1e-300))
        test = scipy.stats.kstest(logs, law.cdf)
        rows = (
            at_least("p-value of Kolmogorov and Smirnov", 1e-4, test.pvalue),
            statistical("chance of no gradient at all", law.dead, 1 - alive.mean(), max(sem(alive), 1e-9)),
            statistical("mean of the logarithm", law.log_mean, logs[alive].mean(), sem(logs[alive])),
            statistical(
                "variance of the logarithm",
                law.log_var,
                logs[alive].var(),
                sem((logs[alive] - logs[alive].mean()) ** 2),
            ),
        )
        grid = np.linspace(law.log_mean - 4 * law.log_var**0.5, law.log_mean + 3.5 * law.log_var**0.5, 41)
        counts = np.histogram(logs, grid)[0] / self.networks / np.diff(grid)
        middle = (grid[1:] + grid[:-1]) / 2
        normal = scipy.stats.norm.pdf(middle, law.normal[0], law.normal[1] ** 0.5)
        return Result(
            rows, {"ln gradient": middle, "theory": law.pdf(middle), "measured": counts, "normal": normal}
        )

    def draw(self, axes, result):
        data = result.data
        width = np.diff(data["ln gradient"])[0]
        axes.bar(data["ln gradient"], data["measured"], width, color=GRAY, alpha=0.35, label="drawn")
        axes.plot(data["ln gradient"], data["theory"], color=BLUE, label="exact law")
        axes.plot(
            data["ln gradient"], data["normal"], "--", color=ORANGE, label="normal law of variance beta"
        )
        axes.set(xlabel="ln |dz/dx|²", ylabel="density")
