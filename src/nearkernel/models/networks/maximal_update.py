r"""Maximal updates of networks of layers: learning rates with which every layer moves alike at any width.

A weight matrix whose fan-in and fan-out grow with the width by $a_{\text{in}}$ and $a_{\text{out}}$, each 1 or $r$, has
with multiplier $m$ the learning-rate factors

| gradient descent | Adam |
|---|---|
| $(a_{\text{out}} / a_{\text{in}})\, (m_{\text{base}} / m)^2$ | $(1 / a_{\text{in}})\, (m_{\text{base}} / m)$ |

and the weights of the last layer are divided by $\sqrt r$ at initialization. Queries, keys, values and outputs of
attention are such matrices. Once queries and keys have moved, a score is a sum of terms of one sign over the dimension
$d$ of a head: it stays of order one if it is divided by $d$, or by $\sqrt d$ where $d$ does not grow.
`Attention.resized` grows heads accordingly.
"""

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..._base.check import one_of, whole
from ..._base.keys import Key
from ..._base.types import ArrayLike
from ..._run.precision import drawing, in_float64
from ..base import AbstractModel, Params
from ..layers.conv import AbstractFilter
from ..layers.dense import Dense
from ..layers.embedding import PositionEmbedding
from ..layers.weights import AbstractWeights
from .network import AbstractNetwork, leaves

# Axes of the fan-in; other parameters have none.
_FAN_IN = {"weight": -2, "query": -3, "key": -3, "value": -3, "output": -2}
_twice = (2).__mul__


class MaximalUpdate(AbstractModel):
    r"""The maximal update parametrization (muP) of a network of layers.

    If the first hidden layer has `base_width` channels, it is `net` itself. At other widths, with the other layers in
    proportion and learning rates multiplied by `lr_factors`, all layers move by the same amount in training, so that a
    learning rate tuned on a narrow network carries over to a wide one. With $r$ = width / `base_width`, the factors of
    layers in "standard" parametrization are

    | parameters | gradient descent | Adam | initial weights |
    |---|---|---|---|
    | first layer, biases, embeddings | $r$ | 1 | |
    | hidden layers | 1 | $1/r$ | |
    | last layer | $1/r$ | $1/r$ | divided by $\sqrt r$ |

    and the factors of layers in "ntk" parametrization are equivalent. Queries, keys, values and outputs of attention
    are hidden layers. A wider network has heads of a larger dimension if `scaling="linear"`, and more heads of the same
    dimension if `scaling="sqrt"`: scores divided by the root of a growing dimension would move by a growing amount.

    **Arguments:** `net`, an `nk.Network` or `nk.MLP` whose last layer is `Dense`, with `Dense`, `Conv`,
    `LocallyConnected`, `Attention`, `PositionEmbedding`, and any layers without parameters; `base_width`. Parameters
    are those of `net`.
    """

    net: AbstractNetwork
    base_width: int = eqx.field(static=True, default=64)

    def __check_init__(self):
        if not isinstance(self.net, AbstractNetwork):
            raise TypeError(f"`net` must be an nk.Network or nk.MLP; got {type(self.net).__name__}.")
        whole(self.base_width, "base_width", 1)
        _require_known(self.net)
        _growth(self.net)

    @property
    def in_shape(self) -> tuple[int, ...]:
        return self.net.in_shape

    def of_width(self, width: int) -> "MaximalUpdate":
        """The same parametrization of the network with a first layer of `width` channels."""
        return MaximalUpdate(self.net.of_width(width), self.base_width)

    @property
    def ratio(self) -> float:
        """The width over the base width."""
        return self.net.first_width() / self.base_width

    @drawing
    def init(self, key: Key) -> Params:
        *hidden, last = self.net.init(key)
        return [*hidden, {**last, "weight": last["weight"] / self.ratio**0.5}]

    def parameter_shapes(self) -> Params:
        return self.net.parameter_shapes()

    def __call__(self, params: Params, x: ArrayLike) -> jax.Array:
        return self.net(params, x)

    @in_float64
    def lr_factors(self, optimizer: str = "sgd") -> Params:
        """Learning-rate factors, a tree like the parameters, for `optimizer` "sgd" (gradient descent) or "adam"."""
        one_of(optimizer, "optimizer", ("sgd", "adam"))
        ratio = self.ratio

        def factor(own: Any, wider: Any, grows: tuple[bool, bool]) -> float:
            if float(own) == 0.0:  # biases of variance 0 stay 0
                return 0.0
            scaled = 1.0 if np.isclose(float(own), float(wider)) else 1.0 / ratio  # (m_base / m)^2 / a_in
            before, after = (ratio if each else 1.0 for each in grows)
            return scaled * after if optimizer == "sgd" else float(np.sqrt(scaled / before))

        own, wider = self.net.lr_factors(), self.net.widened(_twice).lr_factors()
        return jax.tree.map(factor, own, wider, _growth(self.net))

    def own_factors(self, optimizer: str) -> Params:
        return self.lr_factors(optimizer)


def _require_known(net: AbstractNetwork) -> None:
    """Raises unless maximal updates are known for every layer."""
    if net.mean_field or net.maximal:
        raise ValueError('`net` must have layers of parametrization "ntk" or "standard", which muP changes.')
    if net.readout() is None:
        raise ValueError(
            "`net` must have hidden layers and end in nk.layers.Dense, whose weights muP scales."
        )
    for layer in leaves(net.layers):
        if layer.has_params() and not isinstance(layer, AbstractWeights | PositionEmbedding):
            raise ValueError(
                f"`net` has {layer!r}, for which muP is not known: use Dense, Conv, LocallyConnected, Attention or "
                "PositionEmbedding."
            )
    if not isinstance(next(each for each in leaves(net.layers) if each.has_params()), Dense | AbstractFilter):
        raise ValueError("`net` must begin with Dense or Conv, whose width counts in units of `base_width`.")


def fans(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Fan-in and fan-out of a parameter of an array `shape`, up to what does not grow: positions, taps, blocks."""
    fan_in = shape[_FAN_IN[name]] if name in _FAN_IN else 1
    return fan_in, math.prod(shape) // fan_in


@in_float64
def _growth(net: AbstractNetwork) -> Params:
    """For every parameter, whether its fan-in and its fan-out grow with the width."""
    try:
        wider = net.widened(_twice).parameter_shapes()
    except ValueError as error:
        raise ValueError(f"`net` cannot be made wider, as muP needs: {error}") from None

    def grows(path: Any, small: Any, large: Any) -> tuple[bool, bool]:
        name = path[-1].key
        before, after = np.divide(fans(name, large.shape), fans(name, small.shape)).tolist()
        if not {before, after} <= {1.0, 2.0}:
            raise ValueError("`net` joins inputs and hidden channels in one layer; its muP is not known.")
        return before > 1, after > 1

    return jax.tree_util.tree_map_with_path(grows, net.parameter_shapes(), wider)
