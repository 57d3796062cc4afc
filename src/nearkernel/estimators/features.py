"""Features and meta-features by name: small frozen functions, so that fits of equal shape share their compilation."""

import dataclasses
import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Linear:
    """(x, 1)."""

    def __call__(self, x):
        return jnp.concatenate([x, jnp.ones((len(x), 1), x.dtype)], axis=1)


@dataclasses.dataclass(frozen=True)
class Polynomial:
    """1, x_i and x_i x_j for i <= j, so scaled that their kernel is (1 + x.x')^2."""

    def __call__(self, x):
        i, j = np.triu_indices(x.shape[1])
        scale = np.where(i == j, 1.0, np.sqrt(2.0))
        one = jnp.ones((len(x), 1), x.dtype)
        return jnp.concatenate([one, np.sqrt(2.0) * x, scale * x[:, i] * x[:, j]], axis=1)


@dataclasses.dataclass(frozen=True)
class Fourier:
    """sqrt(2/f) cos(w.x + b) with random w and b: their kernel tends to an RBF of length sqrt(d)."""

    count: int
    seed: int

    def __call__(self, x):
        frequencies, phases = _drawn(x.shape[1], self.count, self.seed)
        return np.sqrt(2.0 / self.count) * jnp.cos(x @ frequencies + phases)


@functools.lru_cache(maxsize=8)
def _drawn(d: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(d, count)) / np.sqrt(d), rng.uniform(0, 2 * np.pi, count)


@dataclasses.dataclass(frozen=True)
class Diagonal:
    """psi_jk = delta_jk phi_j: features that are used grow, phi_j (1 + eps W_j)."""

    phi: Callable

    def __call__(self, x, u):
        return self.phi(x) * u


@dataclasses.dataclass(frozen=True)
class Square:
    """psi_jk = phi_j phi_k: the output becomes s + eps s^2/2, with s = W phi."""

    phi: Callable

    def __call__(self, x, u):
        phi = self.phi(x)
        return phi * (phi @ u)[:, None]


FEATURES = ("linear", "polynomial", "fourier")
META_FEATURES = {"diagonal": Diagonal, "square": Square}
