"""The length of a product of Gaussian matrices."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, refuted, setting, statistical
from .._claim import generator, sem
from .._drawing import Figure


class GaussianProduct(Claim):
    """The length of a product of L Gaussian matrices of width n is log-normal with mean -L/2n and variance L/2n."""

    source = "graduate course: Bayesian deep linear networks"
    formula = "|W_L ... W_1|^2 = product of chi^2_N / N; ln|theta| ~ N(-sum 1/2N, sum 1/2N) for wide layers"
    erratum = Erratum(
        "graduate course, line 2600",
        "ln|theta| has mean -L/4n and variance L/4n",
        "to leading order for wide layers; line 2593 takes 1/n for the variance of chi^2_n / n, which is 2/n",
        "variance of ln|theta|, as in line 2600",
    )

    width: int = setting(30, "Width of the layers.", low=2, high=100)
    depth: int = setting(20, "How many matrices.", low=1, high=50)
    products: int = setting(4000, "Products that are drawn.", low=100, high=20_000, quick=1500)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "matrices")
        vectors = np.ones((self.products, 1, self.width)) / self.width**0.5
        for _ in range(self.depth):
            drawn = rng.normal(size=(self.products, self.width, self.width)) / self.width**0.5
            vectors = vectors @ drawn
        length = 0.5 * np.log((vectors**2).sum(axis=(1, 2)))
        law = nk.theory.gaussian_product((self.width,) * self.depth)
        spread, quarter = (length - length.mean()) ** 2, self.depth / self.width / 4
        rows = (
            statistical("mean of ln|theta|, exact law", law.log_mean / 2, length.mean(), sem(length)),
            statistical("variance of ln|theta|, exact law", law.log_var / 4, length.var(ddof=1), sem(spread)),
            refuted("mean of ln|theta|, as in line 2600", -quarter, length.mean(), sem=sem(length)),
            refuted("variance of ln|theta|, as in line 2600", quarter, length.var(ddof=1), sem=sem(spread)),
        )
        low, high = np.quantile(length, (0.01, 0.99))
        at = np.linspace(low, high, 25)
        share = np.array([(length < point).mean() for point in at])
        error = np.sqrt(share * (1 - share) / self.products)
        theory = np.asarray(law.cdf(2 * at))
        return Result(rows, {"length": at, "theory": theory, "measured": share, "sem": error})

    figure = Figure("length", "share of products below", xlabel="ln of the length of a product")
    figure.pair()
