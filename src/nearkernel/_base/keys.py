"""Where randomness comes from: one key of JAX, or an integer seed."""

import jax
import jax.numpy as jnp
import numpy as np

from .check import shown

Key = jax.Array | int
_LARGEST = 2**63 - 1


def random_key(key: object, name: str = "key") -> jax.Array:
    """`key` if it is one key of JAX, typed or raw; an integer becomes the typed key that it seeds."""
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return _single(key, key.shape, name)
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if not 0 <= key <= _LARGEST:
            raise ValueError(f"`{name}` must be a key, or a seed from 0 to 2^63 - 1; got {shown(int(key))}.")
        with jax.enable_x64(True):  # the same seed is the same key in every program
            return jax.random.key(int(key))
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jnp.integer) and key.ndim == 0:
        return jax.random.key(key)  # of a caller's vmap over seeds
    size = jax.eval_shape(jax.random.PRNGKey, 0).shape
    if isinstance(key, jax.Array | np.ndarray) and key.dtype == np.uint32 and key.shape[-1:] == size:
        return _single(jnp.asarray(key), key.shape[:-1], name)
    came = "it is missing" if key is None else f"got {shown(key)}"
    raise TypeError(f"`{name}` must be a key such as jax.random.key(0), or an integer seed; {came}.")


def _single(key: jax.Array, batch: tuple[int, ...], name: str) -> jax.Array:
    if batch:
        raise ValueError(
            f"`{name}` must be one key; got an array of keys of shape {batch}: take one, or use jax.vmap over all."
        )
    return key


def generator(key: object, name: str = "key") -> np.random.Generator:
    """NumPy's generator, seeded by the bits of `key`: nothing is compiled for a draw of a new shape."""
    return np.random.default_rng(np.asarray(jax.random.key_data(random_key(key, name))).ravel().tolist())
