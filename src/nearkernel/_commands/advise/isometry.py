r"""In how many directions a small change survives: the spread of the squared singular values of the Jacobian from the
first to the last hidden layer, for layers that are not added to their input.

With $m_k$ the mean of the $k$-th power of squared singular values, $v = m_2/m_1^2 - 1$ adds over factors that are free
of each other: $r = \mathbb{E}[s'^4]/\mathbb{E}[s'^2]^2 - 1$ from the slopes of a layer, and 1 from its weights if they
are independent, 0 if they are orthogonal. $1/(1 + v)$ is the share of directions in which a change survives: 1 for an
isometry. (Pennington, Schoenholz and Ganguli, 2017 and 2018.)
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

from ...statistics.width.gradient_spread import averages
from .blocks import Block
from .flow import LAWS, Flow, orthogonal_weights, standard
from .starts import Start

_WIDEST, _NETWORKS = 128, 8


@dataclasses.dataclass(frozen=True)
class Directions:
    """The share of directions in which a small change survives: predicted, measured and its standard error."""

    predicted: float
    measured: float
    error: float
    networks: int
    width: int


def predicted(activation: str, block: Block, start: Start, flow: Flow) -> float:
    """At infinite width, from the variances of the signal."""
    k = flow.signal[:-1]
    with jax.enable_x64(True):
        at = averages(nk.activations.get(activation), np.ones_like(k) if block.norm else k)
    spread = at["1111"] / at["11"] ** 2 - 1 + (start.law != "orthogonal")
    return float(1 / (1 + spread.sum()))


def directions(
    activation: str, block: Block, start: Start, flow: Flow, depth: int, width: int, seed: int
) -> Directions:
    """Predicted, and measured on random networks of at most 128 neurons per layer, from the first signal of `flow`."""
    drawn_width = min(width, _WIDEST)
    inner = start.variances(width, width)
    shape = (_NETWORKS * (depth - 1), drawn_width, drawn_width)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), 3)
        weights = (
            orthogonal_weights(np.random.default_rng(seed), *shape)
            if start.law == "orthogonal"
            else standard(LAWS[start.law], keys[0], shape) / drawn_width**0.5
        )
        biases = standard(LAWS[start.law], keys[1], shape[:2])
        by_network = lambda a: jnp.asarray(a, jnp.float64).reshape(_NETWORKS, depth - 1, *a.shape[1:])
        first = np.sqrt(flow.signal[0]) * jax.random.normal(keys[2], (_NETWORKS, drawn_width))
        spread = _spread(
            nk.activations.get(activation),
            block.norm,
            first,
            inner[0] ** 0.5 * by_network(weights),
            inner[1] ** 0.5 * by_network(biases),
        )
    shares = 1 / (1 + np.asarray(spread))
    error = float(shares.std(ddof=1) / _NETWORKS**0.5)
    theory = predicted(activation, block, start, flow)
    return Directions(theory, float(shares.mean()), error, _NETWORKS, drawn_width)


@functools.partial(jax.jit, static_argnums=1)
def _spread(activation, norm, first, weights, biases):
    """(networks,): m_2 / m_1^2 - 1."""
    head = (lambda z: activation(nk.layers.LayerNorm()(None, z[None])[0])) if norm else activation

    def network(parts):
        z, *layers = parts

        def layer(carry, made):
            (z, changes), (weight, bias) = carry, made
            after = jax.vmap(lambda change: jax.jvp(head, (z,), (change,))[1])(changes) @ weight
            size = jnp.sqrt(jnp.mean(jnp.sum(after**2, axis=1)))  # kept at 1
            return (head(z) @ weight + bias, after / jnp.maximum(size, 1e-300)), None

        (_, changes), _ = jax.lax.scan(layer, (z, jnp.eye(len(z))), tuple(layers))
        return jnp.sum((changes @ changes.T) ** 2) / len(z) - 1

    return jax.lax.map(network, (first, weights, biases))
