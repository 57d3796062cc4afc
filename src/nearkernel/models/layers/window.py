"""Windows that move over a grid: filters of convolutions and pools."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._base.check import one_of, sizes

PADDINGS = ("SAME", "VALID", "CIRCULAR")


class Window(eqx.Module):
    """**Fields:** `filter`, `strides`, `dilation`, one number per position axis; `padding`, "SAME" (zeros outside),
    "VALID" (no window leaves the grid) or "CIRCULAR" (the grid is periodic)."""

    filter: tuple[int, ...] = eqx.field(static=True)
    strides: tuple[int, ...] = eqx.field(static=True)
    padding: str = eqx.field(static=True)
    dilation: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, filter: Any, strides: Any = None, padding: str = "SAME", dilation: Any = None):
        self.filter = sizes(filter, "filter")
        rank = len(self.filter)
        self.strides = (1,) * rank if strides is None else sizes(strides, "strides")
        self.dilation = (1,) * rank if dilation is None else sizes(dilation, "dilation")
        if not len(self.filter) == len(self.strides) == len(self.dilation):
            raise ValueError(
                f"`filter`, `strides` and `dilation` must have the same number of axes; got {self.filter}, "
                f"{self.strides} and {self.dilation}."
            )
        self.padding = one_of(padding, "padding", PADDINGS)

    def __repr__(self) -> str:
        parts = [str(self.filter)]
        if set(self.strides) != {1}:
            parts.append(f"strides={self.strides}")
        if set(self.dilation) != {1}:
            parts.append(f"dilation={self.dilation}")
        return ", ".join([*parts, f"padding={self.padding!r}"])

    @property
    def count(self) -> int:
        return math.prod(self.filter)

    def spans(self) -> tuple[int, ...]:
        """How many positions a window covers on each axis."""
        return tuple((f - 1) * d + 1 for f, d in zip(self.filter, self.dilation, strict=True))

    def pads(self, grid: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Positions added before and after each axis."""
        if self.padding == "VALID":
            return ((0, 0),) * len(grid)
        found = []
        for size, span, stride in zip(grid, self.spans(), self.strides, strict=True):
            total = max((-(-size // stride) - 1) * stride + span - size, 0)
            found.append((total // 2, total - total // 2))
        return tuple(found)

    def grid(self, grid: tuple[int, ...]) -> tuple[int, ...]:
        """Positions of the output."""
        if not grid:
            raise ValueError("a filter needs positions, and its input has none: use Dense")
        if len(grid) != len(self.filter):
            raise ValueError(
                f"its filter {self.filter} has {len(self.filter)} axes, and its input {len(grid)}: give a filter of "
                f"{len(grid)} numbers"
            )
        pads = self.pads(grid)
        for size, span, (low, high) in zip(grid, self.spans(), pads, strict=True):
            if span > size + low + high or (self.padding != "VALID" and span > 2 * size):
                raise ValueError(f"its filter {self.filter} is larger than its input of {grid} positions")
        return tuple(
            (size + low + high - span) // stride + 1
            for size, span, stride, (low, high) in zip(grid, self.spans(), self.strides, pads, strict=True)
        )

    def unit_stride(self) -> bool:
        return set(self.strides) == {1}

    def padded(self, a: Any, axes: tuple[tuple[int, ...], ...]) -> Any:
        """`a` with all its position axes padded at once: a pad between two sums would compute the first again."""
        pads = [(0, 0)] * a.ndim
        for group, pad in zip(axes, self.pads(tuple(a.shape[g[0]] for g in axes)), strict=True):
            for axis in group:
                pads[axis] = pad
        if not any(low or high for low, high in pads):
            return a
        return jnp.pad(a, pads, mode="wrap" if self.padding == "CIRCULAR" else "constant")

    def taps(self, a: Any) -> list[Any]:
        """What each entry of the filter sees in `a` (n, *positions, channels), (n, *grid, channels) each."""
        rank = len(self.filter)
        grid = self.grid(a.shape[1 : 1 + rank])
        a = self.padded(a, tuple((1 + k,) for k in range(rank)))
        found = []
        for place in np.ndindex(*self.filter):
            begin = [tap * step for tap, step in zip(place, self.dilation, strict=True)]
            end = [b + (size - 1) * s + 1 for b, size, s in zip(begin, grid, self.strides, strict=True)]
            found.append(lax.slice(a, (0, *begin, 0), (len(a), *end, a.shape[-1]), (1, *self.strides, 1)))
        return found

    def total(self, a: Any, axes: tuple[tuple[int, ...], ...], mask: Callable | None) -> Any:
        """Sums over windows; axes of one group move together. `mask(axis, tap, low, size)` says which taps count."""
        grid = tuple(a.shape[group[0]] for group in axes)
        pads, out = self.pads(grid), self.grid(grid)
        a = self.padded(a, axes)
        for k, group in enumerate(axes):
            parts = []
            for tap in range(self.filter[k]):
                start = tap * self.dilation[k]
                part = a
                for axis in group:
                    stop = start + (out[k] - 1) * self.strides[k] + 1
                    part = lax.slice_in_dim(part, start, stop, self.strides[k], axis)
                if mask is not None:
                    keep = mask(k, start, pads[k][0], grid[k])
                    shape = [1] * a.ndim
                    shape[group[0]] = grid[k]
                    part = jnp.where(keep.reshape(shape), part, 0.0)
                parts.append(part)
            a = sum(parts[1:], parts[0])
        return a
