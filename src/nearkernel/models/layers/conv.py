"""Convolutions, and filters with separate weights at each position."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from ..._base.check import one_of, whole
from ...activations.averages.angle import safe_sqrt
from .base import (
    AbstractOuterLayer,
    AbstractPiecewiseLayer,
    Pair,
    Params,
    Row,
    Shape,
    covariance,
    gap_of_distance,
    half_square_distance,
    inverse,
)
from .layout import Layout, row_axes
from .weights import AbstractAffine, bias_variance, weight_variance
from .window import Window

_AXES = "HWDEFG"
PARAMETRIZATIONS = ("ntk", "standard")
_MOST_PATCHES = 2**29  # bytes


class AbstractFilter(AbstractAffine, AbstractPiecewiseLayer):
    """What `Conv` and `LocallyConnected` share."""

    width: int = eqx.field(static=True)
    window: Window
    weight_var: Any
    bias_var: Any
    parametrization: str = eqx.field(static=True)

    def __init__(
        self,
        width: int,
        filter: Any = (3, 3),
        strides: Any = None,
        padding: str = "SAME",
        dilation: Any = None,
        weight_var: Any = 1.0,
        bias_var: Any = 0.0,
        parametrization: str = "ntk",
    ):
        self.width = whole(width, "width", 1)
        self.window = Window(filter, strides, padding, dilation)
        self.weight_var = weight_variance(weight_var)
        self.bias_var = bias_variance(bias_var)
        self.parametrization = one_of(parametrization, "parametrization", PARAMETRIZATIONS)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.width}, {self.window!r})"

    def shape(self, shape: Shape) -> Shape:
        return (*self.window.grid(shape[:-1]), self.width)

    def fan_in(self, channels: int) -> int:
        """That of a whole filter, also at the border."""
        return channels * self.window.count

    def scales(self, channels: int) -> tuple[Any, Any]:
        if self.parametrization == "standard":
            return 1.0, 1.0
        return jnp.sqrt(self.weight_var / self.fan_in(channels)), jnp.sqrt(self.bias_var)

    def resized(self, change: Callable[[int], int]) -> "AbstractFilter":
        window, variances = self.window, (self.weight_var, self.bias_var)
        place = window.filter, window.strides, window.padding, window.dilation
        return type(self)(change(self.width), *place, *variances, self.parametrization)

    def shifts(self) -> bool:
        return self.window.unit_stride() and self.window.padding != "VALID"

    def rows(self, row: Row) -> tuple[Row, Any]:
        axes = row_axes(row.size, len(self.window.filter))
        share = self.weight_var / self.window.count
        size = safe_sqrt(self.bias_var + share * self.window.total(row.size**2, axes, None))
        tangent = size**2 + share * self.window.total(row.tangent, axes, None)
        return Row(size, tangent), {"before": row.size, "after": size, "inverse": inverse(size)}

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        share = self.weight_var / self.window.count
        before1, before2 = layout.both(one["before"], two["before"])
        distance = layout.windowed(half_square_distance(before1, before2, pair.gap), self.window)
        alone = layout.one_sided(one["before"] ** 2, two["before"] ** 2, self.window)
        if alone is not None:
            distance = distance + 0.5 * alone
        after1, after2 = layout.both(one["after"], two["after"])
        inverses = layout.left(one["inverse"]) * layout.right(two["inverse"])
        gap = gap_of_distance(after1, after2, inverses, share * distance)
        tangent = covariance(after1, after2, gap) + share * layout.windowed(pair.tangent, self.window)
        return Pair(gap, tangent)


class Conv(AbstractFilter, AbstractOuterLayer):
    r"""A convolution: $z_p = \sqrt{C_W / (C |F|)} \sum_{d \in F} W_d\, s_{p + d} + \sqrt{C_b}\, b$.

    **Arguments:** `width`, number of output channels; `filter`, e.g. (3, 3) or, for sequences, 3; `strides`;
    `padding`, "SAME" (zeros outside), "VALID" or "CIRCULAR"; `dilation`; `weight_var`, `bias_var`, `parametrization`
    ("ntk" or "standard"): same as `Dense`, with a fan-in of channels times positions of the filter. Parameters are
    `dict(weight=(*filter, channels, width), bias=(width,))`.
    """

    __init__ = AbstractFilter.__init__  # said again for type checkers

    def init(self, key: jax.Array, shape: Shape) -> Params:
        weight = (*self.window.filter, shape[-1], self.width)
        return self.drawn(jax.random.split(key), weight, (self.width,), shape[-1])

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        weight = params["weight"]
        if self._by_patches(x):
            z = self.patches(x) @ weight.reshape(-1, self.width)
        else:
            dtype = jnp.result_type(x, weight)
            z = convolution(self.window, x.astype(dtype), weight.astype(dtype))
        return self.outputs(z, params, x)

    def _by_patches(self, x: jax.Array) -> bool:
        """Whether one product with all patches is fast, and they fit: XLA's convolutions are slow in loops on CPUs."""
        grid = math.prod(self.window.grid(x.shape[1:-1]))
        size = len(x) * grid * self.window.count * x.shape[-1] * x.dtype.itemsize
        return jax.default_backend() == "cpu" and size <= _MOST_PATCHES

    def patches(self, x: jax.Array) -> jax.Array:
        """(n, *grid, filter * channels): what each output position sees of `x`, (n, *in_grid, channels)."""
        return jnp.concatenate(self.window.taps(x), axis=-1)

    def enters(self, x: jax.Array, factors: Params) -> jax.Array:
        patches = self.patches(x)
        return self.entering(patches.reshape(len(x), -1, patches.shape[-1]), x, factors)


class LocallyConnected(AbstractFilter):
    """Same as `Conv`, but with separate weights and biases at each position.

    **Arguments:** `width`, `filter`, `strides`, `padding`, `dilation`, `weight_var`, `bias_var`, `parametrization`:
    same as `Conv`. Parameters are
    `dict(weight=(*positions, channels * filter, width), bias=(*positions, width))`.
    """

    __init__ = AbstractFilter.__init__

    def init(self, key: jax.Array, shape: Shape) -> Params:
        grid = self.window.grid(shape[:-1])
        weight = (*grid, self.fan_in(shape[-1]), self.width)
        return self.drawn(jax.random.split(key), weight, (*grid, self.width), shape[-1])

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        patches = jnp.stack(self.window.taps(x), axis=-1)  # channels come first
        flat = patches.reshape(*patches.shape[:-2], -1)
        return self.outputs(jnp.einsum("n...i,...io->n...o", flat, params["weight"]), params, x)

    def need(self, every: bool) -> bool:
        return False

    def shifts(self) -> bool:
        return False

    def spread(self, pair: Pair, layout: Layout) -> Pair:
        """Every two positions of `pair` in `layout`, from equal ones: different weights have nothing in common."""
        grid = pair.gap.shape[: layout.rank]
        same = jnp.eye(math.prod(grid), dtype=bool).reshape(
            *grid, *grid, *(1,) * (pair.gap.ndim - layout.rank)
        )
        wide = lambda a: a.reshape(*grid, *(1,) * layout.rank, *a.shape[layout.rank :])
        return Pair(jnp.where(same, wide(pair.gap), 1.0), jnp.where(same, wide(pair.tangent), 0.0))


def convolution(window: Window, x: jax.Array, weight: jax.Array) -> jax.Array:
    """XLA's own, of `x` (n, *positions, channels) with a `weight` (*filter, channels, width)."""
    rank = len(window.filter)
    axes = _AXES[:rank]
    return lax.conv_general_dilated(
        window.padded(x, tuple((1 + k,) for k in range(rank))),
        weight,
        window.strides,
        "VALID",
        rhs_dilation=window.dilation,
        dimension_numbers=(f"N{axes}C", f"{axes}IO", f"N{axes}C"),
    )
