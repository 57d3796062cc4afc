"""Initial weights of other laws than the normal one."""

import jax
import jax.numpy as jnp

from ..._base.check import real_number
from ..._base.keys import Key, random_key
from ..._run.precision import in_float64
from ..base import Params
from .chain import chain_of
from .network import AbstractNetwork

UNIFORM = 1.8


@in_float64
def symmetric_init(net: AbstractNetwork, key: Key, kurtosis: float = UNIFORM) -> Params:
    """Parameters of `net` with the weight variance of `net.init` but another symmetric distribution.

    **Arguments:** `net`, an `nk.MLP` or alternating `Dense` and `Activation`; `key`; `kurtosis` > 1, the fourth
    moment of the weights divided by their squared variance: 1.8 is the uniform distribution, 3 the normal. Below 3 the
    weights are bounded, with density proportional to $(1 - w^2/c^2)^{a - 1}$ on $[-c, c]$; above 3 they are normal with
    a random, gamma-distributed variance. Biases are normal.
    """
    chain = chain_of(net, "symmetric_init", mean_field=True)
    kurtosis = float(real_number(kurtosis, "kurtosis"))
    if not 1 < kurtosis <= 1e6:
        raise ValueError(f"`kurtosis` must be greater than 1 and at most 1e6; got {kurtosis:g}.")
    draw_key, key = jax.random.split(random_key(key))
    entries = chain.entries(net.init(draw_key))
    for stage, own, entry in zip(chain.stages, jax.random.split(key, len(entries)), entries, strict=True):
        entry["weight"] = stage.spread * _unit(own, entry["weight"].shape, kurtosis)
    return chain.params(entries)


def _unit(key: Key, shape: tuple[int, ...], kurtosis: float) -> jax.Array:
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
