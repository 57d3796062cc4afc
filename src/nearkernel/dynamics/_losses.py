"""What training makes small. Losses are sums over points, never means."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._check import one_of


def squared(z: jax.Array, y: jax.Array) -> jax.Array:
    """1/2 sum (z - y)^2."""
    return 0.5 * jnp.sum((z - y) ** 2)


def cross_entropy(z: jax.Array, y: jax.Array) -> jax.Array:
    """-sum y log softmax(z); `y` (n, classes) holds probabilities, e.g. one-hot labels."""
    return -jnp.sum(y * jax.nn.log_softmax(z, axis=-1))


_NAMED: dict[str, Callable] = {"squared": squared, "cross_entropy": cross_entropy}


def loss_of_zero(loss: Callable, y: jax.Array) -> float:
    """The size of the loss of outputs 0, beside which losses are small or not; 0 if it is not finite."""
    found = abs(float(loss(jnp.zeros_like(y), y)))
    return found if math.isfinite(found) else 0.0


def get_loss(loss: Any, out: int) -> Callable:
    """A loss by name, or any JAX function loss(z, y) of (n, out) arrays."""
    if callable(loss):
        return loss
    name = one_of(loss, "loss", tuple(_NAMED))
    if name == "cross_entropy" and out < 2:
        raise ValueError(
            '`loss="cross_entropy"` needs one column of `y` per class (one-hot); got one column.'
        )
    return _NAMED[name]
