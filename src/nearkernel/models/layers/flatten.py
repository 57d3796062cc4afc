"""Layers without parameters that only arrange or drop: flatten, identity, dropout."""

from typing import Any

import jax
import jax.numpy as jnp

from ..._base.check import positive
from ...activations.averages.angle import safe_sqrt
from .base import (
    AbstractPiecewiseLayer,
    AbstractWideLayer,
    Pair,
    Params,
    Row,
    Shape,
    gap_of_distance,
    half_square_distance,
    inverse,
    namespace,
)
from .layout import Layout


class Identity(AbstractWideLayer, AbstractPiecewiseLayer):
    """The identity."""

    def after(self, kind: str) -> str:
        return kind

    def shape(self, shape: Shape) -> Shape:
        return shape

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        return x

    def shifts(self) -> bool:
        return True

    def rows(self, row: Row) -> tuple[Row, Any]:
        return row._replace(own=None), None

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        return pair


class Flatten(AbstractWideLayer, AbstractPiecewiseLayer):
    """Flattens positions and channels into one vector; kernels then compare only equal positions of two inputs."""

    def after(self, kind: str) -> str:
        return "inputs" if kind == "inputs" else "features"  # each position had a variance of its own

    def shape(self, shape: Shape) -> Shape:
        total = 1
        for size in shape:
            total *= size
        return (total,)

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        return x.reshape(len(x), -1)

    def need(self, every: bool) -> bool:
        return False

    def rank(self, rank: int) -> int:
        return 0

    def rows(self, row: Row) -> tuple[Row, Any]:
        axes = tuple(range(row.size.ndim - 1))
        size = safe_sqrt(jnp.mean(row.size**2, axis=axes))
        mean = None if row.mean is None else jnp.mean(row.mean, axis=axes)
        data = {"before": row.size, "after": size, "inverse": inverse(size)}
        return Row(size, jnp.mean(row.tangent, axis=axes), mean), data

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        axes, flat = tuple(range(layout.rank)), layout.at(0)
        before1, before2 = layout.both(one["before"], two["before"])
        distance = jnp.mean(half_square_distance(before1, before2, pair.gap), axis=axes)
        after1, after2 = flat.both(one["after"], two["after"])
        inverses = flat.left(one["inverse"]) * flat.right(two["inverse"])
        return Pair(gap_of_distance(after1, after2, inverses, distance), jnp.mean(pair.tangent, axis=axes))


class Dropout(AbstractWideLayer):
    """Dropout: each value is kept with probability `keep` and divided by it, or set to 0.

    Kernels describe the network in training, with a new mask for every evaluation: the entries k(x, x) use one mask in
    `kernel(x)` and two in `kernel(x, x)`. A network called without a key, `net(params, x)`, drops nothing;
    `net(params, x, key=key)` draws the masks.
    """

    keep: Any

    def after(self, kind: str) -> str:
        return "inputs" if kind == "inputs" else "features"

    def __check_init__(self):
        positive(self.keep, "keep")
        if self.keep > 1:
            raise ValueError(f"`keep` is a probability and must be at most 1; got {self.keep}.")

    def shape(self, shape: Shape) -> Shape:
        return shape

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        return x

    def dropped(self, key: jax.Array, x: jax.Array) -> jax.Array:
        """`x` with entries set to 0 at random, drawn with `key`, and the others scaled up."""
        keep = jnp.asarray(self.keep, jnp.float32)  # in any precision, the same mask
        kept = jax.random.bernoulli(key, keep, x.shape)
        return jnp.where(kept, x / jnp.asarray(self.keep, x.dtype), jnp.zeros((), x.dtype))

    def shifts(self) -> bool:
        return True

    def rows(self, row: Row) -> tuple[Row, Any]:
        xp = namespace(row.size)
        return Row(row.size / xp.sqrt(self.keep), row.tangent / self.keep, row.mean), None

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        return Pair(1.0 - self.keep * (1.0 - pair.gap), pair.tangent)
