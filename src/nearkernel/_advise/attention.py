"""`nearkernel advise --block prenorm --tokens`: what attention in every block does to tokens and their gradients.

A block is z + Attention(LayerNorm(z)), then z + W s(LayerNorm(z)). Scores are divided by the dimension d of a head, as
muP needs; at large d they vanish at initialization, and attention is a mean over tokens. Of T tokens with variance k
and covariance p, and of small changes with g and h,

    k' = k + C (1 + (T - 1) p/k) / T,     p' the same from p;      g' = g + C (g + (T - 1) h) / (T k),    h' from h

with C = C_W^2 of values and output weights; then the layer with weights, by averages at unit variance.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

_NETWORKS, _WIDEST, _WEIGHTS = 8, 256, 2 * 10**8


@dataclasses.dataclass(frozen=True)
class Tokens:
    """After all blocks: growth of signals and gradients (of sizes, not squares) and the correlation of two tokens."""

    signal: float
    gradient: float
    correlation: float


@dataclasses.dataclass(frozen=True)
class Attended:
    """What is predicted, measured, and the standard errors."""

    tokens: int
    blocks: int
    width: int  # of the networks that were drawn
    networks: int
    predicted: Tokens
    measured: Tokens
    errors: Tokens


def attended(activation: str, weight_var: float, blocks: int, width: int, tokens: int, seed: int) -> Attended:
    s = nk.activations.get(activation)
    width = min(width, _WIDEST)
    networks = int(np.clip(_WEIGHTS // max(1, 5 * blocks * width**2), 4, _NETWORKS))
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), networks)
        draws = np.asarray(_draw(s, blocks, width, tokens, weight_var, keys))
    mean, error = draws.mean(axis=0), draws.std(axis=0, ddof=1) / networks**0.5
    return Attended(
        tokens, blocks, width, networks, predicted(s, weight_var, blocks, tokens), Tokens(*mean.tolist()),
        Tokens(*error.tolist()),
    )  # fmt: skip


def predicted(activation: Any, weight_var: float, blocks: int, tokens: int) -> Tokens:
    """At infinite width, for tokens that are independent before the first block."""
    k, p, g, h = 1.0, 0.0, 1.0, 0.0
    for _ in range(blocks):
        mixed = weight_var**2 * (1 + (tokens - 1) * p / k) / tokens
        moved = weight_var**2 * (g + (tokens - 1) * h) / (tokens * k)
        k, p, g, h = k + mixed, p + mixed, g + moved, h + moved
        at = np.array([1.0, min(p / k, 1.0)])
        values, slopes = nk.activations.dual(activation, 1.0, 1.0, at)
        g, h = g * (1 + weight_var * slopes[0] / k), h * (1 + weight_var * slopes[1] / k)
        k, p = k + weight_var * values[0], p + weight_var * values[1]
    return Tokens(float(np.sqrt(k)), float(np.sqrt(g)), float(p / k))


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _draw(activation: Any, blocks: int, width: int, tokens: int, weight_var: Any, keys: Any) -> Any:
    """(networks, 3): the fields of `Tokens` in drawn networks."""
    norm = lambda z: nk.layers.LayerNorm()(None, z)

    def drawn(key):
        return jnp.sqrt(weight_var / width) * jax.random.normal(key, (width, width))

    def block(z, key):
        query, key_, value, output, dense = map(drawn, jax.random.split(key, 5))
        x = norm(z)
        looks = jax.nn.softmax((x @ query) @ (x @ key_).T / width, axis=-1)
        z = z + looks @ (x @ value) @ output
        return z + activation(norm(z)) @ dense

    def network(key):
        first, second, rest = jax.random.split(key, 3)
        z, change = (jax.random.normal(each, (tokens, width)) for each in (first, second))

        def step(carry, key):
            return jax.jvp(lambda z: block(z, key), (carry[0],), (carry[1],)), None

        (end, moved), _ = jax.lax.scan(step, (z, change), jax.random.split(rest, blocks))
        gram = end @ end.T
        alike = (gram.sum() - jnp.trace(gram)) / (max(tokens - 1, 1) * jnp.trace(gram))
        growth = lambda after, before: jnp.sqrt(jnp.mean(after**2) / jnp.mean(before**2))
        return jnp.stack([growth(end, z), growth(moved, change), alike])

    return jax.lax.map(network, keys)
