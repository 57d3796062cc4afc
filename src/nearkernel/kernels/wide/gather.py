"""From pairs of positions at one distance to what a layer needs that compares every two positions.

The layers before it hand over one distance after the other, (pair, layout) = at(offset), offsets modulo the grid.
Pools add as they go; others get every two positions at once.
"""

import abc
import itertools
import math
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.types import Array, PyTree
from ...activations.averages.angle import safe_sqrt
from ...models.containers.moment_walk import Walk, demoted, exact_own
from ...models.layers.base import AbstractWideLayer, Pair, Row, covariance, inverse
from ...models.layers.layout import Layout
from ...models.layers.pool import AbstractGlobalPool, AbstractPool, AbstractWindowPool

# The distance of two positions along each axis; None: equal positions only.
Offset: TypeAlias = PyTree
At = Callable[[Offset], tuple[Pair, Layout]]


class Gather(abc.ABC):
    """**Arguments:** `mixer`, the layer; `grid`, positions of its input; `every`: whether what follows compares too."""

    def __init__(self, mixer: AbstractWideLayer, grid: tuple[int, ...], every: bool):
        self.mixer = mixer
        self.grid, self.after = grid, every

    def offsets(self, own: bool) -> np.ndarray:
        """All distances; one of each two opposite ones for inputs with themselves (`own`)."""
        distances = np.array(list(itertools.product(*map(range, self.grid))), dtype=np.int32)
        if not own:
            return distances
        here, there = (
            np.ravel_multi_index(tuple(o.T % self._sizes), self.grid) for o in (distances, -distances)
        )
        return distances[here <= there]

    @property
    def _sizes(self) -> np.ndarray:
        return np.array(self.grid)[:, None]

    def weight(self, offset: tuple) -> jax.Array:
        """Of one of `offsets(own=True)`, so that its numbers and those of its opposite, in turn, add up to all."""
        alone = jnp.stack([2 * o % size == 0 for o, size in zip(offset, self.grid, strict=True)]).all()
        return 1.0 - 0.5 * alone

    def total(self, at: At, start: Callable, add: Callable, offsets: np.ndarray) -> PyTree:
        """The sum over distances, one after the other."""
        first = jax.eval_shape(lambda o: at(tuple(o))[0], jax.ShapeDtypeStruct((len(self.grid),), jnp.int32))

        def step(found, offset):
            pair, where = at(tuple(offset))
            return add(found, pair, where, tuple(offset)), None

        sums = start(first.gap.shape[len(self.grid) :], first.gap.dtype)
        return jax.lax.scan(step, sums, offsets)[0]

    def known(self, row: Row, at: At) -> At:
        """`at` of inputs with themselves: equal positions share all that is random, and `row` has their moments."""

        def found(offset: Offset) -> tuple[Pair, Layout]:
            pair, layout = at(offset)
            same = jnp.stack([o == 0 for o in offset]).all()
            return Pair(jnp.where(same, 0.0, pair.gap), jnp.where(same, row.tangent, pair.tangent)), layout

        return found

    @abc.abstractmethod
    def rows(self, row: Row, at: At) -> tuple[Row, PyTree]:
        """The moments after the mixer, and its data."""

    @abc.abstractmethod
    def pairs(self, one: PyTree, two: PyTree, at: At) -> tuple[Pair, Layout]:
        """The moments of pairs after the mixer, and how they are laid out."""


class GatherEvery(Gather):
    """Every two positions, for any layer."""

    def __init__(self, mixer, grid, every):
        super().__init__(mixer, grid, every)
        self.blocks = (1,) * len(grid)

    def pairs_before(self, at: At, own: bool) -> Pair:
        def start(trailing, dtype):
            zeros = jnp.zeros((*self.grid, *self.grid, *trailing), dtype)
            return Pair(zeros, zeros)

        def add(found, pair, layout, offset):
            times = self.weight(offset) if own else 1.0
            return Pair(*(_put(a, times * b, offset) for a, b in zip(found, pair, strict=True)))

        return Pair(*(every_two(a, self.grid, own) for a in self.total(at, start, add, self.offsets(own))))

    def rows(self, row: Row, at: At) -> tuple[Row, PyTree]:
        row = row._replace(own=self.pairs_before(self.known(row, at), own=True))
        return Walk().rows(self.mixer, row, self.after)

    def pairs(self, one: PyTree, two: PyTree, at: At) -> tuple[Pair, Layout]:
        layout = Layout(len(self.grid), every=True)
        pair = Walk().pairs(self.mixer, one, two, self.pairs_before(at, own=False), layout, self.after)
        return pair, layout.at(self.mixer.rank(layout.rank), self.after)


class GatherPool(Gather):
    """Pools add covariances and tangent kernels: over blocks of the grid, or over all of it."""

    mixer: AbstractPool

    @abc.abstractmethod
    def pooled(self, at: At, before: Callable, own: bool) -> tuple[Array, Array]:
        """Covariance and tangent kernel after the pool; `before(layout)` gives both sides' sizes.

        `own`: both sides are the same inputs, so that a distance and its opposite give the same numbers.
        """

    def scaled(self, a: jax.Array, window: tuple[int, ...]) -> jax.Array:
        return a / math.prod(window) ** 2 if self.mixer.averages else a

    def rows(self, row: Row, at: At) -> tuple[Row, PyTree]:
        sizes = lambda layout: layout.both(row.size, row.size)
        product, tangent = self.pooled(self.known(row, at), sizes, own=True)
        rank = self.mixer.rank(len(self.grid))
        layout = Layout(rank, every=True, outer=False)
        equal = layout.diagonal if rank else lambda a: a
        size = safe_sqrt(equal(product))
        mean = None if row.mean is None else self.mixer.pooled(row.mean, tuple(range(len(self.grid))))
        data = {"before": row.size, "inverse": inverse(size)}
        new = Row(size, equal(tangent), mean)
        if not (rank and self.after):
            return new, data
        left, right = layout.both(data["inverse"], data["inverse"])
        own = Pair(jnp.maximum(1.0 - product * (left * right), 0.0), tangent)
        return new._replace(own=exact_own(own, new)), data

    def pairs(self, one: PyTree, two: PyTree, at: At) -> tuple[Pair, Layout]:
        product, tangent = self.pooled(
            at, lambda layout: layout.both(one["before"], two["before"]), own=False
        )
        layout = Layout(len(self.grid), every=True)
        pair = self.mixer.after_pooling(one, two, product, tangent, layout)
        out = layout.at(self.mixer.rank(layout.rank))
        return (pair, out) if self.after else (demoted(pair, out), out.at(out.rank, False))


class GatherGlobal(GatherPool):
    def pooled(self, at: At, before: Callable, own: bool) -> tuple[Array, Array]:
        axes = tuple(range(len(self.grid)))

        def add(found, pair, layout, offset):
            left, right = before(layout)
            parts = (jnp.sum(a, axis=axes) for a in (covariance(left, right, pair.gap), pair.tangent))
            times = 2.0 * self.weight(offset) if own else 1.0
            return tuple(a + times * part for a, part in zip(found, parts, strict=True))

        start = lambda trailing, dtype: (jnp.zeros(trailing, dtype), jnp.zeros(trailing, dtype))
        product, tangent = self.total(at, start, add, self.offsets(own))
        return self.scaled(product, self.grid), self.scaled(tangent, self.grid)


class GatherBlocks(GatherPool):
    mixer: AbstractWindowPool

    def pooled(self, at: At, before: Callable, own: bool) -> tuple[Array, Array]:
        blocks = self.mixer.window.filter
        out = tuple(size // b for size, b in zip(self.grid, blocks, strict=True))

        def put(found, value, offset):
            for shift in itertools.product(*map(range, blocks)):
                part = value[tuple(slice(a, None, b) for a, b in zip(shift, blocks, strict=True))]
                there = tuple((o + a) // b % s for o, a, b, s in zip(offset, shift, blocks, out, strict=True))
                found = _put(found, part, there, add=True)
            return found

        def add(found, pair, layout, offset):
            left, right = before(layout)
            product = covariance(left, right, pair.gap)
            times = self.weight(offset) if own else 1.0
            return put(found[0], times * product, offset), put(found[1], times * pair.tangent, offset)

        def start(trailing, dtype):
            zeros = jnp.zeros((*out, *out, *trailing), dtype)
            return zeros, zeros

        product, tangent = self.total(at, start, add, self.offsets(own))
        scaled = lambda a: self.scaled(every_two(a, out, own), blocks)
        return scaled(product), scaled(tangent)


def _put(found: jax.Array, part: jax.Array, index: tuple, add: bool = False) -> jax.Array:
    """`part` at (or added to) found[index], in place: a scatter would be slower."""
    at = (*index, *(jnp.int32(0),) * part.ndim)
    part = part[(None,) * len(index)]
    if add:
        part = part + jax.lax.dynamic_slice(found, at, part.shape)
    return jax.lax.dynamic_update_slice(found, part, at)


def every_two(a: jax.Array, grid: tuple[int, ...], own: bool) -> jax.Array:
    """From (*offsets, *positions, ...) to (*positions, *positions, ...); with `own`, plus the two in turn."""
    rank = len(grid)
    here = [np.arange(s).reshape([-1 if j == k else 1 for j in range(2 * rank)]) for k, s in enumerate(grid)]
    there = [
        np.arange(s).reshape([-1 if j == rank + k else 1 for j in range(2 * rank)])
        for k, s in enumerate(grid)
    ]
    pairs = a[(*((t - h) % s for t, h, s in zip(there, here, grid, strict=True)), *here)]
    swapped = (*range(rank, 2 * rank), *range(rank), *range(2 * rank, pairs.ndim))
    return pairs + pairs.transpose(swapped) if own else pairs


def gather_for(mixer: AbstractWideLayer, grid: tuple[int, ...], every: bool) -> Gather:
    """The way of a mixer that costs least."""
    if isinstance(mixer, AbstractGlobalPool):
        return GatherGlobal(mixer, grid, every)
    if isinstance(mixer, AbstractWindowPool) and mixer.blocks(grid):
        return GatherBlocks(mixer, grid, every)
    return GatherEvery(mixer, grid, every)
