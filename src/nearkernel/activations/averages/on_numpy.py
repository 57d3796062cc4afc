"""Functions of JAX arrays, and their derivatives, for NumPy arrays."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

_PIECES = (1024, 16_384, 262_144)  # of arrays given to compiled functions


@functools.lru_cache(maxsize=128)
def slope_of(function: Callable) -> Callable:
    """The elementwise derivative, the same object each time: `on_numpy` compiles it once."""
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]


@functools.lru_cache(maxsize=128)
def on_numpy(function: Callable) -> Callable[[np.ndarray], np.ndarray]:
    """`function`, elementwise, for float64 NumPy arrays: in pieces of three sizes, so that it is compiled thrice."""
    compiled = jax.jit(function)

    def run(z: np.ndarray) -> np.ndarray:
        flat = np.ravel(z)
        # The largest piece that fits: less than half of it is padding.
        piece = max((size for size in _PIECES if size <= flat.size), default=_PIECES[0])
        padded = np.zeros(piece * max(1, -(-flat.size // piece)))
        padded[: flat.size] = flat
        with jax.enable_x64(True), jax.ensure_compile_time_eval():  # also while a caller is being traced
            values = [np.asarray(compiled(part)) for part in padded.reshape(-1, piece)]
        return np.concatenate(values)[: flat.size].reshape(np.shape(z))

    return run
