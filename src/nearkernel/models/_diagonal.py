"""The smallest network that learns features: a linear model whose weights are differences of squares."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._check import numeric, positive, same_dim, whole
from .._precision import in_float64, working_dtype
from ._base import AbstractModel, Params, at_least_float


class DiagonalNetwork(AbstractModel):
    r"""z(x) = sum_i (plus_i^2 - minus_i^2) x_i, a linear function of x whose training is not linear.

    Both halves start at alpha theta_0, so z = 0 at the start. Large alpha trains lazily, like a linear model with
    weighted features; small alpha prefers few nonzero weights.

    **Arguments:** `in_dim`; `alpha` > 0, the scale of the start; `theta0`, its shape (in_dim,), 1 by default.
    Parameters are dict(plus=(d,), minus=(d,)).
    """

    in_dim: int = eqx.field(static=True)
    alpha: Any = 1.0
    theta0: Any = None

    def __check_init__(self):
        whole(self.in_dim, "in_dim", 1)
        positive(self.alpha, "alpha")
        if self.theta0 is not None and np.shape(numeric(self.theta0, "theta0")) != (self.in_dim,):
            raise ValueError(f"`theta0` must have shape ({self.in_dim},); got {np.shape(self.theta0)}.")

    @in_float64
    def init(self, key: jax.Array | None = None) -> Params:
        shape = np.ones(self.in_dim) if self.theta0 is None else np.asarray(self.theta0)
        start = jnp.asarray(self.alpha * shape, working_dtype())
        return {"plus": start, "minus": start}

    def weights(self, params: Params) -> Any:
        """beta = plus^2 - minus^2 (d,)."""
        return params["plus"] ** 2 - params["minus"] ** 2

    @in_float64
    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        x = at_least_float(x)
        same_dim(x, "x", self.in_dim)
        return x @ self.weights(params)[:, None]
