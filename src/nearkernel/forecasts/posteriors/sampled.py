"""The experiment for `posterior` with `widths`: networks drawn from their posterior by Hamiltonian Monte Carlo."""

import math
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

_LEAPS = 12  # at most, of one proposal
_ACCEPT = 0.8  # share of proposals that the step is tuned for


class PosteriorDraws(Result, eqx.Module):
    """The posterior mean and standard deviation at m inputs, with their standard errors over chains.

    **Fields:** `mean`, `mean_sem`, `std`, `std_sem` (m,) or (m, out), like `y`; `acceptance`, the acceptance rate of
    proposals; `r_hat`, in the same shape, 1 if the chains agree; `size`, the total number of draws.
    """

    mean: np.ndarray
    mean_sem: np.ndarray
    std: np.ndarray
    std_sem: np.ndarray
    acceptance: float
    r_hat: np.ndarray
    size: int

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the mean and 2 standard deviations, point by point, on Matplotlib's `axes`."""
        from ..._plots.bands import draw_band

        return draw_band(self.mean, self.std, axes)


@in_float64
def measure_posterior(
    net: AbstractNetwork,
    x: ArrayLike,
    y: ArrayLike,
    x_new: ArrayLike,
    noise: float,
    key: Key,
    *,
    chains: int = 8,
    samples: int = 300,
    burn: int = 300,
) -> PosteriorDraws:
    """The posterior of a network at its actual width, by sampling its hidden weights.

    The readout is integrated out exactly: given the hidden weights the function is Gaussian, and its conditional mean
    and variance are averaged, so few draws suffice. The prior is the distribution of `net.init`; the likelihood is
    Gaussian with variance `noise`.

    **Arguments:** `net`, an `nk.MLP` or alternating `Dense` and `Activation`, in NTK or standard scaling; `x` (n, d);
    `y` (n,) or (n, out), outputs that share their neurons; `x_new` (m, d); `noise` > 0; `key`; `chains`, their
    number, each initialized from the prior; `samples` per chain, after `burn` steps in which the step size is tuned.
    """
    net = chain_of(net, "measure_posterior", hidden=True).mlp()
    x = inputs(x, "x", net.in_dim)
    column, y = np.ndim(y) == 1, targets(y, len(x))
    x_new = inputs(x_new, "x_new", net.in_dim)
    noise = positive(noise, "noise")
    chains, samples = whole(chains, "chains", 2), whole(samples, "samples", 2)
    burn = whole(burn, "burn", 1)
    shapes = [
        (a + 1, b) for a, b in zip(net.sizes[:-2], net.sizes[1:-1], strict=True)
    ]  # weights and bias together
    total = sum(math.prod(shape) for shape in shapes)
    run = jax.jit(
        _sampler(net, jnp.asarray(x), jnp.asarray(y), jnp.asarray(x_new), noise, shapes),
        static_argnums=(2, 3),
    )
    start = jax.random.normal(random_key(key), (chains, total))
    means, variances, accepted = (np.asarray(v) for v in run(start, random_key(key), burn, samples))
    every = means.shape[:-1] if column else means.shape
    return _summary(means.reshape(every), variances.reshape(every), float(accepted.mean()))


def _sampler(net: MLP, x, y, x_new, noise: float, shapes) -> Any:
    every = jnp.concatenate([x, x_new])
    points = len(x)
    readout = net.dense(len(net.widths))

    def covariance(theta):
        h, at = every, 0
        for layer, shape in enumerate(shapes):
            dense, size = net.dense(layer), math.prod(shape)
            w = theta[at : at + size].reshape(shape)
            at += size
            z = jnp.sqrt(dense.weight_var / (shape[0] - 1)) * (h @ w[:-1]) + jnp.sqrt(dense.bias_var) * w[-1]
            h = net.activation_of(layer + 1)(z)
        return readout.weight_var / h.shape[1] * (h @ h.T) + readout.bias_var

    def energy(theta):
        k = covariance(theta)[:points, :points] + noise * jnp.eye(points)
        lower = jnp.linalg.cholesky(k)
        white = jax.scipy.linalg.solve_triangular(lower, y, lower=True)
        return 0.5 * (theta @ theta + (white**2).sum()) + y.shape[1] * jnp.log(jnp.diagonal(lower)).sum()

    def law(theta):
        k = covariance(theta)
        inner, cross = k[:points, :points] + noise * jnp.eye(points), k[points:, :points]
        solved = jnp.linalg.solve(inner, jnp.concatenate([y, cross.T], axis=1))
        mean, explained = (
            cross @ solved[:, : y.shape[1]],
            jnp.einsum("ij,ji->i", cross, solved[:, y.shape[1] :]),
        )
        return mean, jnp.broadcast_to((jnp.diagonal(k)[points:] - explained)[:, None], mean.shape)

    slope = jax.grad(energy)

    def step(theta, key, size):
        a, b, c, d = jax.random.split(key, 4)
        momentum = jax.random.normal(a, theta.shape)
        eps = size * jax.random.uniform(b, (), minval=0.8, maxval=1.2)  # against resonances
        leaps = jax.random.randint(d, (), _LEAPS // 2, _LEAPS + 1)
        before = energy(theta) + 0.5 * momentum @ momentum

        def leap(_, state):
            t, p, g = state
            p = p - 0.5 * eps * g
            t = t + eps * p
            g = slope(t)
            return t, p - 0.5 * eps * g, g

        moved, p, _ = jax.lax.fori_loop(0, leaps, leap, (theta, momentum, slope(theta)))
        gain = before - energy(moved) - 0.5 * p @ p
        probability = jnp.where(jnp.isfinite(gain), jnp.minimum(1.0, jnp.exp(jnp.minimum(gain, 0.0))), 0.0)
        taken = jax.random.uniform(c) < probability
        return jnp.where(taken, moved, theta), probability

    every_chain = jax.vmap(step, in_axes=(0, 0, None))

    def run(start, key, burn: int, samples: int):
        chains = len(start)

        def tuned(state, i):
            theta, log_size = state
            keys = jax.random.split(jax.random.fold_in(key, i + 1), chains)
            theta, probability = every_chain(theta, keys, jnp.exp(log_size))
            return (theta, log_size + 0.1 * (probability.mean() - _ACCEPT)), None

        def drawn(theta, i):
            keys = jax.random.split(jax.random.fold_in(key, burn + i + 1), chains)
            theta, probability = every_chain(theta, keys, jnp.exp(log_size))
            return theta, (*jax.vmap(law)(theta), probability)

        first = jnp.log(0.3 * start.shape[1] ** -0.25)
        (theta, log_size), _ = jax.lax.scan(tuned, (start, first), jnp.arange(burn))
        return jax.lax.scan(drawn, theta, jnp.arange(samples))[1]

    return run


def _summary(means: np.ndarray, variances: np.ndarray, acceptance: float) -> PosteriorDraws:
    """Of conditional means and variances, (samples, chains) times the shape of the answer."""
    samples, chains = means.shape[:2]
    mean = means.mean(axis=(0, 1))
    by_chain = means.mean(axis=0)
    second = (variances + (means - mean) ** 2).mean(axis=0)  # around the common mean, one a chain
    std = np.sqrt(second.mean(axis=0))
    within, between = means.var(axis=0, ddof=1).mean(axis=0), by_chain.var(axis=0, ddof=1)
    root = math.sqrt(chains)
    return PosteriorDraws(
        mean,
        by_chain.std(axis=0, ddof=1) / root,
        std,
        second.std(axis=0, ddof=1) / (2 * std * root),
        acceptance,
        np.sqrt((samples - 1) / samples + between / np.maximum(within, 1e-300)),
        samples * chains,
    )
