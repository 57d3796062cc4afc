"""Gaussian laws of outputs: what posterior and forecast have in common."""

import abc
import functools
from typing import Any

import jax
import numpy as np
import scipy.linalg

from .._check import whole
from .._precision import in_float64


class GaussianOutputs(abc.ABC):
    """Independent outputs with means and one shared covariance.

    **Fields:** `mean` (m,) or (m, out), as `y`; `cov` (m, m), of each output; `std` (m,).
    """

    mean: np.ndarray

    @functools.cached_property
    def cov(self) -> np.ndarray:
        """(m, m), made when first asked for."""
        return self._covariance()

    @abc.abstractmethod
    def _covariance(self) -> np.ndarray: ...

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diagonal(self.cov), 0.0))

    @in_float64
    def sample(self, size: int, key: jax.Array) -> np.ndarray:
        """`size` draws: (size, m) or (size, m, out)."""
        lam, vectors = scipy.linalg.eigh(self.cov)
        root = vectors * np.sqrt(np.maximum(lam, 0.0))
        shape = (whole(size, "size", 1), *self.mean.shape)
        noise: Any = np.asarray(jax.random.normal(key, shape, np.float64))
        return self.mean + np.einsum("ij,sj...->si...", root, noise)
