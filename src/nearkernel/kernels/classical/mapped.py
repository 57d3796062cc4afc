"""Kernels of mapped inputs: a separate length for each column, or a circle."""

import abc
from types import ModuleType

import jax.numpy as jnp
import numpy as np

from ..._base.check import between, numeric, positive
from ..._base.types import Array, ArrayLike, Num, Number
from ..._run.precision import is_traced
from ..base import AbstractKernel, require_kernel
from ..tiles import Tiles
from .stationary import RBF


class _Mapped(AbstractKernel):
    """k(u(x), u(y)) with a map u."""

    @abc.abstractmethod
    def inner(self) -> AbstractKernel:
        """k."""

    @abc.abstractmethod
    def mapped(self, x: Array, xp: ModuleType) -> Array:
        """u(x) of inputs `x`, by `xp`, which is NumPy or JAX."""

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        one = self.mapped(x1, np)
        return self.inner().matrix(one, None if x2 is None else self.mapped(x2, np))

    def traced(self, x1: Array, x2: Array | None) -> Array:
        one = self.mapped(x1, jnp)
        return self.inner().traced(one, None if x2 is None else self.mapped(x2, jnp))

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return self.inner().diagonal(self.mapped(x, np))

    def tiles(self, x: np.ndarray) -> Tiles:
        return self.inner().tiles(self.mapped(x, np))


class Periodic(_Mapped):
    r"""The kernel of periodic functions, $k(x, y) = \exp\left(-2 \sum_j \sin^2(\pi (x_j - y_j) / P) / \ell^2\right)$.

    **Arguments:** `period`, P > 0; `length`, $\ell$ > 0.
    """

    period: Number = 1.0
    length: Number = 1.0

    def __check_init__(self):
        between(positive(self.period, "period"), "period", 1e-100, 1e100)
        between(positive(self.length, "length"), "length", 1e-100, 1e100)

    def inner(self) -> AbstractKernel:
        return RBF(self.length)

    def mapped(self, x: Array, xp: ModuleType) -> Array:
        angle = xp.remainder(x, self.period) * (2 * np.pi / self.period)
        return xp.concatenate([xp.cos(angle), xp.sin(angle)], axis=1)  # distances on circles of radius 1


class ARD(_Mapped):
    """A kernel with a separate length scale for each column of the inputs: k(x / lengths, y / lengths).

    A column with a large length has little influence (automatic relevance determination). `nk.dynamics.tune` learns
    the lengths.

    **Arguments:** `kernel`, any kernel of vectors; `lengths` (d,), greater than 0.
    """

    kernel: AbstractKernel
    lengths: Array

    def __init__(self, kernel: AbstractKernel, lengths: Num[ArrayLike, " d"]):
        require_kernel(kernel)
        self.kernel = kernel
        if is_traced(lengths):
            lengths = jnp.asarray(lengths)
        else:
            lengths = numeric(lengths, "lengths")
            if lengths.ndim != 1 or not lengths.size or lengths.min() <= 0:
                raise ValueError(
                    f"`lengths` must be a vector of numbers greater than 0, one per column; got shape {lengths.shape}"
                    f"{f' and smallest value {lengths.min():g}' if lengths.size else ''}."
                )
            between(float(lengths.min()), "lengths", 1e-100, 1e100)
        if kernel.input_dim() not in (None, len(lengths)):
            raise ValueError(
                f"`lengths` must have shape ({kernel.input_dim()},), as `kernel` needs; got {lengths.shape}."
            )
        self.lengths = lengths

    def inner(self) -> AbstractKernel:
        return self.kernel

    def mapped(self, x: Array, xp: ModuleType) -> Array:
        return x / self.lengths

    def input_dim(self) -> int:
        return len(self.lengths)
