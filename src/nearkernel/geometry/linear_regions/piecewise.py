"""A piecewise linear network as plain matrices, for cutting lines and planes."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import numeric
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.closed import PiecewiseLinear
from ...models.containers.sequential import Sequential
from ...models.layers.activation import Activation
from ...models.layers.base import AbstractLayer, AbstractPiecewiseLayer
from ...models.layers.dense import Dense
from ...models.networks.chain import chain_of
from ...models.networks.mlp import MLP
from ...models.networks.network import AbstractNetwork, leaves, missing
from ...models.networks.stage import affine
from ...models.params import checked_params

EPS = float(np.finfo(np.float64).eps)
# Values and slopes below this, relative to the sum of their terms, count as zero.
ROUNDING = 32 * EPS


class Layers(NamedTuple):
    """z^{l+1} = s(z^l) W_l + b_l with all scales multiplied in, s(z) = `right` z or `left` z by the sign of z."""

    weights: list[np.ndarray]  # (fan_in, fan_out) each
    biases: list[np.ndarray]
    right: float
    left: float

    @property
    def in_dim(self) -> int:
        """Numbers of an input."""
        return len(self.weights[0])

    def factors(self, on: np.ndarray) -> np.ndarray:
        """The slope of s, where a neuron is on and where it is off."""
        return np.where(on, self.right, self.left)

    def shifted(self, origin: np.ndarray, axes: np.ndarray) -> "Layers":
        """The same network as a function of coordinates u, x = `origin` + u `axes`."""
        first = (origin @ self.weights[0] + self.biases[0], axes @ self.weights[0])
        return self._replace(weights=[first[1], *self.weights[1:]], biases=[first[0], *self.biases[1:]])


def piecewise_linear_mlp(net: Any, verb: str) -> MLP:
    """The MLP of the law of `net`, whose activation must be linear on both sides of its only kink, at zero."""
    mlp = chain_of(net, verb, mean_field=True).mlp()
    if not isinstance(mlp.activation, PiecewiseLinear):
        raise TypeError(
            '`net` must have a piecewise linear activation, "relu", "leaky_relu(slope)", "abs" or "linear", '
            f"by name; got {type(mlp.activation).__name__}: other networks have no linear regions."
        )
    return mlp


@in_float64
def layers_of(net: Any, params: Any) -> Layers:
    """A network with its parameters, as a function of inputs in rows; layers between activations as one matrix."""
    if not isinstance(net, AbstractNetwork):
        raise TypeError(
            f"`net` must be an nk.MLP or nk.Network; got {type(net).__name__}: "
            'copy its weights into an nk.MLP with parametrization="standard".'
        )
    unfit = missing(net.layers, AbstractPiecewiseLayer)
    if unfit:
        raise TypeError(
            f"`{unfit[0]}`, {unfit[1]!r}, is not piecewise linear: the network has no linear regions."
        )
    shape, parts = net.in_shape, [Affine([], net.in_shape)]
    slopes: set[tuple[float, float]] = set()
    for k, layer in enumerate(net.layers.layers):
        if isinstance(layer, Activation):
            if not isinstance(layer.function, PiecewiseLinear):
                raise TypeError(
                    f'`layers[{k}]` must have a piecewise linear activation, "relu", "leaky_relu(slope)", "abs" or '
                    f'"linear", by name; got {layer!r}: '
                    "other networks have no linear regions."
                )
            slopes.add((float(layer.function.right), float(layer.function.left)))
            parts.append(Affine([], shape))
        elif any(isinstance(leaf, Activation) for leaf in leaves(layer)):
            raise TypeError(
                f"`layers[{k}]`, {layer!r}, contains an activation; only plain sequences of layers are supported."
            )
        else:
            parts[-1].layers.append(layer)
        shape = layer.shape(shape)
    if len(slopes) > 1:
        raise TypeError("`net` must have the same activation in all layers.")
    right, left = next(iter(slopes), (1.0, 1.0))
    rest = iter(checked_params(net, params))
    weights, biases = zip(*(part.matrix(rest) for part in parts), strict=True)
    return Layers(list(weights), list(biases), right, left)


class Affine(NamedTuple):
    """Layers without activations, and the shape of what enters."""

    layers: list[AbstractLayer]
    shape: tuple[int, ...]

    def matrix(self, params: Iterator[Any]) -> tuple[np.ndarray, np.ndarray]:
        """(inputs, outputs) and (outputs,), with the next of `params`."""
        own = [next(params) for layer in self.layers if layer.has_params()]
        if len(self.layers) == len(self.shape) == 1 and isinstance(self.layers[0], Dense):
            return affine(self.layers[0], own[0], self.shape[0])
        sequence, zero = Sequential(self.layers), jnp.zeros(math.prod(self.shape))
        outputs = lambda flat: sequence(own, flat.reshape(1, *self.shape)).ravel()
        return np.asarray(jax.jacfwd(outputs)(zero)).T, np.asarray(outputs(zero))


def two_points(start: ArrayLike, end: ArrayLike, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Two different points (dim,) of input space; numbers will do in one dimension."""
    first, last = (np.atleast_1d(numeric(value, name)) for value, name in ((start, "start"), (end, "end")))
    for array, name in ((first, "start"), (last, "end")):
        if array.shape != (dim,):
            raise ValueError(f"`{name}` must be a point of shape ({dim},); got {array.shape}.")
    if np.array_equal(first, last):
        raise ValueError("`start` and `end` must be two different points.")
    return first, last
