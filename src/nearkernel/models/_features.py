"""Linear models of given features."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._check import whole
from .._precision import in_float64, working_dtype
from ._base import AbstractModel, Params, at_least_float


def checked_features(phi: Callable, x: jax.Array) -> jax.Array:
    """phi(x), refused unless it is (n, f)."""
    found = jnp.asarray(phi(x))
    if found.ndim != 2 or len(found) != len(x):
        raise ValueError(f"`phi` must map (n, d) to (n, f); it maps {x.shape} to {found.shape}.")
    return found


class FeatureModel(AbstractModel):
    """z_i = sum_j W[i, j] phi_j(x): linear in its parameters W, (out, f) or (f,), which start at 0.

    **Arguments:** `phi`, a JAX function (n, d) -> (n, f); `out_dim`, number of outputs, each with its own weights;
    `in_dim`, if `init` is to be called before any input has been seen.
    """

    phi: Callable = eqx.field(static=True)
    out_dim: int = eqx.field(static=True, default=1)
    in_dim: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if not callable(self.phi):
            raise TypeError(f"`phi` must be a function (n, d) -> (n, f); got {type(self.phi).__name__}.")
        whole(self.out_dim, "out_dim", 1)

    @in_float64
    def features(self, x: jax.Array) -> jax.Array:
        """phi(x), checked to be (n, f)."""
        return checked_features(self.phi, at_least_float(x))

    @in_float64
    def init(self, key: jax.Array | None = None) -> Params:
        if self.in_dim is None:
            raise ValueError("`FeatureModel.init` needs `in_dim`: FeatureModel(phi, in_dim=d).")
        shape = jax.eval_shape(self.phi, jax.ShapeDtypeStruct((2, self.in_dim), working_dtype())).shape
        return jnp.zeros((self.out_dim, shape[-1]), working_dtype())

    @in_float64
    def __call__(self, params: Params, x: Any) -> jax.Array:
        return self.features(x) @ jnp.atleast_2d(params).T
