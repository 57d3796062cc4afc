"""Initial weights of other laws than the normal one."""

from typing import Any

import jax
import jax.numpy as jnp

from ..._base.check import real_number, shown
from ..._base.keys import Key, random_key
from ..._run.precision import in_float64
from ..base import Params
from .mlp import MLP

UNIFORM = 1.8


@in_float64
def symmetric_init(net: MLP, key: Key, kurtosis: float = UNIFORM) -> Params:
    """Parameters of `net` with the weight variance of `net.init` but another symmetric distribution.

    **Arguments:** `net`, an `nk.MLP`; `key`; `kurtosis` > 1, the fourth moment of the weights divided by their
    squared variance: 1.8 is the uniform distribution, 3 the normal. Below 3 the weights are bounded, with density
    proportional to $(1 - w^2/c^2)^{a - 1}$ on $[-c, c]$; above 3 they are normal with a random, gamma-distributed
    variance. Biases are normal.
    """
    if not isinstance(net, MLP):
        raise TypeError(f"`net` must be an nk.MLP; got {shown(net)}.")
    kurtosis = float(real_number(kurtosis, "kurtosis"))
    if not 1 < kurtosis <= 1e6:
        raise ValueError(f"`kurtosis` must be greater than 1 and at most 1e6; got {kurtosis:g}.")
    draw_key, key = jax.random.split(random_key(key))
    params = net.init(draw_key)
    keys = jax.random.split(key, len(params))
    found = []
    for layer, (entry, own) in enumerate(zip(params, keys, strict=True)):
        dense, fan_in = net.dense(layer), net.sizes[layer]
        size = jnp.sqrt(dense.weight_var / fan_in) if dense.parametrization == "standard" else 1.0
        found.append({**entry, "weight": size * _unit(own, entry["weight"].shape, kurtosis)})
    return found


def _unit(key: Any, shape: tuple[int, ...], kurtosis: float) -> jax.Array:
    """Draws of mean 0, variance 1 and this fourth moment."""
    if kurtosis < 3:
        a = 3 / (3 - kurtosis) - 1.5  # Beta(a, a) on [-1, 1]: variance 1/(2 a + 1), kurtosis 3 - 6/(2 a + 3)
        return jnp.sqrt(2 * a + 1) * (2 * jax.random.beta(key, a, a, shape, jnp.float64) - 1)
    normal, gamma = jax.random.split(key)
    draws = jax.random.normal(normal, shape, jnp.float64)
    if kurtosis == 3:
        return draws
    a = 3 / (kurtosis - 3)  # variance of variance 1/a
    return draws * jnp.sqrt(jax.random.gamma(gamma, a, shape, jnp.float64) / a)
