"""How Gaussian are the outputs of a network of finite width?"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats

from .._check import inputs, whole
from .._keys import Key, random_key
from .._precision import in_float64
from .._result import Result
from ..kernels import NNGP
from ..models import MLP

_CHUNK = 1024
_GRID = np.linspace(0.05, 5.0, 100)  # in standard deviations; the laws are symmetric


class Gaussianity(Result, eqx.Module):
    """The law of one output at each input, against the Gaussian of infinite width.

    **Fields** (each one number an input): `kurtosis`, the excess kurtosis E[z^4]/E[z^2]^2 - 3, and `kurtosis_sem`;
    `distance`, the largest difference of the two distribution functions (Kolmogorov), and `distance_sem`; `p_value`,
    how likely draws of the Gaussian itself would be as far from it (Kolmogorov and Smirnov's test); `size`, draws.
    """

    kurtosis: np.ndarray
    kurtosis_sem: np.ndarray
    distance: np.ndarray
    distance_sem: np.ndarray
    p_value: np.ndarray
    size: int = eqx.field(static=True)


@in_float64
def gaussianity(net: MLP, x: Any, size: int, key: Key) -> Gaussianity:
    """Draws `size` networks and compares the law of their output with the Gaussian limit, input by input.

    Given its last hidden layer an output is exactly Gaussian, with a variance v that differs from network to network.
    So the law is a mixture: its excess kurtosis is 3 Var(v) / E[v]^2 and its distribution function the average of
    Gaussian ones, which is far less noisy than the same from draws of z. The test uses the draws of z. For the same
    reason no weights need be drawn, only the neurons that they make: a draw costs as much as the network has neurons.

    **Arguments:** `net`, an `nk.MLP` in "ntk" or "standard" scaling with a hidden layer; `x` (n, d); `size`; `key`.
    """
    if not isinstance(net, MLP) or not net.widths or net.parametrization == "mean_field":
        raise ValueError('`net` must be an nk.MLP with a hidden layer, in "ntk" or "standard" scaling.')
    x, size, key = inputs(x, "x", net.in_dim), whole(size, "size", 2), random_key(key)

    @jax.jit
    def draw(indices):
        def one(index):
            keys = jax.random.split(jax.random.fold_in(key, index), len(net.widths) + 1)
            v = net.bias_var + net.weight_var * jnp.asarray(np.mean(x * x, axis=1))
            for n, own in zip(net.widths, keys[1:], strict=True):
                neurons = jnp.sqrt(v) * jax.random.normal(own, (n, len(x)))
                v = net.bias_var + net.weight_var * jnp.mean(net.activation(neurons) ** 2, axis=0)
            return v, jnp.sqrt(v) * jax.random.normal(keys[0], (len(x),))

        return jax.lax.map(one, indices, batch_size=16)

    starts = range(0, size, _CHUNK)
    chunks = [draw(np.arange(start, start + _CHUNK, dtype=np.uint32)) for start in starts]
    variance, z = (np.concatenate(parts)[:size] for parts in zip(*chunks, strict=True))
    limit = np.asarray(NNGP(net).diagonal(x))

    mean = variance.mean(axis=0)
    spread = variance - mean
    second = (spread**2).mean(axis=0)
    influence = 3 * (
        (spread**2 - second) / mean**2 - 2 * second / mean**3 * spread
    )  # of one draw on the kurtosis
    with np.errstate(divide="ignore"):  # a relu network may be dead: its output is 0
        scaled = np.sqrt(limit / variance)
    levels = np.stack([scipy.special.ndtr(t * scaled).mean(axis=0) for t in _GRID])  # (grid, n)
    away = np.abs(levels - scipy.special.ndtr(_GRID)[:, None])
    at = away.argmax(axis=0)
    return Gaussianity(
        kurtosis=3 * second / mean**2,
        kurtosis_sem=influence.std(axis=0) / np.sqrt(size),
        distance=away.max(axis=0),
        distance_sem=scipy.special.ndtr(_GRID[at] * scaled).std(axis=0) / np.sqrt(size),
        p_value=np.array([scipy.stats.kstest(column, "norm").pvalue for column in (z / np.sqrt(limit)).T]),
        size=size,
    )
