"""What training makes small. Losses are sums over points, never means."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._check import one_of
from .._precision import is_traced

_ROUNDING = 1e-5  # of probabilities that come in float32


def squared(z: jax.Array, y: jax.Array) -> jax.Array:
    """1/2 sum (z - y)^2."""
    return 0.5 * jnp.sum((z - y) ** 2)


def cross_entropy(z: jax.Array, y: jax.Array) -> jax.Array:
    """-sum y log softmax(z); `y` (n, classes) holds probabilities, e.g. one-hot labels."""
    return -jnp.sum(y * jax.nn.log_softmax(z, axis=-1))


_NAMED: dict[str, Callable] = {"squared": squared, "cross_entropy": cross_entropy}


def loss_of_zero(loss: Callable, y: jax.Array | np.ndarray) -> float:
    """The size of the loss of outputs 0, beside which losses are small or not; 0 if it is not finite."""
    found = abs(float(loss(jnp.zeros_like(y), y)))
    return found if math.isfinite(found) else 0.0


def get_loss(loss: Any, y: Any) -> Callable:
    """A loss by name, refused if the targets `y` (n, out) do not suit it, or any JAX function loss(z, y)."""
    if callable(loss) and not isinstance(loss, type):
        return loss
    name = one_of(loss, "loss", tuple(_NAMED))
    if name == "cross_entropy":
        if y.shape[1] < 2:
            raise ValueError(
                '`loss="cross_entropy"` needs one column of `y` per class (one-hot); got one column.'
            )
        if not is_traced(y):
            _require_probabilities(np.asarray(y))
    return _NAMED[name]


def _require_probabilities(y: np.ndarray) -> None:
    wrong = (y.min(axis=1) < -_ROUNDING) | (np.abs(y.sum(axis=1) - 1.0) > _ROUNDING)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            '`loss="cross_entropy"` needs rows of `y` that are probabilities, at least 0 and with sum 1; row '
            f"{row} has the sum {y[row].sum():.4g} and the smallest value {y[row].min():.4g}."
        )
