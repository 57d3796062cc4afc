"""The linear regions of a piecewise linear network in the plane: exact polygons, each with its affine map."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import numpy as np

from ..._base.check import inputs, numeric, shown
from ..._base.result import Result
from ..._base.types import ArrayLike, Params
from ..._run.memory import rows_that_fit
from ..._run.precision import in_float64
from ...models.networks.mlp import MLP
from ...models.networks.network import Network
from .piecewise import ROUNDING, Layers, layers_of
from .polygons import Polygons, containing, joined, neighbours, split

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Region(NamedTuple):
    """One polygon and the affine function of the network on it, $z(u) = G u + c$.

    **Fields:** `vertices` (k, 2), counterclockwise; `gradient` $G$ (out, 2); `offset` $c$ (out,); `label`, the index
    of the linear region it belongs to; `area`.
    """

    vertices: np.ndarray
    gradient: np.ndarray
    offset: np.ndarray
    label: int
    area: float


class RegionsResult(Result, eqx.Module):
    """A partition of a box into convex polygons on which all neurons keep their signs: a sequence of `Region`.

    A *linear region* is a maximal connected set on which the gradient is constant. It consists of several polygons if
    a neuron changes sign without affecting the output; polygons of the same region have the same `labels`.

    **Fields:** `vertices`, p arrays (k, 2); `gradients` (p, out, 2) and `offsets` (p, out) of the affine maps; `labels`
    (p,) from 0 to `count` - 1; `areas` (p,); `box` (2, 2).
    """

    vertices: tuple[np.ndarray, ...]
    gradients: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray
    areas: np.ndarray
    box: np.ndarray
    _cells: Polygons  # the same polygons in units of the box

    @property
    def count(self) -> int:
        """The number of linear regions."""
        return int(self.labels.max()) + 1

    def __len__(self) -> int:
        return len(self.vertices)

    def __getitem__(self, i: int) -> Region:
        return Region(
            vertices=self.vertices[i],
            gradient=self.gradients[i],
            offset=self.offsets[i],
            label=int(self.labels[i]),
            area=float(self.areas[i]),
        )

    def __iter__(self) -> Iterator[Region]:
        return (self[i] for i in range(len(self)))

    def locate(self, points: ArrayLike) -> np.ndarray:
        """The index of the polygon that contains each of `points` (n, 2), (n,); -1 outside the box."""
        points = inputs(points, "points", 2)
        center, half = _center_and_half(self.box)
        units = (points - center) / half
        cells = containing(self._cells, np.clip(units, -1.0, 1.0))
        return np.where(np.all(np.abs(units) <= 1.0, axis=1), cells, -1)

    def _shown(self) -> Mapping[str, object]:
        return {"polygons": len(self), "linear_regions": self.count, "box": self.box.tolist()}

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw all polygons on Matplotlib's `axes`, with one color per linear region."""
        from ..._plots.polygons import draw_polygons

        return draw_polygons(self.vertices, self.labels, self.box, axes)


@in_float64
def regions(
    net: MLP | Network, params: Params, box: ArrayLike, plane: ArrayLike | None = None
) -> RegionsResult:
    r"""The exact polygons within a box on which a piecewise linear network is affine.

    The preactivations of each layer are affine on the polygons of the previous layer, and each neuron cuts the
    polygons that its zero line crosses. Time and memory grow with the number of polygons, about half the square of the
    sum of the widths.

    **Arguments:** `net`, same as `breakpoints`, with two inputs; `params`; `box`,
    ((x_low, x_high), (y_low, y_high)); `plane`, (origin (d,), axes (2, d)), for a network of d inputs:
    $x = \text{origin} + u_1 a_1 + u_2 a_2$ with the axes $a_1$, $a_2$, and the box, polygons and gradients are in the
    coordinates $u$.
    """
    layers = layers_of(net, params)
    corners = numeric(box, "box")
    if corners.shape != (2, 2) or np.any(corners[:, 0] >= corners[:, 1]):
        raise ValueError(
            f"`box` must be ((x_low, x_high), (y_low, y_high)) with low < high; got {shown(box)}."
        )
    origin, axes = _plane(plane, layers.in_dim)
    center, half = _center_and_half(corners)
    # In units of the box, rounding does not depend on where the box is.
    local = layers.shifted(origin + center @ axes, half[:, None] * axes)
    square = Polygons(np.array([[[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]]), np.array([4]))
    first = np.concatenate([local.weights[0], local.biases[0][None]]).T[None]  # (1, width, 3)
    cells, maps, rounding = _cells(local, 0, square, first, np.abs(first))
    labels = _labels(cells, maps, rounding)
    gradients = maps[..., :2] / half
    return RegionsResult(
        vertices=tuple(
            center + half * v[:k] for v, k in zip(cells.vertices, cells.counts, strict=True)
        ),
        gradients=gradients,
        offsets=maps[..., 2] - gradients @ center,
        labels=labels,
        areas=cells.areas() * np.prod(half),
        box=corners,
        _cells=cells,
    )  # fmt: skip


def _center_and_half(box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return box.mean(axis=1), (box[:, 1] - box[:, 0]) / 2


def _plane(plane: ArrayLike | None, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Origin (d,) and axes (2, d)."""
    if plane is None:
        if dim != 2:
            raise ValueError(f"`net` has {dim} inputs: give `plane` = (origin ({dim},), axes (2, {dim})).")
        return np.zeros(2), np.eye(2)
    if not isinstance(plane, list | tuple) or len(plane) != 2:
        raise ValueError(f"`plane` must be (origin ({dim},), axes (2, {dim})).")
    origin, axes = (numeric(part, "plane") for part in plane)
    if origin.shape != (dim,) or axes.shape != (2, dim) or np.linalg.matrix_rank(axes) < 2:
        raise ValueError(
            f"`plane` must be (origin ({dim},), axes (2, {dim})) with independent axes; "
            f"got shapes {origin.shape} and {axes.shape}."
        )
    return origin, axes


def _cells(
    layers: Layers, depth: int, cells: Polygons, maps: np.ndarray, sizes: np.ndarray
) -> tuple[Polygons, np.ndarray, np.ndarray]:
    """All polygons within the given ones, their output maps (p, out, 3), and to what these are exact.

    **Arguments:** `maps` (p, width, 3): the preactivations of layer `depth`, g_x u_1 + g_y u_2 + c; `sizes`, the sums
    of absolute values that they were added up from.
    """
    if depth == len(layers.weights) - 1:
        return cells, maps, ROUNDING * len(layers.weights) * sizes
    cells, parent, on = _cut_by_layer(cells, maps, ROUNDING * sizes.sum(axis=2), layers.right != layers.left)
    weight, bias = layers.weights[depth + 1], layers.biases[depth + 1]
    chunk = rows_that_fit(24 * (2 * maps.shape[1] + 2 * len(bias)))
    parts = []
    for at in range(0, len(parent), chunk):
        part = slice(at, at + chunk)
        hidden = layers.factors(on[part])[..., None] * maps[parent[part]]  # (p, width, 3)
        new = np.einsum("pwc,wn->pnc", hidden, weight, optimize=True)
        new_sizes = np.einsum("pwc,wn->pnc", np.abs(hidden), np.abs(weight), optimize=True)
        new[..., 2] += bias
        new_sizes[..., 2] += np.abs(bias)
        parts.append(_cells(layers, depth + 1, cells.take(np.arange(len(parent))[part]), new, new_sizes))
    polygons, outputs, rounding = zip(*parts, strict=True)
    return joined(list(polygons)), np.concatenate(outputs), np.concatenate(rounding)


def _cut_by_layer(
    cells: Polygons, maps: np.ndarray, zero: np.ndarray, kinked: bool
) -> tuple[Polygons, np.ndarray, np.ndarray]:
    """The polygons cut by each neuron in turn; which polygon each came from; and which neurons are on, (p, width)."""
    parent = np.arange(len(cells.counts))
    on = np.zeros((len(parent), maps.shape[1]), bool)
    for neuron in range(maps.shape[1]) if kinked else ():
        own = maps[parent, neuron]
        values = np.einsum("pvc,pc->pv", cells.vertices, own[:, :2]) + own[:, 2:]
        values[(np.abs(values) <= zero[parent, neuron][:, None]) | ~cells.filled()] = 0.0
        on[:, neuron] = values.sum(axis=1) > 0
        cut = (values.max(axis=1) > 0) & (values.min(axis=1) < 0)
        if not cut.any():
            continue
        kept, both = np.nonzero(~cut)[0], np.nonzero(cut)[0]
        above, below = split(cells.take(both), values[both])
        order = np.concatenate([kept, both, both])
        cells, parent, on = joined([cells.take(kept), above, below]), parent[order], on[order]
        on[len(kept) :, neuron] = np.arange(2 * len(both)) < len(both)
    return cells, parent, on


def _labels(cells: Polygons, maps: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """One number for all polygons that are connected through edges where the gradient does not jump."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one, other = neighbours(cells).T
    jump = np.abs(maps[one] - maps[other])[..., :2]
    same = np.all(jump <= np.maximum(rounding[one], rounding[other])[..., :2], axis=(1, 2))
    graph = coo_array((np.ones(same.sum()), (one[same], other[same])), shape=(len(maps), len(maps)))
    return connected_components(graph, directed=False)[1]
