"""The lazy scale: a model whose output is multiplied, so that its parameters need to move less."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import between, positive
from ..._base.keys import Key
from ..._base.rooms import renamed
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ..base import AbstractModel, Params, require_model


def of_centered(factors: Params) -> Params:
    """Learning-rate factors of a centered model, from those of the inner one: where it started stays."""
    return {"params": factors, "start": jax.tree.map(lambda _: 0.0, factors)}


@renamed("0.5", centred="centered")
class Scaled(AbstractModel):
    r"""A rescaled model $\alpha\,[z(\theta) - z(\theta_0)]$, or $\alpha\, z(\theta)$ if not `centered`.

    To fit the same targets, the parameters of a centered model move by $1/\alpha$, so each order of an expansion in
    the parameter change is smaller by another factor $1/\alpha$. A large $\alpha$ gives a kernel machine, a small
    $\alpha$ a network that learns features. The tangent kernel grows as $\alpha^2$, so scale learning rates by
    $1/\alpha^2$.

    **Arguments:** `model`; `alpha` > 0; `centered`: whether the output is zero at initialization. The parameters of a
    centered model are `dict(params=theta, start=theta_0)`, made by `init(key)` or from the model's parameters by
    `at(theta)`; only `params` are trained.
    """

    model: AbstractModel
    alpha: Any = 1.0
    centered: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        require_model(self.model)
        between(positive(self.alpha, "alpha"), "alpha", 1e-150, 1e150)  # its square is a number

    @property
    def in_shape(self) -> tuple[int, ...] | None:
        return self.model.in_shape

    def init(self, key: Key) -> Params:
        return self.at(self.model.init(key))

    def parameter_shapes(self) -> Params | None:
        inner = self.model.parameter_shapes()
        return None if inner is None else self.at(inner)

    def at(self, params: Params) -> Params:
        """The parameters of this model with initial parameters `params` of the inner model."""
        return {"params": params, "start": params} if self.centered else params

    @in_float64
    def __call__(self, params: Params, x: ArrayLike) -> jax.Array:
        if not self.centered:
            return self.alpha * self.model(params, x)
        if not (isinstance(params, dict) and set(params) == {"params", "start"}):
            raise TypeError(
                "`params` of a centered nk.Scaled must come from its `init(key)` or `at(params)`."
            )
        start = jax.tree.map(jax.lax.stop_gradient, params["start"])
        return self.alpha * (self.model(params["params"], x) - self.model(start, x))

    def own_factors(self, optimizer: str) -> Params | None:
        inner = self.model.own_factors(optimizer)
        return inner if inner is None or not self.centered else of_centered(inner)

    def moving(self, params: Params) -> tuple["Scaled", Params]:
        """The model without the constant part, and its parameters; its derivatives are the same."""
        return (Scaled(self.model, self.alpha, False), params["params"]) if self.centered else (self, params)

    def whole(self, moved: Params) -> Params:
        """A step `moved` of the `moving` parameters as a step of this model's parameters."""
        if not self.centered:
            return moved
        return {"params": moved, "start": jax.tree.map(jnp.zeros_like, moved)}
