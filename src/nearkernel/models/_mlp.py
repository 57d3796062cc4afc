"""Multilayer perceptrons in the three scalings of the theory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import activations
from .._check import between, one_of, positive, whole, wholes
from .._keys import Key, random_key
from .._memory import require_fits
from .._precision import drawing, in_float64, is_traced, working_dtype
from ._base import AbstractModel, Params, rows_of
from ._params import require_params

PARAMETRIZATIONS = ("ntk", "standard", "mean_field")
SMALLEST_VAR, LARGEST_VAR = (
    1e-100,
    1e100,
)  # squares of variances, and some of their products, are numbers still


class MLP(AbstractModel):
    r"""A fully connected network, z^{l+1} = w_l W s(z^l) + b_l B with C_W = `weight_var`, C_b = `bias_var`.

    | parametrization | entries of W, B at the start | w_l | b_l |
    |---|---|---|---|
    | "ntk" | N(0, 1) | sqrt(C_W / fan_in) | sqrt(C_b) |
    | "standard" | N(0, C_W / fan_in), N(0, C_b) | 1 | 1 |
    | "mean_field" | N(0, 1) | as "ntk", the last layer sqrt(C_W) / fan_in | sqrt(C_b) |

    With the learning rates of all parameters multiplied by `lr_factors()`, all three have the same tangent
    kernel at the start. At infinite width it then stays constant, except in mean-field scaling.

    **Arguments:** `in_dim`, features of an input; `widths` of the hidden layers (may be empty); `out_dim`;
    `activation`, a name or a JAX callable; `weight_var` > 0; `bias_var` >= 0; `parametrization`.
    Parameters are a list with one dict(weight=(fan_in, fan_out), bias=(fan_out,)) a layer.
    """

    in_dim: int = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True)
    out_dim: int = eqx.field(static=True)
    activation: activations.AbstractActivation
    weight_var: Any
    bias_var: Any
    parametrization: str = eqx.field(static=True)

    def __init__(
        self,
        in_dim: int,
        widths: Any = (512,),
        out_dim: int = 1,
        activation: Any = "relu",
        weight_var: Any = 1.0,
        bias_var: Any = 0.0,
        parametrization: str = "ntk",
    ):
        self.in_dim = whole(in_dim, "in_dim", 1)
        self.widths = wholes(widths, "widths")
        self.out_dim = whole(out_dim, "out_dim", 1)
        self.activation = activations.get(activation)
        self.weight_var = between(positive(weight_var, "weight_var"), "weight_var", SMALLEST_VAR, LARGEST_VAR)
        self.bias_var = between(positive(bias_var, "bias_var", zero=True), "bias_var", 0.0, LARGEST_VAR)
        self.parametrization = one_of(parametrization, "parametrization", PARAMETRIZATIONS)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Input, hidden and output dimensions."""
        return (self.in_dim, *self.widths, self.out_dim)

    def scales(self, layer: int) -> tuple[Any, Any]:
        """What multiplies W and B in layer 0, 1, ..."""
        if self.parametrization == "standard":
            return 1.0, 1.0
        fan_in = self.sizes[layer]
        last = self.parametrization == "mean_field" and 0 < layer == len(self.widths)
        scale = jnp.sqrt(self.weight_var) / (fan_in if last else fan_in**0.5)
        return scale, jnp.sqrt(self.bias_var)

    def parameter_shapes(self) -> Params:
        shapes = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        return [{"weight": _array(shape), "bias": _array(shape[1:])} for shape in shapes]

    @drawing
    def init(self, key: Key) -> Params:
        key = random_key(key)
        params = []
        dtype = working_dtype()
        if not is_traced(key):
            sizes = [
                (fan_in + 1) * fan_out for fan_in, fan_out in zip(self.sizes, self.sizes[1:], strict=False)
            ]
            require_fits(
                dtype.itemsize * (sum(sizes) + 2 * max(sizes)),  # a draw makes as many random bits, twice
                f"`init` of a network with widths {self.widths}",
                "use fewer neurons; theory of infinite width needs none",
            )
        for shape in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            key, weight_key, bias_key = jax.random.split(key, 3)
            weight = jax.random.normal(weight_key, shape, dtype)
            bias = jax.random.normal(bias_key, shape[1:], dtype)
            if self.parametrization == "standard":
                weight = weight * jnp.sqrt(self.weight_var / shape[0]).astype(dtype)
                bias = bias * jnp.sqrt(self.bias_var).astype(dtype)
            params.append({"weight": weight, "bias": bias})
        return params

    @in_float64
    def __call__(self, params: Params, x: Any) -> jax.Array:
        require_params(self, params)
        return self.layer_outputs(params, rows_of(x, self.in_dim))[-1]

    def layer_outputs(self, params: Params, x: jax.Array) -> list[jax.Array]:
        """Preactivations z^1 ... z^L, each (n, width)."""
        outputs: list[jax.Array] = []
        for layer, entry in enumerate(params):
            s = self.activation(outputs[-1]) if layer else x
            outputs.append(self.affine(layer, entry, s))
        return outputs

    def affine(self, layer: int, entry: dict, s: jax.Array) -> jax.Array:
        """One layer before its activation."""
        weight_scale, bias_scale = (jnp.asarray(scale, s.dtype) for scale in self.scales(layer))
        return weight_scale * (s @ entry["weight"]) + bias_scale * entry["bias"]

    @in_float64
    def lr_factors(self) -> Params:
        """Learning-rate factors, a tree like the parameters, that this scaling implies.

        "ntk": 1. "standard": C_W / fan_in and C_b, which makes training equal to that of the "ntk" network.
        "mean_field": the width of the last hidden layer, for which outputs move by O(1) at any width.
        """
        factors = []
        for layer in range(len(self.sizes) - 1):
            if self.parametrization == "standard":
                weight, bias = self.weight_var / self.sizes[layer], self.bias_var
            elif self.parametrization == "mean_field" and self.widths:
                weight = float(self.widths[-1])
                bias = weight if layer < len(self.widths) else 1.0
            else:
                weight = bias = 1.0
            factors.append({"weight": weight, "bias": bias})
        return factors


def _array(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.float64)
