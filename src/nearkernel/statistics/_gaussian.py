"""Gaussian laws of outputs: what posterior and forecast have in common."""

import abc
import functools
import math
from typing import Any

import jax
import numpy as np
import scipy.linalg

from .._check import whole
from .._keys import Key, random_key
from .._memory import require_fits
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

    @functools.cached_property
    def variance(self) -> np.ndarray:
        """The diagonal of `cov`, (m,), without the matrix where that is possible."""
        return self._variance()

    def _variance(self) -> np.ndarray:
        half = self.cov.shape[: self.cov.ndim // 2]
        return np.diagonal(self.cov.reshape(math.prod(half), -1)).reshape(half)

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(np.maximum(self.variance, 0.0))

    @in_float64
    def sample(self, size: int, key: Key) -> np.ndarray:
        """`size` draws: (size, m) or (size, m, out)."""
        shape = (whole(size, "size", 1), *self.mean.shape)
        require_fits(
            3 * 8 * math.prod(shape), f"`size` = {size} draws of {self.mean.size} outputs", "draw fewer"
        )
        noise: Any = np.asarray(jax.random.normal(random_key(key), shape, np.float64))
        lam, vectors = scipy.linalg.eigh(self.cov)
        root = vectors * np.sqrt(np.maximum(lam, 0.0))
        return self.mean + np.einsum("ij,sj...->si...", root, noise)
