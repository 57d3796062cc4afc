"""Layers made of layers, and the simplest of them: one after the other."""

import abc
import functools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax

from ..._base.check import listed
from ..layers.base import AbstractLayer, AbstractPiecewiseLayer, Pair, Params, Row, Shape, located
from ..layers.layout import Layout
from .moment_walk import AbstractWideContainer, Walk, demoted, prepare

Leaf = Callable[[AbstractLayer, Params, jax.Array], jax.Array]


def plain(layer: AbstractLayer, params: Params, x: jax.Array) -> jax.Array:
    """Evaluates a layer."""
    return layer(params, x)


class AbstractContainer(AbstractWideContainer):
    """A layer made of layers, which evaluates them by a function that it is given (`run`)."""

    @abc.abstractmethod
    def run(self, leaf: Leaf, params: Params, x: jax.Array) -> jax.Array:
        """Outputs at `params` and `x`, with `leaf(layer, params, x)` for each layer that is not made of others."""

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        return self.run(plain, params, x)

    def absorbs(self, following: AbstractLayer) -> bool:
        """Whether the layer `following` it may stand in each of its branches instead (`absorbing`)."""
        return False

    def absorbing(self, following: AbstractLayer) -> "AbstractContainer":
        """This layer with the one `following` it in each of its branches."""
        raise TypeError(f"{type(self).__name__} absorbs nothing.")

    def has_params(self) -> bool:
        return any(layer.has_params() for _, layers in self.branches() for layer in layers)


def evaluate(layer: AbstractLayer, leaf: Leaf, params: Params, x: jax.Array) -> jax.Array:
    return layer.run(leaf, params, x) if isinstance(layer, AbstractContainer) else leaf(layer, params, x)


def layer_list(layers: Any, name: str = "layers") -> list[Any]:
    """`layers` as a list; what is in it is looked at when a network is made, which knows the place."""
    return listed(layers, name, "[nk.layers.Dense(64), nk.layers.Activation()]")


def absorbs(layer: Any, following: AbstractLayer) -> bool:
    """Whether the limit of two layers is that of the first one, with the second in each of its branches."""
    return isinstance(layer, AbstractContainer) and layer.absorbs(following)


class Sequential(AbstractContainer, AbstractPiecewiseLayer):
    """Layers one after the other. Parameters are a list with one entry per layer that has any."""

    layers: tuple[Any, ...]

    def __init__(self, layers: Any):
        self.layers = tuple(layers)

    def branches(self):
        return (("layers", self.layers),)

    def shape(self, shape: Shape) -> Shape:
        for i, layer in enumerate(self.layers):
            with located(f"[{i}]", layer):
                shape = layer.shape(shape)
        return shape

    def shapes(self, shape: Shape) -> Iterator[tuple[Any, Shape]]:
        """Each layer with the shape of its input."""
        for layer in self.layers:
            yield layer, shape
            shape = layer.shape(shape)

    def after(self, kind: str) -> str:
        before: Any = None
        for i, layer in enumerate(self.layers):
            if kind == "groups" and not absorbs(before, layer):
                kind = "features"
            with located(f"[{i}]", layer):
                kind = layer.after(kind)
            before = layer
        return kind

    def fresh(self) -> bool:
        return any(layer.fresh() for layer in self.layers)

    def init(self, key: jax.Array, shape: Shape) -> Params:
        keys = jax.random.split(key, max(1, len(self.layers)))
        found = [layer.init(k, s) for (layer, s), k in zip(self.shapes(shape), keys, strict=False)]
        return [params for params, layer in zip(found, self.layers, strict=True) if layer.has_params()]

    def lr_factors(self, shape: Shape) -> Params:
        """Layers before one in mean-field scaling get gradients that are smaller by the root of its fan-in."""
        found: list[Params] = []
        grown = 1.0
        for layer, s in reversed(list(self.shapes(shape))):
            if layer.has_params():
                found.insert(0, jax.tree.map(functools.partial(operator.mul, grown), layer.lr_factors(s)))
            grown *= layer.shrinks(s)
        return found

    def shrinks(self, shape: Shape) -> float:
        return math.prod(layer.shrinks(s) for layer, s in self.shapes(shape))

    def run(self, leaf: Leaf, params: Params, x: jax.Array) -> jax.Array:
        rest = iter(params or ())
        for layer in self.layers:
            x = evaluate(layer, leaf, next(rest) if layer.has_params() else None, x)
        return x

    def limit(self, shape: Shape) -> "Sequential":
        found: list[Any] = []
        for layer, s in self.shapes(shape):
            if found and absorbs(found[-1], layer):
                found[-1] = found[-1].absorbing(layer)
            else:
                found.append(layer.limit(s))
        return Sequential(found)

    def need(self, every: bool) -> bool:
        return self.needs(every)[0]

    def needs(self, every: bool) -> list[bool]:
        """Whether every two positions are needed before each layer, and at last after all of them."""
        found = [every]
        for layer in reversed(self.layers):
            found.insert(0, layer.need(found[0]))
        return found

    def rank(self, rank: int) -> int:
        for layer in self.layers:
            rank = layer.rank(rank)
        return rank

    def shifts(self) -> bool:
        return all(layer.shifts() for layer in self.layers)

    def prepared_by(self, row: Row, every: bool) -> tuple["Sequential", Row]:
        found, needs = [], self.needs(every)
        for layer, before, after in zip(self.layers, needs[:-1], needs[1:], strict=True):
            layer, row = prepare(layer, row if before else row._replace(own=None), after)
            found.append(layer)
        return Sequential(found), row

    def rows_by(self, walk: Walk, row: Row, every: bool) -> tuple[Row, Any]:
        found, needs = [], self.needs(every)
        for layer, before, after in zip(self.layers, needs[:-1], needs[1:], strict=True):
            row, data = walk.rows(layer, row if before else row._replace(own=None), after)
            found.append(data)
        return row, found

    def pairs_by(self, walk: Walk, one: Any, two: Any, pair: Pair, layout: Layout, every: bool) -> Pair:
        needs = self.needs(every)
        for layer, data1, data2, before, after in zip(
            self.layers, one, two, needs[:-1], needs[1:], strict=True
        ):
            if not before:
                pair, layout = demoted(pair, layout), layout.at(layout.rank, False)
            pair = walk.pairs(layer, data1, data2, pair, layout, after)
            layout = layout.at(layer.rank(layout.rank), after)
        return pair if every else demoted(pair, layout)
