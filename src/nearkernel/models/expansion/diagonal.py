"""The smallest network that learns features: a linear model whose weights are differences of squares."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import between, numeric, positive, whole
from ..._base.keys import Key
from ..._base.types import Array, ArrayLike, Num, Number
from ..._run.precision import in_float64, working_dtype
from ..base import AbstractModel, Params, rows_of
from ..params import require_params


class DiagonalNetwork(AbstractModel):
    r"""$z(x) = \sum_i (u_i^2 - v_i^2)\, x_i$: a linear function of $x$ whose training is nonlinear.

    Both $u$ = `plus` and $v$ = `minus` are initialized to $\alpha \theta_0$, so $z = 0$ at initialization. With a
    large $\alpha$ it trains lazily, like a linear model with weighted features; with a small $\alpha$ it prefers
    sparse weights.

    **Arguments:** `in_dim`; `alpha` > 0, the scale of the initialization; `theta0` (in_dim,), its shape, 1 by
    default. Parameters are `dict(plus=(d,), minus=(d,))`.
    """

    in_dim: int = eqx.field(static=True)
    alpha: Number = 1.0
    theta0: ArrayLike | None = None

    def __check_init__(self):
        whole(self.in_dim, "in_dim", 1)
        between(positive(self.alpha, "alpha"), "alpha", 1e-150, 1e150)  # its square is a number
        if self.theta0 is not None and np.shape(numeric(self.theta0, "theta0")) != (self.in_dim,):
            raise ValueError(f"`theta0` must have shape ({self.in_dim},); got {np.shape(self.theta0)}.")

        elif self.theta0 is not None:
            between(np.abs(numeric(self.theta0, "theta0")).max() * float(self.alpha), "theta0", 0.0, 1e75)

    @in_float64
    def init(self, key: Key | None = None) -> Params:
        shape = np.ones(self.in_dim) if self.theta0 is None else np.asarray(self.theta0)
        start = jnp.asarray(self.alpha * shape, working_dtype())
        return {"plus": start, "minus": start}

    def parameter_shapes(self) -> Params:
        return {name: jax.ShapeDtypeStruct((self.in_dim,), np.float64) for name in ("plus", "minus")}

    def weights(self, params: Params) -> Array:
        """The weights of the linear function of `params`, $u^2 - v^2$, (d,)."""
        return params["plus"] ** 2 - params["minus"] ** 2

    @in_float64
    def __call__(self, params: Params, x: Num[ArrayLike, " n d"]) -> jax.Array:
        require_params(self, params)
        return rows_of(x, self.in_dim) @ self.weights(params)[:, None]
