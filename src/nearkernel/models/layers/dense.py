"""A fully connected layer, applied at each position if there are any."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import between, one_of, positive, whole
from ..._run.precision import working_dtype
from .base import (
    AbstractOuterLayer,
    AbstractPiecewiseLayer,
    AbstractWideLayer,
    Pair,
    Params,
    Row,
    Shape,
    covariance,
    namespace,
)
from .layout import Layout

PARAMETRIZATIONS = ("ntk", "standard", "mean_field")


_SMALLEST, _LARGEST = 1e-100, 1e100  # squares of variances, and some of their products, are numbers still


def weight_variance(value: Any) -> Any:
    return between(positive(value, "weight_var"), "weight_var", _SMALLEST, _LARGEST)


def bias_variance(value: Any) -> Any:
    return between(positive(value, "bias_var", zero=True), "bias_var", 0.0, _LARGEST)


class Dense(AbstractWideLayer, AbstractOuterLayer, AbstractPiecewiseLayer):
    r"""A dense layer, $z = w\, W s + b\, B$ with $C_W$ = `weight_var` and $C_b$ = `bias_var`, at each position.

    | parametrization | entries of $W$, $B$ at initialization | $w$ | $b$ |
    |---|---|---|---|
    | "ntk" | $\mathcal{N}(0, 1)$ | $\sqrt{C_W / \text{fan-in}}$ | $\sqrt{C_b}$ |
    | "standard" | $\mathcal{N}(0, C_W / \text{fan-in})$, $\mathcal{N}(0, C_b)$ | 1 | 1 |
    | "mean_field" | $\mathcal{N}(0, 1)$ | $\sqrt{C_W} / \text{fan-in}$ | $\sqrt{C_b}$ |

    **Arguments:** `width`, number of output channels; `weight_var` > 0; `bias_var` >= 0; `parametrization`.
    Parameters are `dict(weight=(fan_in, width), bias=(width,))`.
    """

    width: int = eqx.field(static=True)
    weight_var: Any = 1.0
    bias_var: Any = 0.0
    parametrization: str = eqx.field(static=True, default="ntk")
    gives = "gaussian"

    def __check_init__(self):
        whole(self.width, "width", 1)
        weight_variance(self.weight_var)
        bias_variance(self.bias_var)
        one_of(self.parametrization, "parametrization", PARAMETRIZATIONS)

    def __repr__(self) -> str:
        return f"Dense({self.width})"

    def shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], self.width)

    def has_params(self) -> bool:
        return True

    def fresh(self) -> bool:
        return True

    def scales(self, fan_in: int) -> tuple[Any, Any]:
        """The factors w and b that multiply W and B, for inputs of `fan_in` features."""
        if self.parametrization == "standard":
            return 1.0, 1.0
        fan = fan_in if self.parametrization == "mean_field" else fan_in**0.5
        return jnp.sqrt(self.weight_var) / fan, jnp.sqrt(self.bias_var)

    def init(self, key: jax.Array, shape: Shape) -> Params:
        weight_key, bias_key = jax.random.split(key)
        return drawn(self, weight_key, bias_key, (shape[-1], self.width), (self.width,), shape[-1])

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        weight_scale, bias_scale = (jnp.asarray(scale, x.dtype) for scale in self.scales(x.shape[-1]))
        return weight_scale * (x @ params["weight"]) + bias_scale * params["bias"]

    def lr_factors(self, shape: Shape) -> Params:
        found = factors_of(self, shape[-1])
        return {**found, "weight": found["weight"] * self.shrinks(shape)}

    def shrinks(self, shape: Shape) -> float:
        return float(shape[-1]) if self.parametrization == "mean_field" else 1.0

    def enters(self, x: jax.Array, factors: Params) -> jax.Array:
        weight_scale, bias_scale = self.scales(x.shape[-1])
        return with_bias(
            weight_scale * x.reshape(len(x), -1, x.shape[-1]),
            bias_scale * jnp.ones((1, 1, 1), x.dtype),
            factors,
        )

    def limit(self, shape: Shape) -> "Dense":
        return self.resized(lambda _: 1)

    def resized(self, change: Callable[[int], int]) -> "Dense":
        """The same layer of width `change(width)`."""
        return Dense(change(self.width), self.weight_var, self.bias_var, self.parametrization)

    def shifts(self) -> bool:
        return True

    def rows(self, row: Row) -> tuple[Row, Any]:
        xp = namespace(row.size)
        scaled = xp.sqrt(self.weight_var) * row.size
        square = self.bias_var + scaled**2
        # An input of length 0, without biases, stays 0 and keeps its right angle to all others.
        some = square > 0
        root = xp.sqrt(xp.where(some, square, 1.0))
        weight, bias = xp.where(some, scaled / root, 1.0), xp.where(some, xp.sqrt(self.bias_var) / root, 0.0)
        root = xp.where(some, root, 0.0)
        data = {"root": root, "weight": weight, "bias": bias}
        tangent = root**2 + self.weight_var * row.tangent
        if self.parametrization == "mean_field":  # outputs start at their bias
            return Row(0.0 * root + xp.sqrt(self.bias_var), tangent), data
        return Row(root, tangent), data

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        one, two = layout.both(one, two)
        weight1, weight2 = one["weight"], two["weight"]
        gap = weight1 * weight2 * pair.gap + 0.5 * (
            (weight1 - weight2) ** 2 + (one["bias"] - two["bias"]) ** 2
        )
        tangent = covariance(one["root"], two["root"], gap) + self.weight_var * pair.tangent
        return Pair(0.0 * gap if self.parametrization == "mean_field" else gap, tangent)


def drawn(layer: Any, weight_key, bias_key, weight_shape: Shape, bias_shape: Shape, fan_in: int) -> Params:
    """Weights and bias at initialization."""
    dtype = working_dtype()
    weight = jax.random.normal(weight_key, weight_shape, dtype)
    bias = jax.random.normal(bias_key, bias_shape, dtype)
    if layer.parametrization == "standard":
        weight = weight * jnp.sqrt(layer.weight_var / fan_in).astype(dtype)
        bias = bias * jnp.sqrt(layer.bias_var).astype(dtype)
    return {"weight": weight, "bias": bias}


def factors_of(layer: Any, fan_in: int) -> Params:
    """ "standard" trained with C_W/fan_in and C_b is "ntk" trained with 1."""
    if layer.parametrization == "standard":
        return {"weight": layer.weight_var / fan_in, "bias": layer.bias_var}
    return {"weight": 1.0, "bias": 1.0}


def with_bias(weights: jax.Array, bias: jax.Array, factors: Params) -> jax.Array:
    """What weights (n, positions, fan_in) and the bias are multiplied with, in one array."""
    bias = jnp.broadcast_to(jnp.sqrt(factors["bias"]) * bias, (*weights.shape[:2], 1)).astype(weights.dtype)
    return jnp.concatenate([jnp.sqrt(factors["weight"]) * weights, bias], axis=-1)
