"""Entropy numbers and the risk of learning from noisy data."""

import dataclasses

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, exact, setting
from .._claim import generator, sem, slope
from .._drawing import BLUE, GREY, ORANGE, loglog


@dataclasses.dataclass(frozen=True)
class EntropyAndRisk(Claim):
    """The risk of learning an ellipsoid from n noisy points follows the entropy balance bits(delta) = n delta^2."""

    source = "graduate course: entropy and widths"
    formula = "delta^2 ~ n^(-2s/(2s+1)) where eps_k = delta, k = n delta^2/noise^2, s the smoothness"

    smoothness: float = setting(1.0, "Half-axes fall as i^-s.", low=0.75, high=2.0)
    trials: int = setting(20, "Data sets.", low=6, high=200, quick=8)

    def run(self, seed: int) -> Result:
        rng, s = generator(seed, "data"), self.smoothness
        axes = np.arange(1, 301.0) ** -s
        sizes = np.array([50, 100, 200, 400, 800])
        bits = np.arange(1, 400)
        bounds = nk.geometry.ellipsoid_entropy(axes, bits)
        # The balance: the first number of bits k whose radius is below sqrt(k/n).
        balance = np.array([bounds.upper[np.argmax(bounds.upper <= np.sqrt(bits / n))] for n in sizes])
        risks = np.empty((self.trials, len(sizes)))
        for t in range(self.trials):
            for j, n in enumerate(sizes):
                phi = rng.normal(size=(n, len(axes)))
                # A hard member of the class: all of its length in the directions that n points just fail to see.
                edge = int(np.ceil(n ** (1 / (2 * s + 1))))
                truth = np.zeros(len(axes))
                truth[edge : 2 * edge] = axes[edge : 2 * edge] * rng.choice([-1.0, 1.0], edge) / np.sqrt(edge)
                y = phi @ truth + rng.normal(size=n)
                scaled = phi * axes
                kernel = scaled @ scaled.T
                found = axes * (scaled.T @ np.linalg.solve(kernel + np.eye(n), y))
                risks[t, j] = np.sum((found - truth) ** 2)
        mean = risks.mean(axis=0)
        powers = [slope(sizes, row) for row in risks]
        rate = -2 * s / (2 * s + 1)
        rows = (
            exact("power of n that the balance of entropy follows", rate, slope(sizes, balance**2), 0.15),
            exact("power of n that the risk follows", rate, np.mean(powers), 0.2),
            at_most("risk over the balance, at the most", 4.0, np.max(mean / balance**2)),
            at_least("risk over the balance, at the least", 1 / 20, np.min(mean / balance**2)),
            at_most("standard error of the power", 0.1, sem(powers)),
        )
        return Result(rows, {"n": sizes.astype(float), "risk": mean, "balance": balance**2})

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["n"], data["risk"], "o-", color=BLUE, label="risk of ridge regression")
        axes.plot(data["n"], data["balance"], "o-", color=ORANGE, label="balance of entropy, δ²")
        axes.plot(data["n"], data["n"] ** (-2 * self.smoothness / (2 * self.smoothness + 1)), "--", color=GREY, label="n^(-2s/(2s+1))")
        loglog(axes)
        axes.set(xlabel="points n", ylabel="squared error")
