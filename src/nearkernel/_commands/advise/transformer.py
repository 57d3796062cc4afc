"""`nearkernel advise --block transformer`: what blocks of attention and two dense layers do to tokens and gradients.

A block is z + Attention(LayerNorm(z)), then z + W s(V LayerNorm(z)). Scores are divided by the dimension d of a head;
at large d they vanish at initialization, and attention is a mean over tokens. Of T tokens with variance k and
covariance p, and of small changes with g and h,

    k' = k + C (1 + (T - 1) p/k) / T,     p' the same from p;      g' = g + C (g + (T - 1) h) / (T k),    h' from h

with C the product of C_W of values and of outputs; then the dense layers, by averages at the variance C_b + C_W.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

from .blocks import BLOCKS, Point, in_words
from .flow import LAWS, Flow, drawn_layer, mean_and_error, through
from .starts import Start, advised_starts

_NETWORKS, _FEWEST, _WIDEST, _WEIGHTS = 8, 4, 256, 2 * 10**8


def point(activation: str, depth: int, tokens: int) -> Point:
    """The initialization to advise: any variance trains, as in all normalized residual blocks."""
    weight_var, bias_var = 1.0, 0.0
    (start,) = advised_starts(weight_var, bias_var, BLOCKS["transformer"], orthogonal=False)
    found = predicted(activation, tokens, start, depth, 1, 1, 1.0)
    assert found.alike is not None
    numbers = {
        "blocks": max(depth - 1, 1),
        "tokens": tokens,
        "signal_growth": float(found.signal[-1] / found.signal[0]),
        "gradient_growth": float(found.gradient[-1]),
        "depth_scale": np.inf,
        "correlation_from": float(found.alike[0]),
        "correlation_to": float(found.alike[-1]),
    }
    block = BLOCKS["transformer"]
    text = in_words(block, numbers, weight_var, bias_var)
    s = nk.activations.get(activation)
    return Point(s, weight_var, bias_var, np.nan, block.name, text, numbers)


def predicted(
    activation: str, tokens: int, start: Start, depth: int, width: int, in_dim: int, size: float
) -> Flow:
    """At infinite width, for inputs of mean square `size` whose tokens are independent."""
    s = nk.activations.get(activation)
    weight_var, bias_var = start.first(in_dim, width)
    values, outputs = start.attention(width)
    k, p, g, h = bias_var + weight_var * size, bias_var, 1.0, 0.0
    signal, gradient, alike = [k], [g], [p / k]
    weight_var, bias_var = start.variances(width, width)
    for _ in range(depth - 1):
        mixed = values * outputs * (1 + (tokens - 1) * p / k) / tokens
        moved = values * outputs * (g + (tokens - 1) * h) / (tokens * k)
        k, p, g, h = k + mixed, p + mixed, g + moved, h + moved
        inner = bias_var + weight_var
        at = np.array([1.0, min((bias_var + weight_var * p / k) / inner, 1.0)])
        products, slopes = nk.theory.dual(s, inner, inner, at)
        last = start.after * weight_var
        g, h = g * (1 + last * weight_var * slopes[0] / k), h * (1 + last * weight_var * slopes[1] / k)
        k, p = k + bias_var + last * products[0], p + bias_var + last * products[1]
        for found, value in zip((signal, gradient, alike), (k, g, p / k), strict=True):
            found.append(float(value))
    zero = np.zeros(depth)
    return Flow(np.array(signal), np.array(gradient), zero, zero, alike=np.array(alike), alike_error=zero)


def measured(
    activation: str, tokens: int, start: Start, depth: int, width: int, in_dim: int, size: float, seed: int
) -> Flow:
    """The same on random networks of at most 256 neurons per layer, drawn as the framework draws them."""
    drawn_width = min(width, _WIDEST)
    networks = int(np.clip(_WEIGHTS // (6 * depth * drawn_width**2), _FEWEST, _NETWORKS))
    with jax.enable_x64(True):
        draws = _draw(
            nk.activations.get(activation),
            LAWS[start.law],
            depth,
            drawn_width,
            tokens,
            min(in_dim, 4096),
            start.first(in_dim, width),
            start.attention(width),
            start.variances(width, width),
            start.after,
            size,
            jax.random.split(jax.random.key(seed), networks),
        )
    signal, gradient, alike = (np.asarray(each) for each in draws)
    mean_signal, signal_error = mean_and_error(signal)
    mean_gradient, gradient_error = mean_and_error(gradient)
    alike_error = alike.std(axis=0, ddof=1) / networks**0.5
    return Flow(
        mean_signal, mean_gradient, signal_error, gradient_error, networks, drawn_width,
        alike.mean(axis=0), alike_error,
    )  # fmt: skip


def drawn_block(law, key, width: int, heads, inner, after) -> dict[str, dict[str, jax.Array]]:
    """The six layers of a block, with `heads` = C_W of queries, keys and values, and of outputs; `inner` = C_W, C_b of
    the dense ones, in the second with a factor `after` on C_W."""
    (values, outputs), (weight_var, bias_var) = heads, inner
    variances = {
        "query": (values,),
        "key": (values,),
        "value": (values,),
        "output": (outputs,),
        "before": inner,
        "after": (after * weight_var, bias_var),
    }
    keys = jax.random.split(key, len(variances))
    return {
        name: drawn_layer(law, k, width, width, *each)
        for k, (name, each) in zip(keys, variances.items(), strict=True)
    }


def block(activation, layers: dict[str, dict[str, jax.Array]], z: jax.Array) -> jax.Array:
    """Tokens (..., tokens, width) after a block."""
    x = normalized(z)
    query, key, value = (through(layers[name], x) for name in ("query", "key", "value"))
    looks = jax.nn.softmax(query @ jnp.swapaxes(key, -1, -2) / z.shape[-1], axis=-1)
    z = z + through(layers["output"], looks @ value)
    return z + through(layers["after"], activation(through(layers["before"], normalized(z))))


def normalized(z: jax.Array) -> jax.Array:
    return nk.layers.LayerNorm()(None, z)


@functools.partial(jax.jit, static_argnums=(2, 3, 4, 5))
def _draw(
    activation, law, depth: int, width: int, tokens: int, in_dim: int, first, heads, inner, after, size, keys
):
    """(networks, depth) each: mean squares of tokens and of a change of them, and correlations of two tokens."""

    def moments(z, change):
        gram = z @ z.T
        alike = (gram.sum() - jnp.trace(gram)) / ((tokens - 1) * jnp.trace(gram))
        return jnp.mean(z**2), jnp.mean(change**2), alike

    def network(key):
        keys = jax.random.split(key, depth + 2)
        x = jax.random.normal(keys[0], (tokens, in_dim))
        x = x * jnp.sqrt(size / jnp.mean(x**2, axis=1, keepdims=True))
        z = through(drawn_layer(law, keys[1], in_dim, width, *first), x)
        change = jax.random.normal(keys[2], z.shape)
        change = change / jnp.sqrt(jnp.mean(change**2))

        def step(carry, key):
            layers = drawn_block(law, key, width, heads, inner, after)
            z, change = jax.jvp(lambda z: block(activation, layers, z), carry[:1], carry[1:])
            return (z, change), moments(z, change)

        _, later = jax.lax.scan(step, (z, change), keys[3:])
        return [jnp.append(a, b) for a, b in zip(moments(z, change), later, strict=True)]

    return jax.lax.map(network, keys)
