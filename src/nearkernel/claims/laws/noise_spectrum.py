"""Eigenvalues of noise."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, at_most, exact, refuted, setting
from .._claim import generator
from .._drawing import Figure


class NoiseSpectrum(Claim):
    """The eigenvalues of a covariance of pure noise fill the interval (1 - sqrt(q))^2 to (1 + sqrt(q))^2, by the law
    of Marchenko and Pastur."""

    source = "graduate course: spectra of random matrices"
    formula = "density sqrt((b - x)(x - a)) / (2 pi q x), a, b = (1 -+ sqrt(q))^2, q = N/M"

    erratum = Erratum(
        "graduate course, line 2576",
        "the density sqrt((b - x)(x - a)) / (4 pi x), with 2 x where q x is needed",
        "2 x stands for q x, so that one letter is lost; as it stands the density has the mass q/2, not 1",
        "share of eigenvalues in the interval, as in line 2576",
    )

    size: int = setting(1200, "Rows N.", low=100, high=3000, quick=600)
    ratio: float = setting(0.4, "q = N/M.", low=0.05, high=3.0)

    def run(self, seed: int) -> Result:
        columns = round(self.size / self.ratio)
        drawn = generator(seed, "noise").normal(size=(self.size, columns))
        found = np.linalg.eigvalsh(drawn @ drawn.T / columns)
        law = nk.theory.marchenko_pastur(self.size / columns)
        low, high = law.edges
        at = np.linspace(low, high, 30)
        share = np.array([(found <= point).mean() for point in at])
        theory = np.asarray(law.cdf(at))
        x = low + (high - low) * np.sin(np.linspace(0, np.pi / 2, 20_001)) ** 2
        density = np.sqrt((high - x) * (x - low)) / (4 * np.pi * x)
        inside = np.mean((found > 0.97 * low) & (found < 1.03 * high))
        rows = (
            exact("largest eigenvalue", high, found[-1], 0.03),
            exact("mean of squares", law.moment(2), (found**2).mean(), 0.02),
            at_most("distance of the distributions", 0.01, np.abs(share - theory).max()),
            refuted(
                "share of eigenvalues in the interval, as in line 2576",
                np.trapezoid(density, x),
                inside,
                tolerance=0.1,
            ),
            exact(
                "the same with q x in place of 2 x",
                np.trapezoid(2 / law.ratio * density, x),
                inside,
                0.01,
            ),
        )
        return Result(rows, {"eigenvalue": at, "theory": theory, "measured": share})

    figure = Figure("eigenvalue", "share below")
    figure.pair()
