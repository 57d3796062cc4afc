"""The tangent kernel of an MLP layer by layer, without Jacobians.

The gradient of output o by the weights of layer l is an outer product of what enters the layer and of the
backpropagated signal, so its dot products are entrywise products of two small Gram matrices.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..models import MLP

_STRIP_BYTES = 64 * 2**20

Side = (
    Any  # a list of (enters (n, fan_in + 1), signal (n, out, fan_out) or None in the last layer), one a layer
)


@jax.jit
def layer_side(net: MLP, params, factors, x) -> Side:
    """What enters each layer, with a column for the bias, and the signal that comes back to it."""
    z = net.layer_outputs(params, x)
    enters = []
    for layer, factor in enumerate(factors):
        s = net.activation(z[layer - 1]) if layer else x
        weight_scale, bias_scale = net.scales(layer)
        bias = jnp.full((len(s), 1), bias_scale * jnp.sqrt(factor["bias"]))
        enters.append(jnp.concatenate([weight_scale * jnp.sqrt(factor["weight"]) * s, bias], axis=1))
    signals: list = [None]
    for layer in range(len(params) - 1, 0, -1):
        slope = jax.jvp(net.activation, (z[layer - 1],), (jnp.ones_like(z[layer - 1]),))[1]
        weight = net.scales(layer)[0] * params[layer]["weight"]
        back = weight.T if signals[0] is None else signals[0] @ weight.T  # the last signal is the identity
        signals.insert(0, back * slope[:, None])
    return list(zip(enters, signals, strict=True))


@jax.jit(static_argnums=(2, 3))
def _contract(side1: Side, side2: Side, out: int, full: bool):
    total: Any = 0.0
    for (enters1, signal1), (enters2, signal2) in zip(side1, side2, strict=True):
        enters = enters1 @ enters2.T
        if signal1 is None:
            total += enters[:, None, :, None] * jnp.eye(out)[:, None, :] if full else enters
        elif full:
            signal = signal1.reshape(-1, signal1.shape[2]) @ signal2.reshape(-1, signal2.shape[2]).T
            total += signal.reshape(len(enters), out, -1, out) * enters[:, None, :, None]
        else:
            signal = signal1.reshape(len(enters), -1) @ signal2.reshape(len(enters2), -1).T
            total += signal * (enters / out)
    return total


def layer_contraction(side1: Side, side2: Side, out: int, full: bool) -> np.ndarray:
    """sum over layers of (enters . enters) * (signal . signal): (n1, out, n2, out), or its mean over outputs."""
    n1, n2 = len(side1[0][0]), len(side2[0][0])
    rows = max(1, _STRIP_BYTES // (8 * n2 * (out * out if full else 1)))
    if rows >= n1:
        return np.array(_contract(side1, side2, out, full))
    found = np.empty((n1, out, n2, out) if full else (n1, n2))
    for start in range(0, n1, rows):
        at = min(start, n1 - rows)  # the last strip overlaps the one before: one shape, one compilation
        strip = jax.tree.map(lambda a, at=at: a[at : at + rows], side1)
        found[at : at + rows] = _contract(strip, side2, out, full)
    return found


@jax.jit
def moving_layer_side(net: MLP, params, direction, factors, x) -> tuple[Side, Side]:
    """`layer_side`, and how it moves with the parameters."""
    return jax.jvp(lambda p: layer_side(net, p, factors, x), (params,), (direction,))


def layer_drift(side1: Side, moves1: Side, side2: Side, out: int) -> np.ndarray:
    """How the contraction moves with its first side, (n1, out, n2, out), a strip of rows at a time."""
    n1, n2 = len(side1[0][0]), len(side2[0][0])
    rows = max(1, _STRIP_BYTES // (2 * 8 * n2 * out * out))
    found = np.empty((n1, out, n2, out))
    for start in range(0, n1, rows):
        at = max(min(start, n1 - rows), 0)
        strip, moves = jax.tree.map(lambda a, at=at: a[at : at + rows], (side1, moves1))
        found[at : at + rows] = _drift(strip, moves, side2, out)
    return found


@jax.jit(static_argnums=3)
def _drift(side1: Side, moves1: Side, side2: Side, out: int):
    return jax.jvp(lambda side: _contract(side, side2, out, True), (side1,), (moves1,))[1]
