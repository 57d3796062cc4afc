"""What several test files share: data, errors, and names of things to run a law over."""

import jax
import jax.numpy as jnp
import numpy as np


def points(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Gaussian inputs (n, d)."""
    return np.random.default_rng(seed).normal(size=(n, d))


def relative_error(found, expected) -> float:
    """Largest entry of the difference over the largest expected entry."""
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape, f"{found.shape} is not {expected.shape}"
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def to_float64(tree):
    """A tree of float64 JAX arrays."""
    with jax.enable_x64(True):
        return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, dtype=np.float64)), tree)


def compiled(function):
    """`function` of NumPy arrays in one float64 compilation, its result in NumPy: eager calls compile op by op."""
    run = jax.jit(lambda *args: function(*args))

    def call(*args):
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, run(*args))

    return call


def hard_tanh(z):
    return jnp.clip(z, -1.0, 1.0)


def wavy(z):
    """Neither odd nor even, neither monotone nor bounded."""
    return jnp.sin(3.0 * z) + 0.1 * z**2
