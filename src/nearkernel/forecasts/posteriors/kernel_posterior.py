"""Gaussian-process regression with any kernel."""

import math
from typing import Any, overload

import numpy as np

from ..._base.check import inputs, positive, targets
from ..._base.types import ArrayLike, Num
from ..._run.blas import one_thread
from ..._run.memory import rows_that_fit
from ..._run.precision import in_float64
from ...dynamics.algorithms.spectral import Ridge
from ...dynamics.linear.factor import Cholesky
from ...kernels.base import AbstractKernel, require_kernel
from ...models.networks.mlp import MLP
from ..infinite_width.trained_gaussian import NewPoints, TrainedLaw
from ..outputs.kernel_pair import KernelPair
from ..outputs.law import OutputLaw, Places
from .finite_width import FinitePosterior, finite_posterior


class PosteriorResult(OutputLaw):
    """The posterior of the noise-free function.

    **Fields:** `mean` (m,) or (m, out), like `y`; `cov` (m, m), the same for each output; `std` (m,);
    `log_marginal_likelihood` of the data, summed over outputs.
    """

    def __init__(self, law: TrainedLaw, x_new: np.ndarray):
        self._law, self._points = law, NewPoints(law, x_new)
        mean = self._points.start @ law.solution.coefficients
        self.mean = mean[:, 0] if law.vector else mean
        self.log_marginal_likelihood = _log_marginal_likelihood(law)

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
    def predict(self, x_new: Any) -> "PosteriorResult":
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


def _log_marginal_likelihood(law: TrainedLaw) -> float:
    normal = law.y.shape[1] * (_factor(law).log_determinant() + len(law.x) * math.log(2 * math.pi))
    return -0.5 * (float((law.y * law.solution.coefficients).sum()) + normal)


@overload
def posterior(
    kernel: AbstractKernel,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    x_new: Num[ArrayLike, " m *d"],
    noise: float = 0.0,
    widths: None = None,
) -> PosteriorResult: ...


@overload
def posterior(
    kernel: MLP,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    x_new: Num[ArrayLike, " m *d"],
    noise: float = 0.0,
    *,
    widths: tuple[int, ...] | int,
) -> FinitePosterior: ...


@in_float64
def posterior(
    kernel: Any,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    x_new: Num[ArrayLike, " m *d"],
    noise: float = 0.0,
    widths: Any = None,
) -> PosteriorResult | FinitePosterior:
    r"""The posterior of a Gaussian process.

    $$\text{mean} = k\, (K + \sigma^2)^{-1} y, \qquad \text{cov} = K_{BB} - k\, (K + \sigma^2)^{-1} k^\top$$

    With the NNGP kernel and no noise this is the distribution of infinitely wide networks in which only the last
    layer is trained.

    With `widths` and an `nk.MLP` as `kernel`, it is the posterior of networks of finite width, a `FinitePosterior`. The
    scale of the kernel is then random. This is exact for linear networks, and gives the variance of other networks
    within about 20 %. The mean is reliable where `misfit` is near 1. Several outputs share their neurons, so their
    scale is a random matrix; they are supported for one hidden layer, and for linear networks of any depth.

    **Arguments:** `kernel`, e.g. `nk.kernels.NNGP(net)`; `x` (n, d); `y` (n,) or (n, out); `x_new` (m, d); `noise`,
    $\sigma^2$, the variance of the observations around the function; `widths`, optional, of the hidden layers.
    """
    if widths is not None:
        return finite_posterior(kernel, x, y, x_new, noise, widths)
    require_kernel(kernel)
    x = inputs(x, "x", kernel.input_dim()).copy()
    x_new = inputs(x_new, "x_new", x.shape[1:])
    noise = positive(noise, "noise", zero=True)
    law = TrainedLaw(
        KernelPair(kernel, kernel), x, targets(y, len(x)), Ridge(noise), np.ndim(y) == 1, noise=noise
    )
    return PosteriorResult(law, x_new)
