"""The linear piece of a network around one input, in any number of dimensions: a convex polytope."""

import equinox as eqx
import numpy as np
import scipy.optimize

from ..._base.check import inputs, numeric
from ..._base.result import Result
from ..._base.types import ArrayLike, Params
from ..._run.precision import in_float64
from ...models.networks.mlp import MLP
from ...models.networks.network import Network
from .piecewise import ROUNDING, layers_of


class CellResult(Result, eqx.Module):
    r"""All inputs at which every neuron has the same sign as at one point: a polytope, $N x \le b$.

    **Fields:** `normals` $N$ (k, d), of length 1, and `offsets` $b$ (k,), one half-space per neuron that can switch;
    `layer` (k,), 1 for the first hidden layer, and `neuron` (k,); `facets`, indices of the half-spaces that are sides
    of the polytope (they imply the others); `bounded`; `gradient` $G$ (out, d) and `offset` $c$ (out,) of
    the outputs, $z(x) = G x + c$ inside the cell.
    """

    normals: np.ndarray
    offsets: np.ndarray
    layer: np.ndarray
    neuron: np.ndarray
    facets: np.ndarray
    bounded: bool
    gradient: np.ndarray
    offset: np.ndarray

    def contains(self, x: ArrayLike) -> np.ndarray:
        """Whether each row of `x` (n, d) lies in the cell, (n,)."""
        x = inputs(x, "x", self.normals.shape[1])
        size = np.abs(x) @ np.abs(self.normals).T + np.abs(self.offsets)
        return np.all(x @ self.normals.T <= self.offsets + ROUNDING * size, axis=1)


@in_float64
def cell(net: MLP | Network, params: Params, point: ArrayLike) -> CellResult:
    """The convex polytope around `point` on which a piecewise linear network is one affine map, with its sides.

    Inside the cell the preactivations of each layer are affine, so every neuron contributes one half-space, whatever
    its layer. A half-space is a side if a linear program finds a point that violates it and no other half-space.

    **Arguments:** `net`, `params`: same as `nk.theory.breakpoints`; `point` (d,), at which no neuron is exactly 0.
    """
    layers = layers_of(net, params)
    at = np.atleast_1d(numeric(point, "point"))
    if at.shape != (layers.in_dim,):
        raise ValueError(f"`point` must have shape ({layers.in_dim},); got {at.shape}.")
    matrix, shift = layers.weights[0].T, layers.biases[0]  # z = matrix x + shift in the cell
    normals, offsets, layer, neuron = [], [], [], []
    for depth in range(1, len(layers.weights)):
        z = matrix @ at + shift
        size = np.abs(matrix) @ np.abs(at) + np.abs(shift)
        length = np.linalg.norm(matrix, axis=1)
        if layers.right != layers.left:
            switches = length > ROUNDING * max(float(length.max(initial=0.0)), 1e-300)
            if np.any(switches & (np.abs(z) <= ROUNDING * size)):
                raise ValueError(
                    "`point` lies on the border of a cell, where a neuron is 0: move it slightly."
                )
            side = -np.sign(z[switches]) / length[switches]
            normals.append(side[:, None] * matrix[switches])
            offsets.append(-side * shift[switches])
            neuron.append(np.flatnonzero(switches))
            layer.append(np.full(len(side), depth))
        slope = layers.factors(z > 0)
        weight = layers.weights[depth].T * slope
        matrix, shift = weight @ matrix, weight @ shift + layers.biases[depth]
    walls = np.concatenate(normals) if normals else np.zeros((0, layers.in_dim))
    limits = np.concatenate(offsets) if offsets else np.zeros(0)
    numbers = [np.concatenate(part) if part else np.zeros(0, int) for part in (layer, neuron)]
    facets = _facets(walls, limits - walls @ at)
    return CellResult(
        normals=walls,
        offsets=limits,
        layer=numbers[0],
        neuron=numbers[1],
        facets=facets,
        bounded=_bounded(walls[facets]),
        gradient=matrix,
        offset=shift,
    )


def _facets(walls: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Which of the half-spaces walls . v <= room, room > 0, are not implied by the others."""
    kept = _candidates(walls, room)
    at = 0
    while at < len(kept):
        rest = np.delete(kept, at)
        wall, limit = walls[kept[at]], room[kept[at]]
        optimum = scipy.optimize.linprog(
            -wall,
            np.vstack([walls[rest], wall]),
            np.append(room[rest], limit * (1 + 1e-3)),
            bounds=(None, None),
            method="highs",
        )
        implied = optimum.status == 0 and -optimum.fun <= limit * (1 + 1e-9)
        kept, at = (rest, at) if implied else (kept, at + 1)
    return kept


def _candidates(walls: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Half-spaces that may be sides: the corners of the convex hull of the dual points walls / room."""
    from scipy.spatial import ConvexHull, QhullError

    dim = walls.shape[1]
    every = np.arange(len(walls))
    if dim == 1 or dim > 6 or len(walls) <= dim + 2:
        return every
    try:
        # With 0 among the points the hull is that of the polar body also if the cell is unbounded.
        dual = np.vstack([walls / room[:, None], np.zeros(dim)])
        corners = ConvexHull(dual).vertices
    except QhullError:
        return every
    return np.sort(corners[corners < len(walls)])


def _bounded(walls: np.ndarray) -> bool:
    """Whether walls . v <= 0 has no solution but 0: the normals span all directions with positive weights."""
    if len(walls) <= walls.shape[1] or np.linalg.matrix_rank(walls) < walls.shape[1]:
        return False
    optimum = scipy.optimize.linprog(
        np.zeros(len(walls)), A_eq=walls.T, b_eq=np.zeros(walls.shape[1]), bounds=(1.0, None), method="highs"
    )
    return bool(optimum.status == 0)
