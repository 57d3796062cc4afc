"""Many convex polygons at once: cutting them by lines, finding points in them and neighbors among them."""

from typing import NamedTuple

import numpy as np

NEAR = 1e-10  # corners of neighbours agree to this, in units of the box
_ON_EDGE = 1e-15  # a point that is outside of both neighbours by rounding belongs to one of them


class Polygons(NamedTuple):
    """Convex polygons in one padded array; `vertices[i, :counts[i]]` run counterclockwise."""

    vertices: np.ndarray  # (p, most, 2)
    counts: np.ndarray  # (p,)

    def take(self, index: np.ndarray) -> "Polygons":
        return Polygons(self.vertices[index], self.counts[index])

    def filled(self) -> np.ndarray:
        """(p, most): which entries are vertices."""
        return np.arange(self.vertices.shape[1]) < self.counts[:, None]

    def following(self) -> np.ndarray:
        """(p, most): the index of the vertex after each vertex."""
        return (np.arange(self.vertices.shape[1]) + 1) % self.counts[:, None]

    def edges(self) -> np.ndarray:
        """(p, most, 2): from each vertex to the next."""
        return np.take_along_axis(self.vertices, self.following()[..., None], axis=1) - self.vertices

    def areas(self) -> np.ndarray:
        """(p,), of triangles from the first vertex: small ones keep their digits."""
        corner = (
            np.where(self.filled()[..., None], self.vertices, self.vertices[:, :1]) - self.vertices[:, :1]
        )
        x, y = corner[..., 0], corner[..., 1]
        return 0.5 * np.sum(x[:, :-1] * y[:, 1:] - x[:, 1:] * y[:, :-1], axis=1)


def joined(parts: list[Polygons]) -> Polygons:
    most = max(part.vertices.shape[1] for part in parts)
    padded = [np.pad(p.vertices, ((0, 0), (0, most - p.vertices.shape[1]), (0, 0))) for p in parts]
    return Polygons(np.concatenate(padded), np.concatenate([part.counts for part in parts]))


def split(polygons: Polygons, values: np.ndarray) -> tuple[Polygons, Polygons]:
    """The parts where a function that is linear on each polygon is positive, and where it is negative.

    **Arguments:** `values` (p, most) at the vertices, 0 for those that lie on the cut; both signs occur in each row.
    """
    after = polygons.following()
    other = np.take_along_axis(values, after, axis=1)
    crossed = (values * other < 0) & polygons.filled()
    # From the negative to the positive end, so that both neighbours of an edge find the same point.
    here, there = polygons.vertices, np.take_along_axis(polygons.vertices, after[..., None], axis=1)
    up = (values < 0)[..., None]
    low, high = np.where(up, here, there), np.where(up, there, here)
    v_low, v_high = np.minimum(values, other), np.maximum(values, other)
    share = np.divide(v_low, v_low - v_high, out=np.zeros_like(values), where=crossed)[..., None]
    points = (1 - share) * low + share * high
    slots = np.stack([here, points], axis=2).reshape(len(here), -1, 2)
    return tuple(  # type: ignore[return-value]
        _packed(slots, np.stack([kept & polygons.filled(), crossed], axis=2).reshape(len(here), -1))
        for kept in (values >= 0, values <= 0)
    )


def _packed(slots: np.ndarray, used: np.ndarray) -> Polygons:
    """The used slots of each row, in order, moved to the front."""
    counts = used.sum(axis=1)
    order = np.argsort(~used, axis=1, kind="stable")[:, : counts.max(initial=0)]
    return Polygons(np.take_along_axis(slots, order[..., None], axis=1), counts)


def containing(polygons: Polygons, points: np.ndarray) -> np.ndarray:
    """For each point (n, 2) of the square [-1, 1]^2 the polygon it lies in, -1 if in none.

    The square is divided into bins, and a point is compared with the polygons that reach into its bin.
    """
    side = int(np.clip(np.sqrt(len(polygons.counts)), 1, 512))
    padding = ~polygons.filled()[..., None]
    low = np.where(padding, np.inf, polygons.vertices).min(axis=1)
    high = np.where(padding, -np.inf, polygons.vertices).max(axis=1)
    bins = [np.clip(((v + 1) / 2 * side).astype(int), 0, side - 1) for v in (low, high, points)]
    spans = bins[1] - bins[0] + 1
    cell, within = _ranges(spans[:, 0] * spans[:, 1])
    x, y = bins[0][cell, 0] + within // spans[cell, 1], bins[0][cell, 1] + within % spans[cell, 1]
    order = np.argsort(x * side + y, kind="stable")
    key, cell = (x * side + y)[order], cell[order]
    wanted = bins[2][:, 0] * side + bins[2][:, 1]
    first = np.searchsorted(key, wanted)
    which, within = _ranges(np.searchsorted(key, wanted, side="right") - first)
    candidate = cell[first[which] + within]
    edges = polygons.edges()
    places = np.full(len(points), -1)
    step = max(1, 2**22 // polygons.vertices.shape[1])
    for at in range(0, len(which), step):
        w, c = which[at : at + step], candidate[at : at + step]
        offset = points[w][:, None] - polygons.vertices[c]
        left = edges[c][..., 0] * offset[..., 1] - edges[c][..., 1] * offset[..., 0]
        inside = np.all((left >= -_ON_EDGE) | ~polygons.filled()[c], axis=1)
        places[w[inside]] = c[inside]
    return places


def _ranges(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(0, 0), (0, 1), ..., (1, 0), ...: which range and where in it, for ranges of these lengths."""
    which = np.repeat(np.arange(len(lengths)), lengths)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def neighbours(polygons: Polygons) -> np.ndarray:
    """(pairs, 2): polygons that share an edge. Edges of a continuous function's pieces meet corner to corner."""
    from scipy.spatial import cKDTree

    owner, corner = np.nonzero(polygons.filled())
    edge = polygons.edges()[owner, corner]
    middle = polygons.vertices[owner, corner] + edge / 2
    pairs = cKDTree(middle).query_pairs(NEAR, output_type="ndarray")
    opposite = np.abs(edge[pairs[:, 0]] + edge[pairs[:, 1]]).max(axis=1, initial=0.0) <= 4 * NEAR
    return owner[pairs[opposite]]
