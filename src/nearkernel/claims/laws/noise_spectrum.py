"""Eigenvalues of noise."""

import dataclasses

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, exact, setting
from .._claim import generator
from .._drawing import pair


@dataclasses.dataclass(frozen=True)
class NoiseSpectrum(Claim):
    """The eigenvalues of a covariance of pure noise fill the interval (1 - sqrt(q))^2 to (1 + sqrt(q))^2, by the law
    of Marchenko and Pastur."""

    source = "graduate course: spectra of random matrices"
    formula = "density sqrt((b - x)(x - a)) / (2 pi q x), a, b = (1 -+ sqrt(q))^2, q = N/M"

    size: int = setting(1200, "Rows N.", low=100, high=3000, quick=600)
    ratio: float = setting(0.4, "q = N/M.", low=0.05, high=3.0)

    def run(self, seed: int) -> Result:
        columns = round(self.size / self.ratio)
        drawn = generator(seed, "noise").normal(size=(self.size, columns))
        found = np.linalg.eigvalsh(drawn @ drawn.T / columns)
        law = nk.statistics.marchenko_pastur(self.size / columns)
        low, high = law.edges
        at = np.linspace(low, high, 30)
        share = np.array([(found <= point).mean() for point in at])
        theory = np.asarray(law.cdf(at))
        rows = (
            exact("largest eigenvalue", high, found[-1], 0.03),
            exact("mean of squares", law.moment(2), (found**2).mean(), 0.02),
            at_most("distance of the distributions", 0.01, np.abs(share - theory).max()),
        )
        return Result(rows, {"eigenvalue": at, "theory": theory, "measured": share})

    def draw(self, axes, result):
        data = result.data
        pair(axes, data["eigenvalue"], data["theory"], data["measured"])
        axes.set(xlabel="eigenvalue", ylabel="share below")
