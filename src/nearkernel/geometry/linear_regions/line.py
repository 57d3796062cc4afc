"""Where a piecewise linear network bends along a line: exact positions, layer by layer, without a grid."""

from typing import NamedTuple

import numpy as np

from ..._base.types import ArrayLike, Params
from ..._run.precision import in_float64
from ...models.networks.mlp import MLP
from ...models.networks.network import Network
from .piecewise import EPS, ROUNDING, Layers, layers_of, two_points

_SAME = 16 * EPS  # positions in [0, 1] that are closer than this are one


class CrossingsResult(NamedTuple):
    """The positions along a line where neurons change sign, sorted: one entry per sign change.

    **Fields:** `position` (k,) in (0, 1); `layer` (k,), 1 for the first hidden layer; `neuron` (k,), 0 for the first.
    """

    position: np.ndarray
    layer: np.ndarray
    neuron: np.ndarray

    def per_layer(self, depth: int) -> np.ndarray:
        """The number of sign changes in each of `depth` hidden layers, (depth,)."""
        return np.bincount(self.layer, minlength=depth + 1)[1:]


@in_float64
def breakpoints(net: MLP | Network, params: Params, start: ArrayLike, end: ArrayLike) -> np.ndarray:
    r"""The exact positions in (0, 1), sorted, where outputs of a piecewise linear network bend between two points.

    The line is $x(t) = \text{start} + t\, (\text{end} - \text{start})$. Every preactivation is piecewise linear in t,
    so its roots follow by interpolation. There is no grid: two bends may be 1e-14 apart. A sign change of a neuron
    that does not affect the output causes no bend; `crossings` lists all sign changes. The network has
    `len(breakpoints(...)) + 1` linear pieces on the line.

    **Arguments:** `net`, an `nk.MLP` with ReLU, leaky ReLU or abs, of any depth, or an `nk.Network` of these
    activations and affine layers (convolutions, pooling, Flatten); `params`; `start`, `end`, two points (d,), or
    numbers if d = 1. Images are flattened into one row.
    """
    layers = layers_of(net, params)
    cut = _cut(layers, *two_points(start, end, layers.in_dim))
    jump = np.abs(np.diff(cut.slopes, axis=0))
    seen = np.any(jump > np.maximum(cut.rounding[1:], cut.rounding[:-1]), axis=1)
    return cut.knots[1:-1][seen]


@in_float64
def crossings(net: MLP | Network, params: Params, start: ArrayLike, end: ArrayLike) -> CrossingsResult:
    """All positions where a neuron of a piecewise linear network changes sign between two points.

    **Arguments:** `net`, `params`, `start`, `end`: same as `breakpoints`. A preactivation that is zero on a whole
    piece does not change sign there.
    """
    layers = layers_of(net, params)
    return crossings_of(layers, *two_points(start, end, layers.in_dim))


def crossings_of(layers: Layers, start: np.ndarray, end: np.ndarray) -> CrossingsResult:
    """`crossings` of checked arguments."""
    points = _cut(layers, start, end).crossings
    layer = np.repeat(np.arange(1, len(points)), [len(at) for at, _ in points[1:]])
    position, neuron = (np.concatenate(part) for part in zip(*points, strict=True))
    order = np.argsort(position, kind="stable")
    return CrossingsResult(position[order], layer[order], neuron[order])


class _Cut(NamedTuple):
    """The line with all its kinks: s pieces between s + 1 knots."""

    knots: np.ndarray  # (s + 1,) from 0 to 1
    slopes: np.ndarray  # (s, out), derivatives of the outputs by t
    rounding: np.ndarray  # (s, out), what slopes are exact to
    crossings: list[tuple[np.ndarray, np.ndarray]]  # of the inputs and each hidden layer: positions, neurons


def _cut(layers: Layers, start: np.ndarray, end: np.ndarray) -> _Cut:
    knots, ends = np.array([0.0, 1.0]), np.stack([start, end])
    z = ends @ layers.weights[0] + layers.biases[0]  # (knots, width): values at the knots
    size = np.abs(ends) @ np.abs(layers.weights[0]) + np.abs(layers.biases[0])
    slopes = (end - start)[None] @ layers.weights[0]  # (pieces, width): derivatives on the pieces
    rounding = ROUNDING * np.abs(end - start)[None] @ np.abs(layers.weights[0])
    switches = [(np.empty(0), np.empty(0, int))]  # the inputs do not switch
    kinked = layers.right != layers.left
    for weight, bias in zip(layers.weights[1:], layers.biases[1:], strict=True):
        if kinked:
            knots, z, piece = _insert_roots(knots, np.where(np.abs(z) <= ROUNDING * size, 0.0, z))
            slopes = slopes[piece]
        side = np.sign(z[:-1] + z[1:])  # no neuron changes sign within a piece any more
        if kinked:
            at, neuron = np.nonzero(side[:-1] * side[1:] < 0)
            switches.append((knots[1:-1][at], neuron))
        slopes, z = layers.factors(side > 0) * slopes, layers.factors(z > 0) * z
        size = np.abs(z) @ np.abs(weight) + np.abs(bias)
        rounding = ROUNDING * len(layers.weights) * np.abs(slopes) @ np.abs(weight)
        slopes, z = slopes @ weight, z @ weight + bias
    return _Cut(knots, slopes, rounding, switches)


def _insert_roots(knots: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """New knots wherever a column of `z`, linear between knots, changes sign; and from which piece each piece came.

    Roots that agree to rounding become one knot: a sliver between them would have signs made of rounding errors.
    """
    sign = np.sign(z)
    piece, column = np.nonzero(sign[:-1] * sign[1:] < 0)
    left, right = z[piece, column], z[piece + 1, column]
    share = left / (left - right)
    at = (1 - share) * knots[piece] + share * knots[piece + 1]
    at_left, at_right = at - knots[piece] <= _SAME, knots[piece + 1] - at <= _SAME
    z[piece[at_left], column[at_left]] = 0.0
    z[piece[at_right & ~at_left] + 1, column[at_right & ~at_left]] = 0.0
    inside = np.nonzero(~at_left & ~at_right)[0]
    inside = inside[np.argsort(at[inside], kind="stable")]
    first = np.ones(len(inside), bool)  # of a group of equal roots
    first[1:] = np.diff(at[inside]) > _SAME
    group, new = np.cumsum(first) - 1, inside[first]
    share = share[new][:, None]
    rows = (1 - share) * z[piece[new]] + share * z[piece[new] + 1]
    rows[group, column[inside]] = 0.0
    order = np.argsort(np.concatenate([knots, at[new]]), kind="stable")
    origin = np.concatenate([np.arange(len(knots)), piece[new]])[order]
    return np.concatenate([knots, at[new]])[order], np.concatenate([z, rows])[order], origin[:-1]
