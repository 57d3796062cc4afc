"""A fully connected layer, applied at each position if there are any."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import one_of, whole
from .base import AbstractOuterLayer, AbstractPiecewiseLayer, Pair, Params, Row, Shape, covariance, namespace
from .layout import Layout
from .weights import AbstractAffine, bias_variance, weight_variance

PARAMETRIZATIONS = ("ntk", "standard", "mean_field")


class Dense(AbstractAffine, AbstractOuterLayer, AbstractPiecewiseLayer):
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

    def __check_init__(self):
        whole(self.width, "width", 1)
        weight_variance(self.weight_var)
        bias_variance(self.bias_var)
        one_of(self.parametrization, "parametrization", PARAMETRIZATIONS)

    def __repr__(self) -> str:
        return f"Dense({self.width})"

    def shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], self.width)

    def fan_in(self, channels: int) -> int:
        return channels

    def scales(self, channels: int) -> tuple[Any, Any]:
        if self.parametrization == "standard":
            return 1.0, 1.0
        fan = channels if self.parametrization == "mean_field" else channels**0.5
        return jnp.sqrt(self.weight_var) / fan, jnp.sqrt(self.bias_var)

    def init(self, key: jax.Array, shape: Shape) -> Params:
        return self.drawn(jax.random.split(key), (shape[-1], self.width), (self.width,), shape[-1])

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        return self.outputs(x @ params["weight"], params, x)

    def shrinks(self, shape: Shape) -> float:
        return float(shape[-1]) if self.parametrization == "mean_field" else 1.0

    def enters(self, x: jax.Array, factors: Params) -> jax.Array:
        return self.entering(x.reshape(len(x), -1, x.shape[-1]), x, factors)

    def resized(self, change: Callable[[int], int]) -> "Dense":
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
