"""A piecewise linear network as plain matrices: what lines and planes are cut by."""

from typing import Any, NamedTuple

import numpy as np

from .._check import numeric
from ..activations import PiecewiseLinear
from ..models import MLP
from ..models._params import checked_params

EPS = float(np.finfo(np.float64).eps)
ROUNDING = (
    32 * EPS
)  # values and slopes that are zero to this, relative to the sum of their terms, count as zero


class Layers(NamedTuple):
    """z^{l+1} = s(z^l) W_l + b_l with all scales multiplied in, s(z) = `right` z or `left` z by the sign of z."""

    weights: list[np.ndarray]  # (fan_in, fan_out) each
    biases: list[np.ndarray]
    right: float
    left: float

    def factors(self, on: np.ndarray) -> np.ndarray:
        """The slope of s, where a neuron is on and where it is off."""
        return np.where(on, self.right, self.left)

    def shifted(self, origin: np.ndarray, axes: np.ndarray) -> "Layers":
        """The same network as a function of coordinates u, x = `origin` + u `axes`."""
        first = (origin @ self.weights[0] + self.biases[0], axes @ self.weights[0])
        return self._replace(weights=[first[1], *self.weights[1:]], biases=[first[0], *self.biases[1:]])


def require_piecewise_linear(net: Any) -> None:
    """Refuses everything but an `nk.MLP` whose activation has one kink, at zero, and is linear on both sides."""
    if not isinstance(net, MLP):
        raise TypeError(
            f"`net` must be an nk.MLP, whose layers are known; got {type(net).__name__}: "
            'copy its weights into an nk.MLP with parametrization="standard".'
        )
    if not isinstance(net.activation, PiecewiseLinear):
        raise TypeError(
            '`net` must have a piecewise linear activation, "relu", "leaky_relu(slope)", "abs" or "linear", '
            f"by name; got {type(net.activation).__name__}: other networks have no linear regions."
        )


def layers_of(net: Any, params: Any) -> Layers:
    """The layers of a checked network with checked parameters."""
    require_piecewise_linear(net)
    params = checked_params(net, params)
    weights, biases = [], []
    for layer, entry in enumerate(params):
        weight, bias = (numeric(entry[name], "params") for name in ("weight", "bias"))
        weight_scale, bias_scale = (float(scale) for scale in net.scales(layer))
        weights.append(weight_scale * weight)
        biases.append(bias_scale * bias)
    return Layers(weights, biases, float(net.activation.right), float(net.activation.left))


def two_points(start: Any, end: Any, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Two different points (dim,) of input space; numbers will do in one dimension."""
    first, last = (np.atleast_1d(numeric(value, name)) for value, name in ((start, "start"), (end, "end")))
    for array, name in ((first, "start"), (last, "end")):
        if array.shape != (dim,):
            raise ValueError(f"`{name}` must be a point of shape ({dim},); got {array.shape}.")
    if np.array_equal(first, last):
        raise ValueError("`start` and `end` must be two different points.")
    return first, last
