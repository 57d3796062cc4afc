"""What a run may keep by name, on its training inputs: outputs, effective features, effective kernel and weights."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ..._base.check import observed as observed_by
from ...models.base import AbstractModel
from ...models.expansion.derivatives import jacobian
from ...models.params import root_factors

NAMED = ("outputs", "features", "kernel", "weights")


def observed(what: str | Callable, model: AbstractModel, params: Any, x: Any, lr_factors: Any) -> Any:
    """The value of a function of the parameters, or of what a name stands for; features have root `lr_factors`."""
    if not isinstance(what, str):
        return observed_by(what, params)
    if what == "weights":
        return params
    if what == "outputs":
        return model(params, x)
    features, roots = jacobian(model, params, x), root_factors(lr_factors, params)
    features = features if roots is None else features * roots
    return features if what == "features" else jnp.tensordot(features, features, axes=([2], [2]))
