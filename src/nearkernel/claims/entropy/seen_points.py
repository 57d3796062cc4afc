"""Schemes that see a function at m points only."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator, sem, slope
from .._drawing import GRAY, ORANGE, Figure


class SeenPoints(Claim):
    """Values at m even points are worth m free numbers up to a constant; values at random points lose a logarithm."""

    source = "graduate course: entropy and widths"
    formula = (
        "sup {|f| : |f|_k <= 1, f(x_1..m) = 0} against delta_m = s_(m+1), for the Laplace kernel on [0, 1]"
    )

    grid: int = setting(600, "Points of the interval.", low=200, high=2000, quick=300)
    trials: int = setting(12, "Random sets of points.", low=4, high=100, quick=5)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "points")
        x = (np.arange(self.grid) + 0.5)[:, None] / self.grid
        kernel = nk.kernels.Laplace(1.0)
        sizes = np.array([4, 8, 16, 32, 64])
        free = np.array([nk.theory.ellipsoid_width(nk.theory.kernel_axes(kernel, x), int(m)) for m in sizes])
        even = np.array(
            [nk.theory.sampling_width(kernel, (np.arange(m) + 0.5)[:, None] / m, x) for m in sizes]
        )
        random = np.array(
            [
                [nk.theory.sampling_width(kernel, rng.uniform(size=(m, 1)), x) for m in sizes]
                for _ in range(self.trials)
            ]
        )
        mean, powers = random.mean(axis=0), [slope(sizes, row / free) for row in random]
        rows = (
            at_least("worst error of even points over the width, at the least", 1.0, np.min(even / free)),
            at_most("worst error of even points over the width, at the most", 2.0, np.max(even / free)),
            at_most("power of m that this ratio grows by, even points", 0.1, slope(sizes, even / free)),
            at_least("ratio of random points over that of even ones, 64 points", 1.5, mean[-1] / even[-1]),
            at_most("power of m that the ratio grows by, random points", 0.5, np.mean(powers), sem(powers)),
        )
        return Result(
            rows,
            {"points": sizes.astype(float), "any numbers": free, "even points": even, "random points": mean},
        )

    figure = Figure("points", "worst error", xlabel="numbers that are seen", log="xy")
    figure.line("any numbers", GRAY)
    figure.line("even points")
    figure.line("random points", ORANGE)
