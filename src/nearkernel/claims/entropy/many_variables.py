"""Codes for Lipschitz functions of several variables."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, exact, setting
from .._claim import generator, slope
from .._drawing import BLUE, GREEN, ORANGE, Figure


class ManyVariables(Claim):
    """Bits for a Lipschitz function of d variables grow as (1/error)^d."""

    source = "graduate course: entropy and widths"
    formula = "constant length/(2 m) <= eps_n <= 3 constant length/(2 k),   k^d <= n + 1,   m^d > n"

    most: int = setting(60_000, "Largest number of bits.", low=4000, high=100_000)
    functions: int = setting(200, "Functions that are coded.", low=20, high=2000, quick=60)

    def run(self, seed: int) -> Result:
        bits = np.unique(np.geomspace(64, self.most, 20).astype(int))
        rows, data = [], {"bits": bits.astype(float)}
        for d in (1, 2, 3):
            found = nk.theory.lipschitz_entropy(bits, dim=d)
            rows.append(exact(f"power of the bits, {d} variables", -1 / d, slope(bits, found.upper), 0.1))
            data[f"{d} variables"] = found.upper
            rows.append(
                at_most(f"upper over lower bound, {d} variables", 8.0, np.max(found.upper / found.lower))
            )
        worst = self._coded(seed, 8)
        bound = nk.theory.lipschitz_entropy([63], dim=2)
        rows.append(at_most("error of the code of 63 bits, two variables", bound.upper[0], worst))
        rows.append(at_least("its error over a third of the lower bound", 1.0, worst / (bound.lower[0] / 3)))
        return Result(tuple(rows), data)

    def _coded(self, seed: int, k: int) -> float:
        """The worst error of one bit a cell, over minima of random cones, which are Lipschitz and 0 at 0."""
        rng, worst = generator(seed, "cones"), 0.0
        grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 65)] * 2, indexing="ij"), axis=-1)
        cells = np.minimum((grid * k).astype(int), k - 1)
        walk = [(i, j if i % 2 == 0 else k - 1 - j) for i in range(k) for j in range(k)]
        for _ in range(self.functions):
            tips, heights = rng.uniform(size=(12, 2)), rng.uniform(size=12)
            value = lambda at, t=tips, h=heights: np.min(
                np.abs(at[..., None, :] - t).max(axis=-1) + h, axis=-1
            )
            function = lambda at, v=value: v(at) - v(np.zeros(2))
            code, now = np.zeros((k, k)), 0.0
            for step, (i, j) in enumerate(walk):
                truth = function((np.array([i, j]) + 0.5) / k)
                now += (np.sign(truth - now) or 1.0) / k if step else 0.0
                code[i, j] = now
            worst = max(worst, float(np.abs(function(grid) - code[cells[..., 0], cells[..., 1]]).max()))
        return worst

    figure = Figure("bits", "entropy number", log="xy")
    figure.line("1 variables", BLUE, "-")
    figure.line("2 variables", ORANGE, "-")
    figure.line("3 variables", GREEN, "-")
