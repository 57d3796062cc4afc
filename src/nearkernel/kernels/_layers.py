"""The tangent kernel of an MLP layer by layer, without Jacobians.

The gradient of output o by the weights of layer l is an outer product of what enters the layer and of the
backpropagated signal, so its dot products are entrywise products of two small Gram matrices.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..models import MLP

_STRIP_BYTES = 64 * 2**20


class Layer(NamedTuple):
    """`enters` (n, fan_in + 1), with a column for the bias; `signal` (n, out, fan_out), None in the last layer."""

    enters: np.ndarray
    signal: np.ndarray | None


def layer_sides(net: MLP, params, factors, x: np.ndarray) -> list[Layer]:
    enters, signals = _forward_backward(net, params, factors, x)
    return [Layer(*jax.tree.map(np.asarray, pair)) for pair in zip(enters, signals, strict=True)]


@jax.jit
def _forward_backward(net: MLP, params, factors, x):
    z = net.layer_outputs(params, x)
    enters, signals = [], [None]
    for layer, factor in enumerate(factors):
        s = net.activation(z[layer - 1]) if layer else x
        weight_scale, bias_scale = net._scales(layer)
        bias = jnp.full((len(s), 1), bias_scale * jnp.sqrt(factor["bias"]))
        enters.append(jnp.concatenate([weight_scale * jnp.sqrt(factor["weight"]) * s, bias], axis=1))
    signal = jnp.broadcast_to(jnp.eye(net.out_dim), (len(x), net.out_dim, net.out_dim))
    for layer in range(len(params) - 1, 0, -1):
        slope = jax.jvp(net.activation, (z[layer - 1],), (jnp.ones_like(z[layer - 1]),))[1]
        weight = net._scales(layer)[0] * params[layer]["weight"]
        back = signal @ weight.T if layer < len(params) - 1 else weight.T  # the last signal is the identity
        signal = back * slope[:, None]
        signals.insert(0, signal)
    return enters, signals


def layer_contraction(side1: list[Layer], side2: list[Layer] | None, out: int, full: bool) -> np.ndarray:
    """sum over layers of (enters . enters) * (signal . signal): (n1, out, n2, out), or its mean over outputs."""
    other = side1 if side2 is None else side2
    n1, n2 = len(side1[0].enters), len(other[0].enters)
    found = np.zeros((n1, out, n2, out) if full else (n1, n2))
    rows = max(1, _STRIP_BYTES // (8 * n2 * (out * out if full else 1)))
    for start in range(0, n1, rows):
        strip = slice(start, min(start + rows, n1))
        for layer1, layer2 in zip(side1, other, strict=True):
            enters = layer1.enters[strip] @ layer2.enters.T
            if (layer1.signal is None or layer2.signal is None) and full:
                found[strip][:, np.arange(out), :, np.arange(out)] += enters
            elif layer1.signal is None or layer2.signal is None:
                found[strip] += enters
            elif full:
                signal = (
                    layer1.signal[strip].reshape(-1, layer1.signal.shape[2])
                    @ layer2.signal.reshape(n2 * out, -1).T
                )
                found[strip] += signal.reshape(-1, out, n2, out) * enters[:, None, :, None]
            else:
                signal = layer1.signal[strip].reshape(len(enters), -1) @ layer2.signal.reshape(n2, -1).T
                found[strip] += np.multiply(signal, enters, out=signal) / out
    return found
