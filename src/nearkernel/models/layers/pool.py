"""Pooling: sums and means over positions.

Neighboring positions are correlated, so every two positions of both inputs are needed (`Layout.every`). A mean of
correlated terms is a difference of large numbers when two inputs are nearly equal: the gap of what is pooled has an
absolute error of a few 1e-16. The covariance keeps all of its digits; the slope of a relu that follows has an error of
1e-16 over the angle, at most 1e-8. Diagonals are exact.
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import truth
from ...activations.averages.angle import safe_sqrt
from .base import (
    AbstractPiecewiseLayer,
    AbstractWideLayer,
    Pair,
    Params,
    Row,
    Shape,
    covariance,
    inverse,
)
from .layout import Layout
from .window import Window


class AbstractPool(AbstractWideLayer, AbstractPiecewiseLayer):
    """A linear map of positions, the same for every channel."""

    averages: ClassVar[bool]  # or adds

    @abc.abstractmethod
    def pooled(self, a: Any, axes: tuple[int, ...]) -> Any:
        """The map along the (position) `axes` of any array `a`; the axes that are left stay where they are."""

    @abc.abstractmethod
    def pooled_grid(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        """The positions that are left of a `grid`."""

    def shape(self, shape: Shape) -> Shape:
        if len(shape) < 2:
            raise ValueError(f"a pool needs positions, and its input of shape {shape} has none: leave it out")
        return (*self.pooled_grid(shape[:-1]), shape[-1])

    def need(self, every: bool) -> bool:
        return True

    def every_two(self, a: Any, layout: Layout) -> Any:
        """The map on both sides of an array of every two positions."""
        first, rank = a.ndim - (2 if layout.outer else 1) - 2 * layout.rank, layout.rank
        right = self.pooled(a, tuple(range(first + rank, first + 2 * rank)))
        return self.pooled(right, tuple(range(first, first + rank)))

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        return self.pooled(x, tuple(range(1, x.ndim - 1)))

    def rows(self, row: Row) -> tuple[Row, Any]:
        rank = row.size.ndim - 1
        layout = Layout(rank, every=True, outer=False)
        left, right = layout.both(row.size, row.size)
        out = layout.at(self.rank(rank))
        equal = out.diagonal if out.rank else lambda a: a
        size = safe_sqrt(equal(self.every_two(covariance(left, right, row.own.gap), layout)))
        tangent = equal(self.every_two(row.own.tangent, layout))
        mean = None if row.mean is None else self.pooled(row.mean, tuple(range(rank)))
        return Row(size, tangent, mean), {"before": row.size, "inverse": inverse(size)}

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        covariances = covariance(*layout.both(one["before"], two["before"]), pair.gap)
        return self.after_pooling(
            one, two, self.every_two(covariances, layout), self.every_two(pair.tangent, layout), layout
        )

    def after_pooling(self, one: Any, two: Any, covariances: Any, tangent: Any, layout: Layout) -> Pair:
        """The pair from pooled covariances and tangent kernels."""
        out = layout.at(self.rank(layout.rank))
        inverses = out.left(one["inverse"]) * out.right(two["inverse"])
        return Pair(jnp.maximum(1.0 - covariances * inverses, 0.0), tangent)


class AbstractWindowPool(AbstractPool):
    window: Window
    normalize_edges: bool = eqx.field(static=True)

    def __init__(
        self, filter: Any = (2, 2), strides: Any = None, padding: str = "VALID", normalize_edges: bool = False
    ):
        self.window = Window(filter, filter if strides is None else strides, padding)
        self.normalize_edges = truth(normalize_edges, "normalize_edges")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.window.filter})"

    def pooled_grid(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        return self.window.grid(grid)

    def blocks(self, grid: tuple[int, ...]) -> bool:
        """Whether its windows are the blocks of a grid: each position is in one of them."""
        window = self.window
        return window.filter == window.strides and all(
            size % f == 0 for size, f in zip(grid, window.filter, strict=True)
        )

    def summed(self, a: Any, axes: tuple[int, ...]) -> Any:
        return self.window.total(a, tuple((axis,) for axis in axes), None)


class AvgPool(AbstractWindowPool):
    """Average pooling over windows.

    **Arguments:** `filter`, e.g. (2, 2); `strides` (default: the filter); `padding`, "VALID", "SAME" or "CIRCULAR";
    `normalize_edges`: whether a window that is cut by "SAME" padding is divided by the number of positions inside.
    """

    __init__ = AbstractWindowPool.__init__  # said again for type checkers
    averages = True

    def pooled(self, a: Any, axes: tuple[int, ...]) -> Any:
        found = self.summed(a, axes)
        if not (self.normalize_edges and self.window.padding == "SAME"):
            return found / self.window.count
        grid = tuple(a.shape[axis] for axis in axes)
        counts = self.summed(jnp.ones(grid, a.dtype), tuple(range(len(grid))))
        shape = [1] * a.ndim
        for axis, size in zip(axes, counts.shape, strict=True):
            shape[axis] = size
        return found / counts.reshape(shape)


class SumPool(AbstractWindowPool):
    """Sum pooling over windows.

    **Arguments:** `filter`, `strides`, `padding`, `normalize_edges`: same as `AvgPool`.
    """

    __init__ = AbstractWindowPool.__init__
    averages = False

    def pooled(self, a: Any, axes: tuple[int, ...]) -> Any:
        return self.summed(a, axes)


class AbstractGlobalPool(AbstractPool):
    def pooled_grid(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        return ()

    def rank(self, rank: int) -> int:
        return 0


class GlobalAvgPool(AbstractGlobalPool):
    """The mean over all positions."""

    averages = True

    def pooled(self, a: Any, axes: tuple[int, ...]) -> Any:
        return jnp.mean(a, axis=axes)


class GlobalSumPool(AbstractGlobalPool):
    """The sum over all positions."""

    averages = False

    def pooled(self, a: Any, axes: tuple[int, ...]) -> Any:
        return jnp.sum(a, axis=axes)
