"""Multilayer perceptrons in the scalings of the theory, and in that of maximal updates."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ... import activations
from ..._base.check import one_of, whole, wholes
from ..._base.keys import Key, random_key
from ..._run.precision import drawing, in_float64
from ..base import Params
from ..containers.sequential import Sequential
from ..layers.activation import Activation
from ..layers.base import Shape
from ..layers.dense import PARAMETRIZATIONS, Dense
from ..layers.weights import bias_variance, weight_variance
from .network import AbstractNetwork


class MLP(AbstractNetwork):
    r"""A fully connected network, $z^{l+1} = w_l W s(z^l) + b_l B$ with $C_W$ = `weight_var`, $C_b$ = `bias_var`.

    | parametrization | entries of $W$, $B$ at initialization | $w_l$ | $b_l$ |
    |---|---|---|---|
    | "ntk" | $\mathcal{N}(0, 1)$ | $\sqrt{C_W / \text{fan-in}}$ | $\sqrt{C_b}$ |
    | "standard" | $\mathcal{N}(0, C_W / \text{fan-in})$, $\mathcal{N}(0, C_b)$ | 1 | 1 |
    | "mean_field" | $\mathcal{N}(0, 1)$ | same as "ntk", the last layer $\sqrt{C_W} / \text{fan-in}$ | $\sqrt{C_b}$ |
    | "mup" | same as "standard", last weights $\mathcal{N}(0, C_W\, \text{base width} / \text{fan-in}^2)$ | 1 | 1 |

    Training multiplies the learning rates of all parameters by `lr_factors()`, unless told otherwise. With them the
    first three have the same tangent kernel at initialization. At infinite width the kernel then stays constant,
    except in mean-field scaling.

    "mup" is the maximal update parametrization. At `base_width` it is the standard network; at other widths all
    layers move by the same amount in training, so a learning rate tuned at the base width carries over.

    **Arguments:**

    - `in_dim`: number of features of an input.
    - `widths`: widths of the hidden layers (may be empty).
    - `out_dim`: number of outputs.
    - `activation`: a name or a JAX function, or a tuple with one per hidden layer.
    - `weight_var` > 0 and `bias_var` >= 0: numbers, or tuples with one value per layer.
    - `parametrization`: "ntk", "standard", "mean_field" or "mup".
    - `base_width`: for "mup" only.

    Parameters are a list with one `dict(weight=(fan_in, fan_out), bias=(fan_out,))` per layer.
    """

    in_dim: int = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True)
    out_dim: int = eqx.field(static=True)
    activation: Any
    weight_var: Any
    bias_var: Any
    parametrization: str = eqx.field(static=True)
    base_width: int = eqx.field(static=True)

    def __init__(
        self,
        in_dim: int,
        widths: Any = (512,),
        out_dim: int = 1,
        activation: Any = "relu",
        weight_var: Any = 1.0,
        bias_var: Any = 0.0,
        parametrization: str = "ntk",
        base_width: int = 64,
    ):
        self.in_dim = whole(in_dim, "in_dim", 1)
        self.widths = wholes(widths, "widths")
        self.out_dim = whole(out_dim, "out_dim", 1)
        depth = len(self.widths)
        self.activation = _one_or_each(activation, "activation", depth, activations.get)
        self.weight_var = _one_or_each(weight_var, "weight_var", depth + 1, weight_variance)
        self.bias_var = _one_or_each(bias_var, "bias_var", depth + 1, bias_variance)
        self.parametrization = one_of(parametrization, "parametrization", (*PARAMETRIZATIONS, "mup"))
        self.base_width = whole(base_width, "base_width", 1)

    @property
    def in_shape(self) -> Shape:
        return (self.in_dim,)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The input, hidden and output dimensions."""
        return (self.in_dim, *self.widths, self.out_dim)

    @property
    def uniform(self) -> bool:
        """Whether all layers have the same activation and variances."""
        return not any(
            isinstance(each, PerLayer) for each in (self.activation, self.weight_var, self.bias_var)
        )

    @property
    def layers(self) -> Sequential:
        rest = [(Activation(each), self.dense(layer)) for layer, each in enumerate(self.activations, 1)]
        return Sequential([self.dense(0), *itertools.chain.from_iterable(rest)])

    def tuned_width(self) -> int | None:
        return self.base_width if self.parametrization == "mup" else None

    def activation_of(self, layer: int) -> activations.AbstractActivation:
        """The activation before layer `layer` = 1, 2, ..."""
        return self.activation[layer - 1] if isinstance(self.activation, PerLayer) else self.activation

    @property
    def activations(self) -> tuple[activations.AbstractActivation, ...]:
        """The activations of the hidden layers."""
        return tuple(self.activation_of(layer) for layer in range(1, len(self.sizes) - 1))

    def of_width(self, width: int) -> "MLP":
        """The same network with all hidden layers of `width` neurons."""
        return dataclasses.replace(self, widths=(width,) * len(self.widths))

    def widened(self, times: Callable[[int], int]) -> "MLP":
        return dataclasses.replace(self, widths=tuple(map(times, self.widths)))

    def dense(self, layer: int) -> Dense:
        """Layer `layer` = 0, 1, ... before its activation."""
        weight_var, bias_var = (
            v[layer] if isinstance(v, PerLayer) else v for v in (self.weight_var, self.bias_var)
        )
        kind = self.parametrization
        if kind == "mean_field" and not 0 < layer == len(self.widths):
            kind = "ntk"
        if kind == "mup":
            kind = "standard"
            if 0 < layer == len(self.widths):
                weight_var = weight_var * self.base_width / self.sizes[layer]
        return Dense(self.sizes[layer + 1], weight_var, bias_var, kind)

    def scales(self, layer: int) -> tuple[Any, Any]:
        """The factors that multiply W and B in layer `layer` = 0, 1, ..."""
        return self.dense(layer).scales(self.sizes[layer])

    def parameter_shapes(self) -> Params:
        shapes = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        return [{"weight": _array(shape), "bias": _array(shape[1:])} for shape in shapes]

    @drawing
    def init(self, key: Key) -> Params:
        key = random_key(key)
        params = []
        self.require_memory(key)
        for layer, shape in enumerate(zip(self.sizes[:-1], self.sizes[1:], strict=True)):
            key, weight_key, bias_key = jax.random.split(key, 3)
            params.append(self.dense(layer).drawn((weight_key, bias_key), shape, shape[1:], shape[0]))
        return params

    def affine(self, layer: int, entry: dict, s: jax.Array) -> jax.Array:
        """The preactivations of layer `layer` with weights and biases `entry`, at inputs `s`."""
        return self.dense(layer)(entry, s)

    @in_float64
    def lr_factors(self, optimizer: str = "sgd") -> Params:
        r"""Learning-rate factors, a tree like the parameters, that the parametrization implies.

        Training uses them unless told otherwise: `nk.simulate`, `nk.forecast`, `nk.inspect`, `nk.kernels.EmpiricalNTK`.

        "ntk": 1. "standard": $C_W / \text{fan-in}$ and $C_b$, with which the network trains exactly like the "ntk"
        network. "mean_field": the width of the last hidden layer, so that outputs move by $O(1)$ at any width. "mup":
        with widths in units of `base_width`, fan-out/fan-in for gradient descent (`optimizer` "sgd") and 1/fan-in for
        "adam"; inputs and outputs count as width 1, biases have fan-in 1, and with $C_b = 0$ they stay 0.
        """
        one_of(optimizer, "optimizer", ("sgd", "adam"))
        if self.maximal:
            ratios = [1.0, *(width / self.base_width for width in self.widths), 1.0]
            grow = [ratio if optimizer == "sgd" else 1.0 for ratio in ratios]
            return [
                {"weight": there / here, "bias": there * float(self.dense(layer).bias_var > 0)}
                for layer, (here, there) in enumerate(zip(ratios[:-1], grow[1:], strict=True))
            ]
        if optimizer == "adam":
            raise ValueError(
                f'`optimizer="adam"` is for parametrization "mup"; got "{self.parametrization}".'
            )
        return self.layers.lr_factors(self.in_shape)

    def own_factors(self, optimizer: str) -> Params | None:
        return self.lr_factors(optimizer) if self.maximal else super().own_factors(optimizer)


class PerLayer(eqx.Module):
    """Values that differ from layer to layer. A function that needs one for all of them gets a clear error."""

    name: str = eqx.field(static=True)
    values: tuple

    def __getitem__(self, layer: int) -> Any:
        return self.values[layer]

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"`{self.name}` differs from layer to layer in this network; this function needs one value for all layers."
        )

    __call__ = __float__ = __array__ = __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = _refused
    __sub__ = __rsub__ = __rtruediv__ = __pow__ = __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = (
        _refused
    )


def _one_or_each(value: Any, name: str, count: int, check: Any) -> Any:
    """One value for all layers, or one per layer."""
    if isinstance(value, PerLayer):
        value = value.values
    if not isinstance(value, list | tuple):
        return check(value)
    if len(value) != count:
        raise ValueError(f"`{name}` must be one value, or one per layer, {count} of them; got {len(value)}.")
    return PerLayer(name, tuple(check(v) for v in value))


def _array(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.float64)
