"""Sums, products and multiples of kernels."""

import operator
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np

from .._base.check import positive
from .._base.types import Array, Number
from .base import AbstractKernel, require_kernel
from .tiles import Tiles


class _Pair(AbstractKernel):
    left: AbstractKernel
    right: AbstractKernel
    combine: eqx.AbstractClassVar[Callable]
    combine_in_place: eqx.AbstractClassVar[Callable]

    def __check_init__(self):
        for name, kernel in (("left", self.left), ("right", self.right)):
            require_kernel(kernel, name)
        dims = self.left.input_dim(), self.right.input_dim()
        if None not in dims and dims[0] != dims[1]:
            raise ValueError(
                f"`left` and `right` must take inputs of the same number of features; {type(self.left).__name__} takes "
                f"{dims[0]} and {type(self.right).__name__} takes {dims[1]}."
            )

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        return type(self).combine_in_place(self.left.matrix(x1, x2), self.right.matrix(x1, x2))

    def tiles(self, x: np.ndarray) -> Tiles:
        left, right = self.left.tiles(x), self.right.tiles(x)
        return Tiles(
            lambda i, j: type(self).combine(left.tile(i, j), right.tile(i, j)),
            min(left.size, right.size),
            min(left.threads, right.threads),
        )

    def traced(self, x1: Array, x2: Array | None) -> jax.Array:
        return type(self).combine(self.left.traced(x1, x2), self.right.traced(x1, x2))

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return type(self).combine(self.left.diagonal(x), self.right.diagonal(x))

    def input_dim(self) -> "int | tuple[int, ...] | None":
        return self.left.input_dim() or self.right.input_dim()


class Sum(_Pair):
    """The sum of the kernels `left` and `right`, written `k1 + k2`."""

    combine = staticmethod(operator.add)
    combine_in_place = staticmethod(operator.iadd)


class Product(_Pair):
    """The entrywise product of the kernels `left` and `right`, written `k1 * k2`."""

    combine = staticmethod(operator.mul)
    combine_in_place = staticmethod(operator.imul)


class Multiple(AbstractKernel):
    """A multiple of a kernel, `factor` times `kernel`, with `factor` >= 0."""

    kernel: AbstractKernel
    factor: Number

    def __check_init__(self):
        require_kernel(self.kernel)
        positive(self.factor, "factor", zero=True)

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        return operator.imul(self.kernel.matrix(x1, x2), self.factor)

    def tiles(self, x: np.ndarray) -> Tiles:
        inner = self.kernel.tiles(x)
        return inner._replace(tile=lambda i, j: self.factor * inner.tile(i, j))

    def traced(self, x1: Array, x2: Array | None) -> jax.Array:
        return self.factor * self.kernel.traced(x1, x2)

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return self.factor * self.kernel.diagonal(x)

    def input_dim(self) -> "int | tuple[int, ...] | None":
        return self.kernel.input_dim()
