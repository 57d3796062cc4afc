r"""The posterior mean of a network that learns features: its kernel changes shape along the targets.

At large width $N$ and $n/N$ fixed, to leading order, hidden neurons are independent draws from

$$p(w) \propto \mathcal{N}(w; 0, 1)\, \exp\!\left(\frac{C_W}{2 N}\, s(w)^\top G\, s(w)\right), \qquad
G = a a^\top - (\tilde K + T)^{-1}, \qquad a = (\tilde K + T)^{-1} y,$$

where $s(w)$ are the neuron's outputs on the data, $T$ is the noise and $\tilde K = C_W \langle s s^\top\rangle$ is the
kernel of these same neurons. The mean is $\tilde k\, a$. Hamiltonian Monte Carlo on a population of neurons finds it,
and updates the kernel between sweeps.
"""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs, positive, targets, whole
from ..._base.keys import Key, random_key
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...models.networks.chain import chain_of
from ...models.networks.mlp import MLP
from ...models.networks.network import AbstractNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RAMP = 40  # sweeps over which the targets are switched on
_LEAPS = 8
_ACCEPT = 0.8


class Adapted(Result, eqx.Module):
    """The posterior of a network whose kernel has adapted to the data.

    **Fields:** `mean` (m,); `mean_sem` (m,), from the scatter between blocks of sweeps; `kernel` (n, n), the adapted
    kernel; `acceptance`, the acceptance rate of proposals.
    """

    mean: np.ndarray
    mean_sem: np.ndarray
    kernel: np.ndarray
    acceptance: float

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the mean and 2 standard errors, point by point, on Matplotlib's `axes`."""
        from ..._plots.bands import draw_band

        return draw_band(self.mean, self.mean_sem, axes)


@in_float64
def adapted_mean(
    net: AbstractNetwork,
    x: ArrayLike,
    y: ArrayLike,
    x_new: ArrayLike,
    noise: float,
    key: Key,
    *,
    neurons: int = 1000,
    sweeps: int = 300,
) -> Adapted:
    """The posterior mean of a network with one hidden layer of `net.widths[0]` neurons that learns features.

    For targets that the prior does not fit (the `misfit` of a `FinitePosterior` is above 2) the mean is within 1 to 7 %
    of sampled networks, while a Gaussian process of fixed or random scale is off by 5 to 30 %. The variance is less
    accurate: take it from `posterior`.

    **Arguments:** `net`, an `nk.MLP` with one hidden layer, in NTK or standard scaling; `x` (n, d); `y` (n,); `x_new`
    (m, d); `noise` > 0; `key`; `neurons`, the size of the sampled population (not the width); `sweeps`, number of
    sweeps.
    """
    net = chain_of(net, "adapted_mean").mlp()
    if len(net.widths) != 1:
        raise ValueError(f"`net` must have one hidden layer; got {len(net.widths)}.")
    x = inputs(x, "x", net.in_dim)
    y = targets(y, len(x), out=1)
    x_new = inputs(x_new, "x_new", net.in_dim)
    noise = positive(noise, "noise")
    neurons, sweeps = whole(neurons, "neurons", 10), whole(sweeps, "sweeps", 2 * _RAMP)
    every = jnp.asarray(np.concatenate([x, x_new]))
    run = jax.jit(_population(net, every, jnp.asarray(y[:, 0]), noise, neurons), static_argnums=1)
    kernels, means, accepted = (np.asarray(each) for each in run(random_key(key), sweeps))
    blocks = means.reshape(8, -1, means.shape[1]).mean(axis=1)
    return Adapted(
        blocks.mean(axis=0), blocks.std(axis=0, ddof=1) / 8**0.5, kernels.mean(axis=0), float(accepted.mean())
    )


def _population(net: MLP, every, y, noise: float, neurons: int) -> Any:
    points, width, activation = len(y), net.widths[0], net.activation_of(1)
    first, last = net.dense(0), net.dense(1)

    def outputs(w):  # (neurons, all points)
        z = (
            jnp.sqrt(first.weight_var / net.in_dim) * (w[:, :-1] @ every.T)
            + jnp.sqrt(first.bias_var) * w[:, -1:]
        )
        return activation(z)

    def energy(w, field):
        s = outputs(w)[:, :points]
        return 0.5 * (w**2).sum(axis=1) - 0.5 * last.weight_var / width * ((s @ field) * s).sum(axis=1)

    slope = jax.grad(lambda w, field: energy(w, field).sum())

    def sweep(state, i):
        w, kernel, log_size, key = state
        key, a, b, c = jax.random.split(key, 4)
        inverse = jnp.linalg.inv(kernel[:points, :points] + noise * jnp.eye(points))
        pull = inverse @ y
        field = jnp.minimum(1.0, (i + 1) / _RAMP) * jnp.outer(pull, pull) - inverse
        p = jax.random.normal(a, w.shape)
        eps = jnp.exp(log_size) * jax.random.uniform(b, (neurons, 1), minval=0.8, maxval=1.2)
        before = energy(w, field) + 0.5 * (p**2).sum(axis=1)

        def leap(_, moved):
            t, q = moved
            q = q - 0.5 * eps * slope(t, field)
            t = t + eps * q
            return t, q - 0.5 * eps * slope(t, field)

        t, q = jax.lax.fori_loop(0, _LEAPS, leap, (w, p))
        gain = before - energy(t, field) - 0.5 * (q**2).sum(axis=1)
        probability = jnp.where(jnp.isfinite(gain), jnp.exp(jnp.minimum(gain, 0.0)), 0.0)
        w = jnp.where((jax.random.uniform(c, (neurons,)) < probability)[:, None], t, w)
        s = outputs(w)
        fresh = last.weight_var / neurons * (s.T @ s) + last.bias_var
        share = jnp.maximum(2 / (i + 2), 0.05)
        kernel = (1 - share) * kernel + share * fresh
        inner = kernel[:points, :points] + noise * jnp.eye(points)
        mean = kernel[points:, :points] @ jnp.linalg.solve(inner, y)
        log_size = log_size + 0.1 * (probability.mean() - _ACCEPT)
        return (w, kernel, log_size, key), (kernel[:points, :points], mean, probability.mean())

    def run(key, sweeps: int):
        key, a = jax.random.split(key)
        w = jax.random.normal(a, (neurons, net.in_dim + 1))
        s = outputs(w)
        start = (w, last.weight_var / neurons * (s.T @ s) + last.bias_var, jnp.log(0.3), key)
        state, _ = jax.lax.scan(sweep, start, jnp.arange(sweeps // 2))
        kept = 8 * max((sweeps - sweeps // 2) // 8, 1)
        return jax.lax.scan(sweep, state, sweeps // 2 + jnp.arange(kept))[1]

    return run
