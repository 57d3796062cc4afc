"""What the weights and the biases of each layer contribute to the tangent kernel of an infinitely wide network.

The tangent kernel is a sum over layers. A walk through the network in which all layers but one add nothing finds the
part of that one.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.namespace import namespace
from ..._run.memory import rows_that_fit
from ...kernels.wide.positions import Entry
from ...models.containers.moment_walk import Walk
from ...models.layers.base import AbstractWideLayer, Pair, Row
from ...models.layers.layout import Layout
from ...models.networks.network import AbstractNetwork
from .block_map import Alone

_BYTES = 2**28


class _One(Walk):
    """A walk in which one layer alone is trained, the `place`-th that has parameters: its weights or, if `bias`, biases
    as if of variance 1. Afterwards, `count` is the number of layers with parameters."""

    on_host = True  # blocks of equal layers are gone through one by one

    def __init__(self, place: Any, bias: Any):
        self.place, self.bias, self.count = place, bias, 0

    def rows(self, layer: AbstractWideLayer, row: Row, every: bool) -> tuple[Row, Any]:
        if not _trains(layer):
            return super().rows(layer, row, every)
        self.count += 1
        found, data = super().rows(layer, row, every)
        untrained = None if row.own is None else _untrained(row.own)
        alone = layer.rows(row._replace(tangent=0.0 * row.tangent, own=untrained))[0].tangent
        return found._replace(tangent=found.tangent - alone + self._own(layer, alone)), data

    def pairs(
        self, layer: AbstractWideLayer, one: Any, two: Any, pair: Pair, layout: Layout, every: bool
    ) -> Pair:
        found = super().pairs(layer, one, two, pair, layout, every)
        if not _trains(layer):
            return found
        alone = super().pairs(layer, one, two, _untrained(pair), layout, every).tangent
        return found._replace(tangent=found.tangent - alone + self._own(layer, alone))

    def _own(self, layer: Any, alone: Any) -> Any:
        xp = namespace(alone)
        own = xp.where(self.bias, 1.0, alone - getattr(layer, "bias_var", 0.0))
        return xp.where(self.place == self.count - 1, own, 0.0)


@jax.jit
def _share(layers: AbstractWideLayer, row: Row, place: Any, bias: Any) -> jax.Array:
    return jnp.mean(_One(place, bias).rows(layers, row, False)[0].tangent)


def _trains(layer: AbstractWideLayer) -> bool:
    return layer.has_params() and not layer.branches()


def _untrained(pair: Pair) -> Pair:
    return pair._replace(tangent=0.0 * pair.tangent)


def tangent_shares(net: AbstractNetwork, x: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """For each of `count` layers with parameters, (count,): Theta(x, x) of its weights, and of biases of variance 1.

    Both are averages over inputs: all of them, or as many as fit where positions are compared.
    """
    layers = net.layers.limit(net.in_shape)
    if x.ndim == 2:
        return _of_vectors(layers, x, count)
    every = layers.needs(False)[0]
    if every:
        x = x[: rows_that_fit(64 * math.prod(x.shape[1:-1]) ** 2, _BYTES)]
    row = _entering(x, every)
    if layers.depends_on_range():
        layers, _ = layers.prepared_by(row, False)
    places = range(count)
    weights, biases = (
        [float(_share(layers, row, place, bias)) for place in places] for bias in (False, True)
    )
    return np.array(weights), np.array(biases)


class _All(_One, Alone):
    """The same for many places at once, along a first axis of tangent kernels."""


def _of_vectors(layers: AbstractWideLayer, x: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """All shares in one pass, in NumPy: nothing is compiled, however deep the network."""
    place, bias = np.repeat(np.arange(count), 2)[:, None], np.tile([False, True], count)[:, None]
    row = _entering(x, False)._replace(tangent=np.zeros((2 * count, len(x))))
    plain = jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, layers)
    found = np.asarray(_All(place, bias).rows(plain, row, False)[0].tangent).mean(axis=1)
    return found[0::2], found[1::2]


class Settings(NamedTuple):
    """Of each layer with parameters, in order: `factors` (layers, 2) on the rates of weights and biases; `bias_var`."""

    factors: np.ndarray
    bias_var: np.ndarray


def layer_settings(net: AbstractNetwork) -> Settings:
    factors, variances = [], []

    def leaf(layer: Any, own: Any, x: Any) -> Any:
        if layer.has_params():
            weights = [float(value) for name, value in own.items() if name != "bias"]
            if "query" in own and "key" not in own:  # weights of both: no part of the tangent kernel
                weights = [float(own[name]) for name in ("value", "output")]
            factors.append([1.0 / np.mean(1.0 / np.array(weights)), float(own.get("bias", 1.0))])
            variances.append(float(getattr(layer, "bias_var", 0.0)))
        return np.zeros((1, *layer.shape(x.shape[1:])))

    start: Any = np.zeros((1, *net.in_shape))
    net.layers.run(leaf, net.lr_factors(), start)
    return Settings(np.array(factors), np.array(variances))


def _entering(x: np.ndarray, every: bool) -> Row:
    """Moments of the inputs, with those of every two positions where they are needed."""
    x = np.moveaxis(x, (0, -1), (-1, 0))
    row, data = Entry().rows(jnp.asarray(x))
    if x.ndim == 2:
        return jax.tree.map(np.asarray, row)
    if not every:
        return row
    return row._replace(own=Entry().pairs(data, data, None, Layout(x.ndim - 2, every=True, outer=False)))
