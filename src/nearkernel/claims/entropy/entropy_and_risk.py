"""Entropy numbers and the risk of learning from noisy data."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, exact, setting
from .._claim import generator, sem, slope
from .._drawing import BLUE, GRAY, ORANGE, loglog


class EntropyAndRisk(Claim):
    """The risk of learning an ellipsoid from n noisy points follows the entropy balance bits(delta) = n delta^2."""

    source = "graduate course: entropy and widths"
    formula = "delta^2 ~ n^(-2s/(2s+1)) where eps_k = delta, k = n delta^2/noise^2, s the smoothness"

    smoothness: float = setting(1.0, "Half-axes fall as i^-s.", low=0.75, high=2.0)
    trials: int = setting(20, "Data sets.", low=6, high=200, quick=8)

    def run(self, seed: int) -> Result:
        rng, s = generator(seed, "data"), self.smoothness
        axes = np.arange(1, 201.0) ** -s
        sizes = np.array([50, 100, 200, 400, 800])
        bits = np.arange(1, 400)
        bounds = nk.theory.ellipsoid_entropy(axes, bits)
        # The balance: where the radius falls below sqrt(bits/n), between two whole numbers of bits.
        excess = np.log(bounds.upper) - 0.5 * np.log(bits)
        balance = np.array([np.exp(np.interp(0.5 * np.log(n), -excess, np.log(bits))) / n for n in sizes])
        risks = np.empty((self.trials, len(sizes)))
        for t in range(self.trials):
            phi = rng.normal(size=(sizes[-1], len(axes)))
            for j, n in enumerate(sizes):
                scaled = phi[:n] * axes
                # Ridge regression is linear in the data: its error is a bias, worst over the ellipsoid, and noise.
                ridge = np.linalg.solve(scaled.T @ scaled + np.eye(len(axes)), scaled.T)
                bias = axes[:, None] * (ridge @ scaled - np.eye(len(axes)))
                risks[t, j] = np.linalg.norm(bias, 2) ** 2 + np.sum((axes[:, None] * ridge) ** 2)
        mean = risks.mean(axis=0)
        powers = [slope(sizes, row) for row in risks]
        rate = -2 * s / (2 * s + 1)
        rows = (
            exact("power of n that the balance of entropy follows", rate, slope(sizes, balance), 0.15),
            exact(
                "power of n that the risk follows, beside that of the balance",
                slope(sizes, balance),
                np.mean(powers),
                0.15,
            ),
            at_most("worst risk over the balance, at the most", 1.5, np.max(mean / balance)),
            at_least("worst risk over the balance, at the least", 0.6, np.min(mean / balance)),
            at_most("standard error of the power", 0.05, sem(powers)),
        )
        return Result(rows, {"n": sizes.astype(float), "risk": mean, "balance": balance})

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["n"], data["risk"], "o-", color=BLUE, label="risk of ridge regression")
        axes.plot(data["n"], data["balance"], "o-", color=ORANGE, label="balance of entropy, δ²")
        axes.plot(
            data["n"],
            data["n"] ** (-2 * self.smoothness / (2 * self.smoothness + 1)),
            "--",
            color=GRAY,
            label="n^(-2s/(2s+1))",
        )
        loglog(axes)
        axes.set(xlabel="points n", ylabel="squared error")
