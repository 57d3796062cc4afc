"""The posterior of a Gaussian process: what infinitely wide Bayesian networks predict."""

import numpy as np

from ..._base.check import inputs
from ..._base.types import ArrayLike
from ..._run.blas import one_thread
from ..._run.memory import rows_that_fit
from ..._run.precision import in_float64
from ...dynamics.algorithms.spectral import Ridge
from ...dynamics.linear.factor import Cholesky
from ...kernels.base import AbstractKernel
from ..outputs.kernel_pair import KernelPair
from ..outputs.law import OutputLaw, Places
from .trained_gaussian import NewPoints, TrainedLaw


class PosteriorResult(OutputLaw):
    """The posterior of the noise-free function.

    **Fields:** `mean` (m,) or (m, out), like `y`; `cov` (m, m), the same for each output; `std` (m,);
    `log_marginal_likelihood` of the data, summed over outputs.
    """

    def __init__(self, law: TrainedLaw, x_new: np.ndarray):
        self._law, self._points = law, NewPoints(law, x_new)
        mean = self._points.start @ law.solution.coefficients
        self.mean = mean[:, 0] if law.vector else mean
        self.log_marginal_likelihood = _factor(law).log_evidence(law.y, law.solution.coefficients)

    @in_float64
    def _covariance(self) -> np.ndarray:
        with one_thread(len(self._law.x)):
            whitened = _factor(self._law).whiten(self._points.start.T)
            return self._points.prior - whitened.T @ whitened

    @in_float64
    def _variance(self) -> np.ndarray:
        """In pieces: nothing of size (m, m)."""
        found = np.array(self._law.pair.start.diag(self._points.x_new), np.float64)
        chunk = rows_that_fit(16 * len(self._law.x))
        for at in range(0, len(found), chunk):
            whitened = _factor(self._law).whiten(self._points.start[at : at + chunk].T)
            found[at : at + chunk] -= np.einsum("ij,ij->j", whitened, whitened)
        return found

    def _places(self) -> Places:
        return Places(self._points.x_new, self._law.x, self._law.y)

    @in_float64
    def predict(self, x_new: ArrayLike) -> "PosteriorResult":
        """The same posterior at other inputs `x_new`; the factor is reused."""
        return PosteriorResult(self._law, inputs(x_new, "x_new", self._law.x.shape[1:]))


def _factor(law: TrainedLaw) -> Cholesky:
    """That of K + noise."""
    found = law.factor(law.solution.algorithm)
    if not isinstance(found, Cholesky):
        raise ValueError(
            "the kernel matrix of `x` is singular to working accuracy (repeated rows?): "
            f"use `noise` > 0; got noise={law.noise}."
        )
    return found


def process_posterior(
    kernel: AbstractKernel, x: np.ndarray, y: np.ndarray, x_new: np.ndarray, noise: float, vector: bool
) -> PosteriorResult:
    """For checked arguments, `y` (n, out)."""
    law = TrainedLaw(KernelPair(kernel, kernel), x, y, Ridge(noise), vector, noise=noise)
    return PosteriorResult(law, x_new)
