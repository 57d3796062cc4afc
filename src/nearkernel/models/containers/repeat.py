"""The same layers many times, so that they are compiled once."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import whole
from ..._base.namespace import namespace
from ..._run.precision import is_traced
from ...activations.base import AbstractActivation
from ..layers.base import AbstractPiecewiseLayer, AbstractWideLayer, Pair, Params, Row, Shape, located
from ..layers.layout import Layout
from .moment_walk import Walk, demoted, prepare
from .sequential import AbstractContainer, Leaf, Sequential, layer_list, plain

_UNROLLED = 6  # blocks whose activations have a number of terms of their own each
_LONGEST = 4  # layers of a block
_MOST = 10**6  # blocks: a loop over more would not end
_ROOM = 4  # blocks for which a program is compiled at least


class Repeat(AbstractContainer, AbstractPiecewiseLayer):
    """The same `layers` repeated `count` times, each time with separate parameters; they are compiled once.

    Parameters are those of the layers, with a leading axis of length `count`.
    """

    body: Sequential
    count: int = eqx.field(static=True)

    def __init__(self, layers: Any, count: int):
        self.body = Sequential(layer_list(layers))
        self.count = whole(count, "count", 1, _MOST)

    def __repr__(self) -> str:
        return f"Repeat of {len(self.body.layers)} layers, {self.count} times"

    def branches(self):
        return (("body", self.body.layers),)

    def after(self, kind: str) -> str:
        with located("body", self):
            for _ in range(2):
                kind = self.body.after(kind)
        return kind

    def fresh(self) -> bool:
        return self.body.fresh()

    def shape(self, shape: Shape) -> Shape:
        with located("body", self):
            after = self.body.shape(shape)
        if after != shape:
            raise ValueError(f"its layers map shape {shape} to {after}, so they cannot be repeated")
        return shape

    def init(self, key: jax.Array, shape: Shape) -> Params:
        return jax.vmap(lambda k: self.body.init(k, shape))(jax.random.split(key, self.count))

    def lr_factors(self, shape: Shape) -> Params:
        if self.body.shrinks(shape) != 1:
            raise ValueError(
                '`layers` of Repeat must not shrink their outputs, as Dense with parametrization="mean_field" does.'
            )
        return self.body.lr_factors(shape)

    def run(self, leaf: Leaf, params: Params, x: jax.Array) -> jax.Array:
        if leaf is plain:
            return jax.lax.scan(lambda x, p: (self.body(p, x), None), x, params, length=self.count)[0]
        for i in range(self.count):  # a leaf may keep things, which a loop of JAX's cannot
            # Factors may be one number for all layers.
            own = jax.tree.map(lambda a, i=i: a[i] if jnp.ndim(a) else a, params)
            x = self.body.run(leaf, own, x)
        return x

    def limit(self, shape: Shape) -> AbstractWideLayer:
        block = self.body.limit(shape)
        if self.count == 1:
            return block
        return Stacked(
            jax.tree.map(lambda a: jnp.broadcast_to(jnp.asarray(a), (self.count, *jnp.shape(a))), block),
            self.count,
        )

    def need(self, every: bool) -> bool:
        return self.body.need(every)

    def shifts(self) -> bool:
        return self.body.shifts()

    def prepared_by(self, row: Row, every: bool) -> Any:
        raise TypeError("Its limit is prepared.")

    def rows_by(self, walk: Walk, row: Row, every: bool) -> tuple[Row, Any]:
        raise TypeError("Its limit has rows.")

    def pairs_by(self, walk: Walk, one: Any, two: Any, pair: Pair, layout: Layout, every: bool) -> Pair:
        raise TypeError("Its limit has pairs.")


class Stacked(AbstractContainer):
    """Equal blocks one after the other, their numbers stacked: JAX loops over them, which compiles sooner.

    There is room for `count` blocks; if `used` is given, the first so many count. It is not compiled in: networks of
    other depths share their programs.
    """

    block: AbstractWideLayer
    count: int = eqx.field(static=True)
    used: Any = None

    def branches(self):
        return (("block", (self.block,)),)

    def shape(self, shape: Shape) -> Shape:
        return shape

    def run(self, leaf: Leaf, params: Params, x: jax.Array) -> jax.Array:
        raise TypeError("A limit has no parameters.")

    def unstacked(self) -> list[AbstractWideLayer]:
        count = self.count if self.used is None else int(self.used)
        return [jax.tree.map(lambda a, i=i: a[i], self.block) for i in range(count)]

    def roomy(self) -> "Stacked":
        """The same with room for more blocks, for pairs alone."""
        room = max(_ROOM, 1 << (self.count - 1).bit_length())
        block = jax.tree.map(lambda a: _filled(np.asarray(a), room), self.block)
        return Stacked(block, room, np.asarray(self.count, np.int32))

    def need(self, every: bool) -> bool:
        return self.block.need(every)

    def shifts(self) -> bool:
        return self.block.shifts()

    def after(self, kind: str) -> str:
        return self.block.after(kind)

    def prepared_by(self, row: Row, every: bool) -> tuple["Stacked", Row]:
        ready = []
        for block in self.unstacked():
            block, row = prepare(block, row, self.block.need(every))
            ready.append(_functions(block))
        merged = iter([functions[0].merged(functions) for functions in zip(*ready, strict=True)])
        swap = lambda node: next(merged) if _is_function(node) else node
        return jax.tree.map(swap, self, is_leaf=_is_function), row

    def rows_by(self, walk: Walk, row: Row, every: bool) -> tuple[Row, Any]:
        row, data = self._rows_of_blocks(walk, row, self.block.need(every))
        return row if every else row._replace(own=None), data

    def _rows_of_blocks(self, walk: Walk, row: Row, every: bool) -> tuple[Row, Any]:
        """The same; `every`: whether each block, and so also the one before it, compares every two positions."""
        if walk.on_host:
            found = []
            for block in self.unstacked():
                row, data = walk.rows(block, row, every)
                found.append(data)
            return row, jax.tree.map(lambda *a: _filled(namespace(*a).stack(a), self.count), *found)
        assert self.used is None, "Rows of a stack with room for more are made in NumPy."
        first = jax.tree.map(lambda a: a[0], _like(row.size, self.block))
        after = jax.eval_shape(lambda r: walk.rows(first, r, every)[0], row)
        means = row.mean is not None or after.mean is not None

        def step(row: Row, block: AbstractWideLayer) -> tuple[Row, Any]:
            new, data = walk.rows(block, row, every)
            return _with_mean(new, means), data

        return jax.lax.scan(step, _with_mean(row, means), _like(row.size, self.block), length=self.count)

    def pairs_by(self, walk: Walk, one: Any, two: Any, pair: Pair, layout: Layout, every: bool) -> Pair:
        inner = self.block.need(every)
        found = self._pairs_of_blocks(walk, one, two, pair, layout, inner)
        return found if every else demoted(found, layout.at(layout.rank, inner))

    def _pairs_of_blocks(
        self, walk: Walk, one: Any, two: Any, pair: Pair, layout: Layout, every: bool
    ) -> Pair:
        if walk.on_host:
            for i, block in enumerate(self.unstacked()):
                data1, data2 = (jax.tree.map(lambda a, i=i: a[i], side) for side in (one, two))
                pair = walk.pairs(block, data1, data2, pair, layout, every)
            return pair

        def step(pair: Pair, xs: Any) -> Pair:
            block, data1, data2 = xs
            return walk.pairs(block, data1, data2, pair, layout, every)

        all_blocks = _like(pair.gap, self.block), one, two
        if self.used is None:
            return jax.lax.scan(lambda pair, xs: (step(pair, xs), None), pair, all_blocks, length=self.count)[
                0
            ]
        at = lambda i: jax.tree.map(lambda a: a[i], all_blocks)
        return jax.lax.fori_loop(0, self.used, lambda i, pair: step(pair, at(i)), pair)


def _with_mean(row: Row, means: bool) -> Row:
    """The same moments, a mean of zero written out: a loop needs one structure."""
    return row._replace(mean=0.0 * row.size) if means and row.mean is None else row


def _like(array: Any, tree: Any) -> Any:
    """`tree` in the precision of `array`."""
    return jax.tree.map(lambda a: jnp.asarray(a, array.dtype) if eqx.is_inexact_array(a) else a, tree)


def _filled(a: Any, room: int) -> Any:
    """With the last entry repeated until there are `room` of them."""
    return a if len(a) == room else namespace(a).concatenate([a, *[a[-1:]] * (room - len(a))])


def _is_function(node: Any) -> bool:
    return isinstance(node, AbstractActivation)


def _functions(tree: Any) -> list[AbstractActivation]:
    """The activations inside, in order."""
    return [node for node in jax.tree.leaves(tree, is_leaf=_is_function) if _is_function(node)]


def stacked(blocks: list[AbstractWideLayer]) -> AbstractWideLayer:
    """Blocks of one structure in one; of concrete numbers, without a compiler."""
    if len(blocks) == 1:
        return blocks[0]
    xp: Any = jnp if is_traced(blocks) else np
    stack = lambda *leaves: xp.stack([xp.asarray(leaf) for leaf in leaves])
    return Stacked(jax.tree.map(stack, *blocks), len(blocks))


def grouped(layers: Sequential, shape: Shape) -> Sequential:
    """The same layers of a limit, for inputs of a shape, with equal blocks in a row stacked."""
    found: list[Any] = []
    rest = list(layers.layers)
    while rest:
        period, count = _best_run(rest, shape)
        shape = Sequential(rest[: period * count]).shape(shape)
        blocks = [Sequential(rest[k * period : (k + 1) * period]) for k in range(count)]
        found += [stacked(list(blocks))] if count > 1 else rest[:period]
        rest = rest[period * count :]
    return Sequential(found)


def roomy(layers: Sequential) -> Sequential:
    """The same layers of a limit, whose pairs are compiled for other numbers of equal blocks, too."""
    is_stack = lambda node: isinstance(node, Stacked)
    return jax.tree.map(lambda node: node.roomy() if is_stack(node) else node, layers, is_leaf=is_stack)


def _best_run(layers: list[Any], shape: Shape) -> tuple[int, int]:
    """(length, number) of equal blocks at the beginning that keep all positions, the longest run there is."""
    best = (1, 1)
    for period in range(1, min(_LONGEST, len(layers) // 2) + 1):
        block = Sequential(layers[:period])
        least = _UNROLLED + 1 if block.depends_on_range() else 2
        if block.after("gaussian") != "gaussian" or any(isinstance(l, Stacked) for l in block.layers):
            continue
        if block.shape(shape)[:-1] != shape[:-1]:
            continue
        structure: Any = jax.tree.structure(block)
        count = 1
        while structure == jax.tree.structure(Sequential(layers[count * period : (count + 1) * period])):
            count += 1
        if count >= least and count * period > best[0] * best[1]:
            best = (period, count)
    return best
