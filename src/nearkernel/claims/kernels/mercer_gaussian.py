"""Eigenvalues of a kernel on a measure."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._drawing import Figure


class MercerGaussian(Claim):
    """The Gaussian kernel on a Gaussian measure has eigenvalues that fall as a geometric series."""

    source = "graduate course: kernels and RKHS, Mercer's theorem"
    formula = (
        "lam_i = sqrt(2a/A) (b/A)^i,  a = 1/(4 sigma^2), b = 1/(2 length^2), A = a + b + sqrt(a^2 + 2 a b)"
    )

    length: float = setting(0.8, "Length of the kernel.", low=0.4, high=3.0)
    sigma: float = setting(1.3, "Width of the measure.", low=0.4, high=2.0)

    def run(self, seed: int) -> Result:
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        kernel = nk.kernels.RBF(self.length)
        found = nk.theory.mercer(kernel, self.sigma * nodes[:, None], weights / weights.sum(), rank=8)
        a, b = 1 / (4 * self.sigma**2), 1 / (2 * self.length**2)
        total, number = a + b + np.sqrt(a**2 + 2 * a * b), np.arange(8)
        theory = np.sqrt(2 * a / total) * (b / total) ** number
        rows = [exact(f"eigenvalue {i}", theory[i], found.values[i], 1e-6) for i in (0, 1, 3, 6)]
        return Result(tuple(rows), {"number": number, "theory": theory, "measured": found.values})

    figure = Figure("number", "eigenvalue", log="y")
    figure.pair()
