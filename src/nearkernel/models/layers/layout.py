"""Which positions of two inputs are compared, and how arrays of pairs are laid out.

Rows have shape (..., *positions, n): inputs on the last axis, positions before it. Pairs of inputs come in two layouts:

- *equal*: position p of one with position p + offset of the other, (*positions, n1, n2). Without positions, and for
  networks that never mix them, this is all there is.
- *every*: each position of one with each of the other, (*positions, *positions, n1, n2), for pooling and attention.

A row may also be paired with itself, input by input: the last axis is then (n,) instead of (n1, n2).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .window import Window


def row_axes(a: Any, rank: int) -> tuple[tuple[int, ...], ...]:
    """The position axes of row data."""
    return tuple((a.ndim - 1 - rank + k,) for k in range(rank))


class Layout(eqx.Module):
    """**Fields:** `rank`, number of position axes; `every`, see above; `outer`, whether inputs are paired all with all;
    `offset`, of positions on the second side: one (traced) integer per axis, or None for equal ones."""

    rank: int = eqx.field(static=True, default=0)
    every: bool = eqx.field(static=True, default=False)
    outer: bool = eqx.field(static=True, default=True)
    offset: Any = None

    def at(self, rank: int, every: bool | None = None) -> "Layout":
        """The same for another number of position axes."""
        return Layout(rank, self.every if every is None else every, self.outer, self.offset if rank else None)

    def left(self, tree: Any) -> Any:
        """Row data of the first side, to broadcast against pairs."""
        return jax.tree.map(self._left, tree)

    def right(self, tree: Any) -> Any:
        """Row data of the second side, to broadcast against pairs."""
        return jax.tree.map(self._right, tree)

    def both(self, one: Any, two: Any) -> tuple[Any, Any]:
        return self.left(one), self.right(two)

    def _left(self, a: Any) -> Any:
        if self.every and self.rank:
            a = a.reshape(*a.shape[:-1], *(1,) * self.rank, a.shape[-1])
        return a[..., :, None] if self.outer else a

    def _right(self, a: Any) -> Any:
        if self.rank and self.every:
            lead, rest = a.shape[: -1 - self.rank], a.shape[-1 - self.rank :]
            a = a.reshape(*lead, *(1,) * self.rank, *rest)
        elif self.rank and self.offset is not None:
            a = self.moved(a)
        return a[..., None, :] if self.outer else a

    def moved(self, a: Any) -> Any:
        """Row data with position p + offset (modulo the grid) at position p."""
        for axis, offset in enumerate(self.offset):
            a = jnp.roll(a, -offset, axis=a.ndim - 1 - self.rank + axis)
        return a

    @property
    def _trailing(self) -> int:
        return 2 if self.outer else 1

    def axes(self, a: Any) -> tuple[tuple[int, ...], ...]:
        """The axes of pairs that belong to each position axis: one of them, or two."""
        first = a.ndim - self._trailing - self.rank * (2 if self.every else 1)
        if not self.every:
            return tuple((first + k,) for k in range(self.rank))
        return tuple((first + k, first + self.rank + k) for k in range(self.rank))

    def windowed(self, a: Any, window: Window) -> Any:
        """sum over d of a[s p + d, s p' + d]: what one filter, moved over both inputs together, sees of pairs."""
        return window.total(a, self.axes(a), self._mask(window))

    def one_sided(self, one: Any, two: Any, window: Window) -> Any:
        """What each side sees that the other does not, since its window is cut at another border: a sum of both.

        `one` and `two` are row data that are not yet broadcast. None if the windows are cut alike.
        """
        if window.padding == "CIRCULAR" or (not self.every and self.offset is None):
            return None
        if self.every:
            return self._one_sided_every(one, window) + self._one_sided_every(two, window, swap=True)
        back = Layout(self.rank, False, self.outer, tuple(-o for o in self.offset))
        parts = []
        for side, layout in ((one, self), (two, back)):
            axes = row_axes(side, self.rank)
            parts.append(window.total(side, axes, None) - window.total(side, axes, layout._mask(window)))
        return self._left(parts[0]) + self._right(parts[1])

    def _one_sided_every(self, a: Any, window: Window, swap: bool = False) -> Any:
        """For every two positions: the part of one side's window where the other side's is outside of the grid."""
        side, other = (self._right, self._left) if swap else (self._left, self._right)
        pairs = side(a) * other(jnp.ones_like(a[..., :1]))
        whole = side(window.total(a, row_axes(a, self.rank), None))
        return whole - window.total(pairs, self.axes(pairs), None)

    def _mask(self, window: Window) -> Callable | None:
        """Of taps whose second side lies outside of the grid, for layouts with an offset."""
        if self.offset is None or self.every or window.padding == "CIRCULAR":
            return None
        offset = self.offset

        def mask(axis: int, tap: int, low: int, size: int) -> jax.Array:
            there = (jnp.arange(size) + offset[axis]) % size + tap - low
            return (there >= 0) & (there < size)

        return mask

    def diagonal(self, a: Any) -> Any:
        """Of every two positions, those that are equal."""
        grid = a.shape[: self.rank]
        at = [
            jnp.arange(size).reshape([-1 if k == j else 1 for j in range(self.rank)])
            for k, size in enumerate(grid)
        ]
        return a[(*at, *at)]
