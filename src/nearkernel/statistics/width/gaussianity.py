"""How close to Gaussian the outputs of a network of finite width are."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy  # whose part `stats` takes half a second to import, and comes when it is used
import scipy.special

from ..._base.check import inputs, whole
from ..._base.keys import Key, random_key
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...kernels.wide.network import NNGP
from ...models.layers.dense import Dense
from ...models.networks.chain import chain_or_none
from ...models.networks.network import AbstractNetwork, require_wide

_CHUNK = 1024
Draw = Callable[[jax.Array], tuple[jax.Array, jax.Array]]  # of a key: another, and variances of the output
_GRID = np.linspace(0.05, 5.0, 100)  # in standard deviations; the laws are symmetric


class GaussianityResult(Result, eqx.Module):
    r"""The distribution of one output at each input, compared with the Gaussian of infinite width.

    **Fields** (each one value per input): `kurtosis`, the excess kurtosis
    $\mathbb{E}[z^4]/\mathbb{E}[z^2]^2 - 3$, and `kurtosis_sem`;
    `distance`, the largest difference of the two distribution functions (Kolmogorov distance), and `distance_sem`;
    `p_value` of the Kolmogorov-Smirnov test; `size`, number of draws.
    """

    kurtosis: np.ndarray
    kurtosis_sem: np.ndarray
    distance: np.ndarray
    distance_sem: np.ndarray
    p_value: np.ndarray
    size: int = eqx.field(static=True)


@in_float64
def gaussianity(net: AbstractNetwork, x: ArrayLike, size: int, key: Key) -> GaussianityResult:
    r"""Draws `size` networks and compares the distribution of their output with the Gaussian limit, input by input.

    Given the last hidden layer, an output is exactly Gaussian, with a variance $v$ that differs between networks. The
    distribution is therefore a mixture: its excess kurtosis is $3 \operatorname{Var}(v) / \mathbb{E}[v]^2$, and its
    distribution function is an average of Gaussian ones, which is far less noisy than an estimate from draws of z. The
    test uses draws of z. For the same reason, networks of alternating `Dense` and `Activation` are drawn neuron by
    neuron without drawing weights. Other networks are drawn up to their last layer.

    **Arguments:** `net`, an `nk.MLP` with a hidden layer, or an `nk.Network` of any layers that ends in `Dense`, in
    "ntk" or "standard" scaling; `x` (n, *in_shape); `size`; `key`.
    """
    last = net.readout() if isinstance(net, AbstractNetwork) else None
    if last is None or net.mean_field:
        raise ValueError(
            '`net` must be an nk.MLP with a hidden layer, or an nk.Network that ends in Dense, in "ntk" or "standard" '
            "scaling."
        )
    require_wide(net, "gaussianity")
    x, size, key = inputs(x, "x", net.in_shape), whole(size, "size", 2), random_key(key)
    variances = _of_neurons(net, x) or _of_networks(net, last, x)

    @jax.jit
    def draw(indices):
        def one(index):
            end, v = variances(jax.random.fold_in(key, index))
            return v, jnp.sqrt(v) * jax.random.normal(end, (len(x),))

        return jax.lax.map(one, indices, batch_size=16)

    starts = range(0, size, _CHUNK)
    chunks = [draw(np.arange(start, start + _CHUNK, dtype=np.uint32)) for start in starts]
    variance, z = (np.concatenate(parts)[:size] for parts in zip(*chunks, strict=True))
    limit = np.asarray(NNGP(net).diagonal(x))

    mean = variance.mean(axis=0)
    spread = variance - mean
    second = (spread**2).mean(axis=0)
    # The influence of one draw on the kurtosis.
    influence = 3 * ((spread**2 - second) / mean**2 - 2 * second / mean**3 * spread)
    with np.errstate(divide="ignore"):  # a relu network may be dead: its output is 0
        scaled = np.sqrt(limit / variance)
    levels = np.stack([scipy.special.ndtr(t * scaled).mean(axis=0) for t in _GRID])  # (grid, n)
    away = np.abs(levels - scipy.special.ndtr(_GRID)[:, None])
    at = away.argmax(axis=0)
    return GaussianityResult(
        kurtosis=3 * second / mean**2,
        kurtosis_sem=influence.std(axis=0) / np.sqrt(size),
        distance=away.max(axis=0),
        distance_sem=scipy.special.ndtr(_GRID[at] * scaled).std(axis=0) / np.sqrt(size),
        p_value=np.array([scipy.stats.kstest(column, "norm").pvalue for column in (z / np.sqrt(limit)).T]),
        size=size,
    )


def _of_neurons(net: AbstractNetwork, x: np.ndarray) -> Draw | None:
    """Draws hidden layers neuron by neuron; None if layers are of another kind."""
    chain = chain_or_none(net)
    if chain is None:
        return None
    first, *hidden = chain.stages
    x = x.reshape(len(x), -1)

    def draw(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        end, *keys = jax.random.split(key, len(hidden) + 1)
        v = first.bias_var + first.weight_var * jnp.asarray(np.mean(x * x, axis=1))
        for stage, own in zip(hidden, keys, strict=True):
            neurons = jnp.sqrt(v) * jax.random.normal(own, (stage.fan_in, len(x)))
            v = stage.bias_var + stage.weight_var * jnp.mean(stage.activation(neurons) ** 2, axis=0)
        return end, v

    return draw


def _of_networks(net: AbstractNetwork, last: Dense, x: np.ndarray) -> Draw:
    """The same from networks that are drawn."""

    def draw(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        end, own = jax.random.split(key)
        features = net.hidden_features(net.layers.init(own, net.in_shape), jnp.asarray(x))
        return end, last.bias_var + last.weight_var * jnp.mean(features**2, axis=1)

    return draw
