"""Gaussian-process regression with any kernel."""

import math
from typing import Any, overload

import numpy as np

from .._blas import one_thread
from .._check import inputs, positive, targets
from .._memory import rows_that_fit
from .._precision import in_float64
from ..dynamics._factor import cholesky
from ..kernels import AbstractKernel
from ..kernels._base import require_kernel
from ..models import MLP
from ._finite_posterior import FinitePosterior, finite_posterior
from ._gaussian import GaussianOutputs, Places


class PosteriorResult(GaussianOutputs):
    """The posterior of the noise-free function.

    **Fields:** `mean` (m,) or (m, out), as `y`; `cov` (m, m), the same for each output; `std` (m,);
    `log_marginal_likelihood` of the data, summed over outputs.
    """

    def __init__(self, training: "_Training", x_new: np.ndarray):
        self._training, self._x_new = training, x_new
        self._cross = training.kernel.entries(x_new, training.x)
        mean = self._cross @ training.weights
        self.mean = mean[:, 0] if training.vector else mean
        self.log_marginal_likelihood = training.log_marginal_likelihood

    @in_float64
    def _covariance(self) -> np.ndarray:
        prior = self._training.kernel.entries(self._x_new, None)
        with one_thread(len(self._cross.T)):
            whitened = self._training.factor.whiten(self._cross.T)
            return prior - whitened.T @ whitened

    @in_float64
    def _variance(self) -> np.ndarray:
        """In pieces: nothing of size (m, m)."""
        found = np.asarray(self._training.kernel.diag(self._x_new), np.float64).copy()
        chunk = rows_that_fit(16 * len(self._training.x))
        for at in range(0, len(found), chunk):
            whitened = self._training.factor.whiten(self._cross[at : at + chunk].T)
            found[at : at + chunk] -= np.einsum("ij,ij->j", whitened, whitened)
        return found

    def _places(self) -> Places:
        return Places(self._x_new, self._training.x, self._training.y)

    @in_float64
    def predict(self, x_new: Any) -> "PosteriorResult":
        """The same posterior at other inputs; the factor is kept."""
        return PosteriorResult(self._training, inputs(x_new, "x_new", self._training.x.shape[1:]))


class _Training:
    """K + noise factored once."""

    def __init__(self, kernel: AbstractKernel, x: np.ndarray, y: np.ndarray, vector: bool, noise: float):
        self.kernel, self.x, self.y, self.vector = kernel, x, y, vector
        factor = cholesky(np.asarray(kernel.entries(x, None), np.float64), noise, need_max=False)
        if factor is None:
            raise ValueError(
                "the kernel matrix of `x` is singular to working accuracy (repeated rows?): "
                f"give `noise` > 0; got noise={noise}."
            )
        self.factor = factor
        self.weights = factor.solve(y)
        normal = y.shape[1] * (factor.log_determinant() + len(x) * math.log(2 * math.pi))
        self.log_marginal_likelihood = -0.5 * (float((y * self.weights).sum()) + normal)


@overload
def posterior(
    kernel: AbstractKernel, x: Any, y: Any, x_new: Any, noise: float = 0.0, widths: None = None
) -> PosteriorResult: ...


@overload
def posterior(
    kernel: MLP, x: Any, y: Any, x_new: Any, noise: float = 0.0, *, widths: tuple[int, ...] | int
) -> FinitePosterior: ...


@in_float64
def posterior(
    kernel: Any, x: Any, y: Any, x_new: Any, noise: float = 0.0, widths: Any = None
) -> PosteriorResult | FinitePosterior:
    r"""mean k (K + noise)^-1 y and covariance K_BB - k (K + noise)^-1 k^T of a Gaussian process.

    **Arguments:** `kernel`, e.g. `nk.kernels.NNGP(net)`; `x` (n, d); `y` (n,) or (n, out); `x_new` (m, d); `noise`,
    variance of the observations around the function.

    With the NNGP kernel and no noise this is the law of infinitely wide networks whose last layer alone is trained.

    With `widths`, the numbers of neurons of the hidden layers, and an `nk.MLP` for `kernel`: the posterior of networks
    of that width, a `FinitePosterior`, for one output. The size of the kernel is then random; it is exact for linear
    networks, and gives the variance of others within about 20 %. Its mean may be relied on where `misfit` is near 1.
    """
    if widths is not None:
        return finite_posterior(kernel, x, y, x_new, noise, widths)
    require_kernel(kernel)
    x = inputs(x, "x", kernel.input_dim()).copy()
    x_new = inputs(x_new, "x_new", x.shape[1:])
    noise = positive(noise, "noise", zero=True)
    training = _Training(kernel, x, targets(y, len(x)), np.ndim(y) == 1, noise)
    return PosteriorResult(training, x_new)
