"""Activations seen by very small and by all variances: what the search for criticality rests on."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...activations.base import AbstractActivation, Moments, moments

_DECADES = np.arange(-6.0, 5.0)
_PER_DECADE = 10
_BESIDE_ZERO = 1e-150


def derivatives_beside_zero(activation: AbstractActivation, count: int) -> np.ndarray:
    """s, s', ... just below and just above 0, (2, count): the rows differ if one of them jumps there."""
    functions = [activation.__call__]
    for _ in range(count - 1):
        functions.append(_derivative(functions[-1]))
    beside = jnp.array([-_BESIDE_ZERO, _BESIDE_ZERO], jnp.float64)
    return np.array(jax.jit(lambda z: jnp.stack([function(z) for function in functions], axis=1))(beside))


def _derivative(function: Any):
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]


def variance_map_at_zero(derivatives: np.ndarray) -> tuple[float, float]:
    """(a1, a2) of K' = K + a1 K^2 + a2 K^3 at C_W = 1/s'(0)^2, C_b = 0, from s(0) = 0, s'(0), ... s^(5)(0).

    E[s^2] = sum_k c_2k (2k - 1)!! K^k, with c the power series of s^2.
    """
    power = derivatives[:6] / np.array([1.0, 1.0, 2.0, 6.0, 24.0, 120.0])
    square = np.convolve(power, power)
    return float(3 * square[4] / square[2]), float(15 * square[6] / square[2])


class Scan(NamedTuple):
    """Gaussian averages over a wide range of variances `k`, ascending: each (m,)."""

    k: np.ndarray
    moments: Moments


@functools.lru_cache(maxsize=32)
def scan(activation: AbstractActivation) -> Scan:
    """Averages for variances from 1e-6 up to 1e5, or up to where the activation can still be averaged."""
    ks, found = [], []
    for decade in _DECADES:
        k = 10.0 ** (decade + np.arange(_PER_DECADE + 1) / _PER_DECADE)
        try:
            with np.errstate(all="ignore"):
                own = moments(activation, k)
        except ValueError:  # it changes too fast, or overflows, at arguments that large
            break
        if not _trusted(k, own):
            break
        ks.append(k[:-1])
        found.append(jax.tree.map(lambda a: a[:-1], own))
    if not ks or ks[-1][-1] < 0.7:  # not even variances of order 1
        raise ValueError("`activation` must have finite averages over Gaussians of variance 1.")
    return Scan(np.concatenate(ks), jax.tree.map(lambda *parts: np.concatenate(parts), *found))


def _trusted(k: np.ndarray, own: Moments) -> bool:
    """Whether the averages are finite and E[s^2] grows by its own derivative E[s'^2 + s s'']: exp(z) soon fails."""
    if not np.isfinite([own.value, own.slope, own.curvature]).all():
        return False
    rate = own.slope + own.curvature
    grown, expected = np.diff(own.value), 0.5 * (rate[1:] + rate[:-1]) * np.diff(k)
    return bool((np.abs(grown - expected) <= 0.3 * np.abs(grown) + 1e-3 * own.value[1:]).all())
