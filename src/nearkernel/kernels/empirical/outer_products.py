"""Tangent kernels of networks layer by layer, without Jacobians.

The gradient of an output by the weights of a layer is a sum over positions of outer products: what enters the layer,
times the signal that comes back to it. Signals are derivatives by a *tap*, a zero that is added to what the layer puts
out; so branches, norms and nesting need no special treatment.

Without positions, dot products of such gradients are entrywise products of two small Gram matrices. With many positions
it is cheaper to sum the outer products first, layer by layer.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.types import Array, Params, PyTree
from ...models.layers.base import AbstractLayer, AbstractOuterLayer
from ...models.layers.dense import Dense
from ...models.networks.network import AbstractNetwork
from .gram_strips import Term, lower_half

_STRIP_BYTES = 64 * 2**20


class LayerSide(NamedTuple):
    """One layer: what enters (n, positions, fan_in + 1) and the signal (n, out, positions, width).

    The signal of a last dense layer is the identity: None.
    """

    enters: Array
    signal: PyTree


Side = list[LayerSide]


def contracts(layer: AbstractLayer) -> bool:
    """Whether all layers with parameters have gradients that are outer products."""
    inner = [each for _, layers in layer.branches() for each in layers]
    if inner:
        return all(contracts(each) for each in inner)
    return isinstance(layer, AbstractOuterLayer) or not layer.has_params()


@jax.jit
def layer_side(net: AbstractNetwork, params, factors, x) -> Side:
    """What enters each layer, and the signal that comes back to it."""
    layers, both = net.layers, _zipped(params, factors)
    last = layers.layers[-1] if isinstance(layers.layers[-1], Dense) else None

    def run(taps: list | None) -> tuple[jax.Array, list]:
        entered: list = []

        def leaf(layer: PyTree, pair: PyTree, x: jax.Array) -> jax.Array:
            if not layer.has_params():
                return layer(None, x)
            own, factor = pair
            entered.append(layer.enters(x, factor))
            z = layer(own, x)
            if layer is last:
                return z
            return z + taps[len(entered) - 1] if taps is not None else _kept(shapes, z)

        return layers.run(leaf, both, x).sum(axis=0), entered

    shapes: list = []
    jax.eval_shape(lambda: run(None))
    taps = [jnp.zeros(shape, dtype) for shape, dtype in shapes]
    if not taps:
        return [LayerSide(entered, None) for entered in run(taps)[1]]
    signals, entered = jax.jacrev(run, has_aux=True)(taps)  # (out, n, *positions, width) each
    moved = [jnp.moveaxis(s, 0, 1).reshape(len(x), s.shape[0], -1, s.shape[-1]) for s in signals]
    return [LayerSide(e, s) for e, s in zip(entered, [*moved, None] if last else moved, strict=True)]


def _kept(shapes: list, z: jax.Array) -> jax.Array:
    shapes.append((z.shape, z.dtype))
    return z


def _zipped(params: Params, factors: Params) -> Params:
    """Each layer's parameters beside its factors, in the nesting of the layers."""
    if isinstance(params, list | tuple):
        return [_zipped(p, f) for p, f in zip(params, factors, strict=True)]
    return (params, factors)


@jax.jit(static_argnums=(2, 3))
def _contract(side1: Side, side2: Side, out: int, full: bool):
    total: Array | float = 0.0
    for one, two in zip(side1, side2, strict=True):
        if one.signal is None:
            # A dense layer at the end has one position.
            enters = jnp.einsum("npi,mpi->nm", one.enters, two.enters)
            total += enters[:, None, :, None] * jnp.eye(out)[:, None, :] if full else enters
        elif _gram_wins(one, two):
            total += _by_grams(one, two, out, full)
        else:
            total += _by_gradients(one, two, out, full)
    return total


def _gram_wins(one: LayerSide, two: LayerSide) -> bool:
    """Whether two Gram matrices of all positions cost less than one of all weights."""
    positions, fan, width = one.enters.shape[1], one.enters.shape[2], one.signal.shape[3]
    return positions == 1 or positions**2 * (fan + width) < fan * width


def _by_grams(one: LayerSide, two: LayerSide, out: int, full: bool) -> jax.Array:
    if one.enters.shape[1] == 1:
        enters = one.enters[:, 0] @ two.enters[:, 0].T
        left, right = (side.signal.reshape(len(side.signal), out, -1) for side in (one, two))
        if full:
            signal = left.reshape(-1, left.shape[2]) @ right.reshape(-1, right.shape[2]).T
            return signal.reshape(len(enters), out, -1, out) * enters[:, None, :, None]
        signal = left.reshape(len(left), -1) @ right.reshape(len(right), -1).T
        return signal * (enters / out)
    enters = jnp.einsum("npi,mqi->npmq", one.enters, two.enters)
    if full:
        return jnp.einsum("npmq,nopw,mrqw->nomr", enters, one.signal, two.signal)
    signal = jnp.einsum("nopw,moqw->npmq", one.signal, two.signal)
    return jnp.einsum("npmq,npmq->nm", enters, signal) / out


def _by_gradients(one: LayerSide, two: LayerSide, out: int, full: bool) -> jax.Array:
    left, right = _gradients(one), _gradients(two)
    if full:
        gram = left.reshape(len(left) * out, -1) @ right.reshape(len(right) * out, -1).T
        return gram.reshape(len(left), out, -1, out)
    return left.reshape(len(left), -1) @ right.reshape(len(right), -1).T / out


def layer_contraction(side1: Side, side2: Side, out: int, full: bool) -> np.ndarray:
    """sum over layers of (enters . enters) * (signal . signal): (n1, out, n2, out), or its mean over outputs."""
    if side2 is side1:
        return contraction_with_itself(side1, out, full)
    n1, n2 = len(side1[0].enters), len(side2[0].enters)
    rows = max(1, _STRIP_BYTES // (8 * n2 * (out * out if full else 1)))
    if rows >= n1:
        return np.array(_contract(side1, side2, out, full))
    kernel = np.empty((n1, out, n2, out) if full else (n1, n2))
    for start in range(0, n1, rows):
        at = min(start, n1 - rows)  # the last strip overlaps the one before: one shape, one compilation
        strip = jax.tree.map(lambda a, at=at: a[at : at + rows], side1)
        kernel[at : at + rows] = _contract(strip, side2, out, full)
    return kernel


def contraction_with_itself(side: Side, out: int, full: bool) -> np.ndarray:
    """The same of one side: a symmetric matrix, half of which is computed, by BLAS."""
    n, per = len(side[0].enters), out if full else 1
    scale = 1.0 if full else 1.0 / out
    flat = [each for each in side if _without_positions(each)]
    kernel = (
        lower_half([_term(each, n, per, scale) for each in flat], n, per)
        if flat
        else np.zeros((n * per, n * per))
    )
    for each in side:
        if _without_positions(each):
            continue
        if _gram_wins(each, each):
            kernel += np.asarray(_by_grams_of_positions(each, out, full)).reshape(n * per, n * per)
        else:  # one layer at a time: gradients are large
            kernel += lower_half(
                [Term(None, np.asarray(_gradients(each)).reshape(n * per, -1), scale)], n, per
            )
    return kernel.reshape(n, out, n, out) if full else kernel


def _without_positions(each: LayerSide) -> bool:
    return each.signal is None or each.enters.shape[1] == 1


def _term(each: LayerSide, n: int, per: int, scale: float) -> Term:
    """Of a layer without positions."""
    enters = np.asarray(each.enters).reshape(n, -1)
    if each.signal is None:
        return Term(enters, None, 1.0)
    return Term(enters, np.asarray(each.signal).reshape(n * per, -1), scale)


@jax.jit
def _gradients(each: LayerSide) -> jax.Array:
    """By the weights of a layer, (n, out, width, fan_in + 1)."""
    return jnp.einsum("nopw,npi->nowi", each.signal, each.enters)


@jax.jit(static_argnums=(1, 2))
def _by_grams_of_positions(each: LayerSide, out: int, full: bool) -> jax.Array:
    return _by_grams(each, each, out, full)


@jax.jit
def moving_layer_side(net: AbstractNetwork, params, direction, factors, x) -> tuple[Side, Side]:
    """`layer_side`, and how it moves with the parameters."""
    return jax.jvp(lambda p: layer_side(net, p, factors, x), (params,), (direction,))


def layer_drift(side1: Side, moves1: Side, side2: Side, out: int) -> np.ndarray:
    """How the contraction moves with its first side, (n1, out, n2, out), a strip of rows at a time."""
    n1, n2 = len(side1[0].enters), len(side2[0].enters)
    rows = max(1, _STRIP_BYTES // (2 * 8 * n2 * out * out))
    drift = np.empty((n1, out, n2, out))
    for start in range(0, n1, rows):
        at = max(min(start, n1 - rows), 0)
        strip, moves = jax.tree.map(lambda a, at=at: a[at : at + rows], (side1, moves1))
        drift[at : at + rows] = _drift(strip, moves, side2, out)
    return drift


@jax.jit(static_argnums=3)
def _drift(side1: Side, moves1: Side, side2: Side, out: int):
    return jax.jvp(lambda side: _contract(side, side2, out, True), (side1,), (moves1,))[1]
