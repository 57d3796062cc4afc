r"""Averages over Gaussians as matrices on values at nodes, whatever the function."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .panels import NODES, WEIGHTS

_REACH = 14.0  # deviations that hold all of a Gaussian, times what a function grows
_NEAR = 9.0  # the same, of the Gaussian inside
_CELL = 3.0  # deviations of a Gaussian that 16 nodes resolve
_PIVOTS = 1.0 / np.prod(NODES[:, None] - NODES[None, :] + np.eye(len(NODES)), axis=1)
_EXACT = np.polynomial.hermite_e.hermegauss(8)  # for polynomials of degree 15


def density(z: np.ndarray) -> np.ndarray:
    """Of the standard normal law."""
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


class Grid(NamedTuple):
    """Panels of z > 0, `edges` (p + 1,); their `nodes` (16 p,) and `weights`, Gaussian and counted for both signs."""

    edges: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, first: float, ratio: float) -> "Grid":
        """A panel that ends at `first`, and others that grow by `ratio`."""
        count = int(np.ceil(np.log(_REACH / first) / np.log(ratio)))
        edges = np.concatenate([[0.0], first * ratio ** np.arange(count + 1)])
        half = 0.5 * np.diff(edges)[:, None]
        z = edges[:-1, None] + half + half * NODES
        return cls(edges, z.ravel(), (2.0 * half * WEIGHTS * density(z)).ravel())

    def averaging(self, angle: float) -> tuple[np.ndarray, np.ndarray]:
        """Averages over N(c z, 1 - c^2) at c = cos(angle), as matrices: of even and of odd functions."""
        n, m = len(self.nodes), len(NODES)
        c, width = np.cos(angle), np.sin(angle)
        fine = m * int((np.diff(self.edges) <= _CELL * width).sum())  # nodes that resolve the Gaussian
        product = self._wide(c, width, fine // m)
        weights = np.repeat(0.5 * np.diff(self.edges), m)[:fine] * np.tile(WEIGHTS, fine // m) / width
        center = c * self.nodes[:, None]
        for sign, matrix in zip((1.0, -1.0), product, strict=True):
            matrix[:, :fine] += weights * density((sign * self.nodes[:fine] - center) / width)
        return (product[0] + product[1]).reshape(n, n), (product[0] - product[1]).reshape(n, n)

    def _wide(self, c: float, width: float, fine: int) -> np.ndarray:
        """The same over panels from `fine` on, where functions are polynomials: to z > 0 and to z < 0."""
        n = len(self.nodes)
        matrices = np.zeros((2, n, n))
        if fine == len(self.edges) - 1:
            return matrices
        center = c * self.nodes
        panel = np.searchsorted(self.edges, center, side="right") - 1
        inside = np.minimum(center - self.edges[panel], self.edges[panel + 1] - center) > _NEAR * width
        inside &= panel >= fine
        row = np.nonzero(inside)[0]
        nodes, weights = _EXACT
        self._add(matrices, row, center[row, None] + width * nodes, weights / np.sqrt(2 * np.pi), panel[row])
        self._add(matrices, *self._cells(center, width, fine, np.nonzero(~inside)[0]))
        return matrices

    def _cells(self, center: np.ndarray, width: float, fine: int, row: np.ndarray) -> tuple:
        """Cells within a panel and within a few deviations, for each center of `row`: what `_add` wants."""
        ends = self.edges[fine:]
        seen = (np.concatenate([-ends[::-1], ends]) - center[row, None]) / width
        even = np.arange(-_NEAR, _NEAR + 1.0, _CELL)
        edges = np.concatenate([np.broadcast_to(even, (len(row), len(even))), seen], axis=1)
        edges = np.sort(np.clip(edges, -_NEAR, _NEAR), axis=1)
        half = 0.5 * np.diff(edges, axis=1)
        at, cell = np.nonzero(half > 0)
        half = half[at, cell][:, None]
        e = edges[at, cell][:, None] + half + half * NODES
        y = center[row[at], None] + width * e
        panel = np.searchsorted(self.edges, np.abs(y.mean(axis=1)), side="right") - 1
        kept = (panel >= fine) & (panel < len(self.edges) - 1)
        return row[at[kept]], y[kept], (half * WEIGHTS * density(e))[kept], panel[kept]

    def _add(self, found: np.ndarray, row: np.ndarray, y: np.ndarray, weights, panel: np.ndarray) -> None:
        """Adds integrals over points `y` (k, j) of a panel each, of the polynomials through its nodes."""
        n, m = len(self.nodes), len(NODES)
        by_node = np.einsum("kj,kji->ki", np.broadcast_to(weights, y.shape), self._basis(np.abs(y), panel))
        to = (row * n + panel * m)[:, None] + np.arange(m)
        for of, part in zip((y[:, 0] > 0, y[:, 0] <= 0), found, strict=True):
            part += np.bincount(to[of].ravel(), by_node[of].ravel(), minlength=n * n).reshape(n, n)

    def projected(self, function: Callable[[np.ndarray], np.ndarray], ends: np.ndarray) -> np.ndarray:
        """Weights w (..., n) with sum_i w_i g(z_i) = 2 int_0^inf g f phi dz, for f that is smooth but for `ends`."""
        edges = np.unique(np.concatenate([self.edges, ends[ends < self.edges[-1]]]))
        half = 0.5 * np.diff(edges)[:, None]
        y = edges[:-1, None] + half + half * NODES
        panel = np.searchsorted(self.edges, y[:, 0], side="right") - 1
        basis = self._basis(y, panel) * (2.0 * half * WEIGHTS * density(y))[..., None]
        by_node = np.einsum("...kj,kji->...ki", function(y), basis)
        sums = np.add.reduceat(by_node, np.searchsorted(panel, np.arange(len(self.edges) - 1)), axis=-2)
        return sums.reshape(*sums.shape[:-2], -1)

    def _basis(self, y: np.ndarray, panel: np.ndarray) -> np.ndarray:
        """The polynomials of panels (k,) at `y` (k, j): (k, j, 16)."""
        left, right = self.edges[panel][:, None], self.edges[panel + 1][:, None]
        return _lagrange((2.0 * y - left - right) / (right - left))


def _lagrange(at: np.ndarray) -> np.ndarray:
    """The 16 polynomials of a panel at `at` (...) in [-1, 1]: (..., 16)."""
    apart = at[..., None] - NODES
    terms = _PIVOTS / np.where(apart == 0.0, 1e-300, apart)
    return terms / terms.sum(axis=-1, keepdims=True)
