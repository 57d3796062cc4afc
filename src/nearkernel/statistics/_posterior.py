"""Gaussian-process regression with any kernel."""

import math
from typing import Any

import numpy as np

from .._check import inputs, positive, targets
from .._precision import in_float64
from ..dynamics._factor import cholesky
from ..kernels import AbstractKernel
from ._gaussian import GaussianOutputs


class Posterior(GaussianOutputs):
    """The posterior of the noise-free function; `log_marginal_likelihood` is summed over outputs."""

    def __init__(self, mean: np.ndarray, cov: np.ndarray, log_marginal_likelihood: float):
        super().__init__(mean, cov)
        self.log_marginal_likelihood = log_marginal_likelihood


@in_float64
def posterior(kernel: AbstractKernel, x: Any, y: Any, x_new: Any, noise: float = 0.0) -> Posterior:
    r"""mean k (K + noise)^-1 y and covariance K_BB - k (K + noise)^-1 k^T of a Gaussian process.

    **Arguments:** `kernel`, e.g. `nk.kernels.NNGP(net)`; `x` (n, d); `y` (n,) or (n, out); `x_new` (m, d); `noise`,
    variance of the observations around the function.

    With the NNGP kernel and no noise this is the law of infinitely wide networks whose last layer alone is trained.
    """
    x = inputs(x, "x", kernel.input_dim())
    x_new = inputs(x_new, "x_new", x.shape[1])
    columns = targets(y, len(x))
    factor = cholesky(
        np.asarray(kernel.matrix(x, None), np.float64), positive(noise, "noise", zero=True), need_max=False
    )
    if factor is None:
        raise ValueError(
            "the kernel matrix of `x` is singular to working accuracy (repeated rows?): "
            f"give `noise` > 0; got noise={noise}."
        )
    cross = kernel.matrix(x_new, x)
    solved = factor.apply(None, np.column_stack([columns, cross.T]))  # type: ignore[arg-type]
    weights, whitened = solved[:, : columns.shape[1]], solved[:, columns.shape[1] :]
    mean = cross @ weights
    cov = kernel.matrix(x_new, None) - cross @ whitened
    quadratic = float((columns * weights).sum())
    normal = columns.shape[1] * (factor.log_determinant() + len(x) * math.log(2 * math.pi))
    return Posterior(
        mean[:, 0] if np.ndim(y) == 1 else mean, 0.5 * (cov + cov.T), -0.5 * (quadratic + normal)
    )
