r"""Averages of activations with a continuous slope whose higher derivatives jump, e.g. elu, by quadrature in pieces.

The inputs at hand are z = L e with independent normal e and L a pivoted Cholesky factor. Dimension by dimension, panels
of Gauss-Legendre nodes end where an input meets a break; the last of four is averaged over its own noise first, into a
spline. s, s' and s'' are bounded and are averaged as they are. The third derivative, which holds delta functions, goes
by parts,

    K_ii <s'''_i X> = <z_i s''_i X> - sum_{k != i} K_ik <s''_i d_k X>,

and derivatives of pairs beyond that are moved to the Gaussian: with y = K^{-1} z, <d_p f> = <f y_p> and so on.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy  # whose part `interpolate` comes when it is used

from ...activations.averages.on_numpy import on_numpy, slope_of
from ...activations.base import AbstractActivation
from .base import Averages, Wanted, fours_of
from .quadrature import pivoted_root

_FOURS, _PAIRS = (6.0, 8), (8.0, 32)  # reach, and nodes of a panel
_FEATURE = 1.5  # beside a break, where panels end: functions have changed there
_KNOTS = 0.08  # spacing of a spline; near a break, an eighth of what rounds it off
_CLOSE = 0.5  # a later dimension that moves an input less than this rounds off its break in an earlier one
_NEAREST = 1e-6  # of 1 - |correlation|, between which delta functions of two inputs meet
_GROWTH = 10.0  # of the second derivative towards a break, above which it has no limit there
_ALONE = 1e-12  # variances below are those of an input that is 0


class _Grid(NamedTuple):
    """`e`, one array a dimension, each of one axis more than the one before; `weights`, likewise."""

    e: list[np.ndarray]
    weights: list[np.ndarray]


class Pieces:
    """One activation, with its breaks."""

    def __init__(self, activation: AbstractActivation):
        self.breaks = np.array(activation.breaks)
        slope = slope_of(activation)
        self._functions = [on_numpy(each) for each in (activation, slope, slope_of(slope))]
        self._require_bounded()

    def averages(self, kernel: np.ndarray, derivatives: bool, wanted: Wanted | None = None) -> Averages:
        """All averages under N(0, kernel); of four inputs those that are `wanted`.

        Without `derivatives`, those of pairs beyond the second are left at 0.
        """
        n = len(kernel)
        pairs = np.zeros((6, 6, n, n))
        for a in range(n):
            pairs[:, :, a, a] = self._one_input(kernel[a, a])
            for b in range(a):
                found = self._pair(kernel[np.ix_((a, b), (a, b))], derivatives)
                pairs[:, :, a, b], pairs[:, :, b, a] = found, found.T
        return Averages(pairs, fours_of(n, lambda four: self.table(kernel, four), wanted))

    def table(self, kernel: np.ndarray, four: tuple[int, ...]) -> np.ndarray:
        """The averages at the inputs `four` under N(0, kernel), (4, 4, 4, 4)."""
        part = kernel[np.ix_(four, four)]
        order, root = pivoted_root(part)
        own = root[3, 3]
        last = self._values if own == 0 else self._averaged(own, _FOURS[0] * np.sqrt(part.max()))
        grid = self._grid(root[:, :3], *_FOURS)
        found = self._sums(root[:, :3], grid, last).transpose(np.argsort(order))
        return _with_third(found, part)

    def _require_bounded(self) -> None:
        for at in self.breaks:
            near, far = (
                np.abs(self._functions[2](at + np.array([-1.0, 1.0]) * beside)).max()
                for beside in (1e-7, 1e-3)
            )
            if not near <= _GROWTH * max(far, 1e-3):
                raise ValueError(
                    f"`order=1` needs an activation whose second derivative is bounded: it is not at {at:g}."
                )

    def _values(self, z: np.ndarray) -> np.ndarray:
        """s, s', s'' and z s'' at z: (4, *shape)."""
        s = [function(z) for function in self._functions]
        return np.stack([*s, z * s[2]])

    def _grid(self, root: np.ndarray, reach: float, count: int) -> _Grid:
        """Nodes of all dimensions in which `root` has columns."""
        rank = max(1, int((np.abs(root).max(axis=0) > 0).sum()))
        found = _Grid([], [])
        base = np.zeros((len(root), 1))
        for k in range(rank):
            edges = self._edges(root, base, k, reach)
            e, weights = _normal_nodes(np.unique(edges) if k == 0 else edges, count)
            found.e.append(e)
            found.weights.append(weights)
            base = base.reshape(len(root), *e.shape[:-1], 1) + root[:, k].reshape(-1, *[1] * e.ndim) * e
        return found

    def _edges(self, root: np.ndarray, base: np.ndarray, k: int, reach: float) -> np.ndarray:
        """(*outer, edges): where inputs meet their breaks in dimension k, if later ones do not blur that much."""
        places = [np.full(base.shape[1:], end)[..., None] for end in (-reach, 0.0, reach)]
        later = np.sqrt(np.sum(root[:, k + 1 :] ** 2, axis=1))
        for j in np.flatnonzero(root[:, k]):
            blur = later[j] / abs(root[j, k])
            if blur < _CLOSE:
                at = (self.breaks - base[j][..., None]) / root[j, k]
                around = max(4 * blur, _FEATURE / abs(root[j, k]))
                places += [at - around, at, at + around]
        return np.sort(np.clip(np.concatenate(places, axis=-1), -reach, reach), axis=-1)

    def _averaged(self, width: float, reach: float) -> Callable[[np.ndarray], np.ndarray]:
        """`_values` averaged over noise of a `width`, between -`reach` and `reach`."""
        near = (self.breaks[:, None] + width * np.linspace(-6.0, 6.0, 97)).ravel()
        even = np.linspace(-reach, reach, 2 + int(2 * reach / _KNOTS))
        knots = np.unique(np.concatenate([near[np.abs(near) < reach], even]))
        knots = knots[np.append(True, np.diff(knots) > 1e-3 * width)]
        edges = np.clip((self.breaks - knots[:, None]) / width, -8.0, 8.0)
        ends = np.broadcast_to([-8.0, -3.0, 0.0, 3.0, 8.0], (len(knots), 5))
        e, weights = _normal_nodes(np.sort(np.concatenate([ends, edges], axis=1)), 10)
        found = np.sum(weights * self._values(knots[:, None] + width * e), axis=-1)
        spline = scipy.interpolate.CubicSpline(knots, found, axis=1)
        return lambda z: spline(np.clip(z, -reach, reach))

    def _sums(self, root: np.ndarray, grid: _Grid, of_last: Callable) -> np.ndarray:
        """(4, 4, 4, 4), inputs in the order of `root`: each is fixed by the last dimension that moves it.

        `of_last` stands for `_values` of the last input.
        """
        last = [int(np.flatnonzero(row).max(initial=0)) for row in root]
        axes: list[int] = []
        total = np.ones(1)
        for k in range(len(grid.e) - 1, -1, -1):  # from the innermost outward
            shape = grid.e[k].shape
            part = grid.weights[k] * (total.reshape(-1, *shape) if axes else total[:, None])
            for j in (j for j, dimension in enumerate(last) if dimension == k):
                z = np.zeros(shape)
                for d in range(k + 1):
                    z = z + root[j, d] * grid.e[d].reshape(*grid.e[d].shape, *[1] * (k - d))
                values = of_last(z) if j == 3 else self._values(z)
                part = (values[:, None] * part).reshape(-1, *shape)
                axes.insert(0, j)
            total = part.sum(axis=-1)
        return total.reshape((4,) * len(root)).transpose(np.argsort(axes))

    def _one_input(self, q: float) -> np.ndarray:
        """(6, 6); of the fourth derivatives of s'^2 only the sum is finite: it is put into <s^(5) s'>."""
        root = np.array([[np.sqrt(max(q, 0.0))]])
        grid = self._grid(root, *_PAIRS)
        z = root[0, 0] * grid.e[0]
        s, weights = self._values(z)[:3], grid.weights[0]
        e = np.zeros((6, 6))
        e[:3, :3] = (s * weights) @ s.T
        if q > _ALONE:
            third = (z**3 - 3 * q * z) / q**3
            e[3, 1] = weights @ (s[1] * s[2] * z) / q - e[2, 2]
            e[4, 0] = weights @ (s[0] * s[1] * third) - 4 * e[3, 1] - 3 * e[2, 2]
            e[5, 1] = weights @ (s[1] * s[2] * third)
        return np.tril(e) + np.tril(e, -1).T

    def _pair(self, kernel: np.ndarray, derivatives: bool) -> np.ndarray:
        """(6, 6): E[s^(i)_0 s^(j)_1]."""
        order, root = pivoted_root(kernel)
        grid = self._grid(root, *_PAIRS)
        e1 = grid.e[0] if len(grid.e) == 1 else np.broadcast_to(grid.e[0][:, None], grid.e[1].shape)
        weights = grid.weights[0] if len(grid.e) == 1 else grid.weights[0][:, None] * grid.weights[1]
        e = np.stack([e1.ravel(), np.zeros(e1.size) if len(grid.e) == 1 else grid.e[1].ravel()])
        weights, z = weights.ravel(), root @ e
        s = np.moveaxis(self._values(z)[:3], 1, 0)  # (input, derivative, node)
        found = np.zeros((6, 6))
        found[:3, :3] = (s[0] * weights) @ s[1].T
        alone = min(np.diagonal(kernel)) <= _ALONE * max(np.diagonal(kernel))
        if derivatives and not alone:
            _require_apart(kernel)
            inverse = np.linalg.inv(root)
            y, precision = inverse.T @ e, inverse.T @ inverse
            hermite = lambda *by: _hermite(y, precision, by)
            mean = lambda i, j, by: float(weights @ (s[0, i] * s[1, j] * by))
            found[3, 1], found[1, 3] = mean(2, 1, y[0]), mean(1, 2, y[1])
            found[4, 0], found[0, 4] = mean(2, 0, hermite(0, 0)), mean(0, 2, hermite(1, 1))
            found[4, 2], found[2, 4] = mean(2, 2, hermite(0, 0)), mean(2, 2, hermite(1, 1))
            found[3, 3] = mean(2, 2, hermite(0, 1))
            found[5, 1], found[1, 5] = mean(2, 1, hermite(0, 0, 0)), mean(1, 2, hermite(1, 1, 1))
        return found if order[0] == 0 else found.T


def _normal_nodes(edges: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and Gaussian weights on panels between `edges` (..., p): both (..., (p - 1) count)."""
    nodes, rule = np.polynomial.legendre.leggauss(count)
    half = 0.5 * np.diff(edges)[..., None]
    e = (edges[..., :-1, None] + half) + half * nodes
    weights = half * rule * np.exp(-0.5 * e * e) / np.sqrt(2 * np.pi)
    shape = (*edges.shape[:-1], -1)
    return e.reshape(shape), weights.reshape(shape)


def _with_third(table: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """`table`, whose order 3 stands for z s'', with averages of one third and three first derivatives."""
    found = table.copy()
    for i in range(4):
        orders = [1] * 4
        orders[i] = 3
        if kernel[i, i] <= _ALONE * np.diagonal(kernel).max():
            found[tuple(orders)] = 0.0  # the input is 0, and so is all that this average is multiplied by
            continue
        total = table[tuple(orders)]
        for k in range(4):
            if k != i:
                total = total - kernel[i, k] * table[tuple(2 if j in (i, k) else 1 for j in range(4))]
        found[tuple(orders)] = total / kernel[i, i]
    return found


def _hermite(y: np.ndarray, precision: np.ndarray, by: tuple[int, ...]) -> np.ndarray:
    """The polynomial that stands for derivatives `by` two or three inputs under an average."""
    found = np.prod(y[list(by)], axis=0)
    for i, j in itertools.combinations(range(len(by)), 2):
        rest = [by[k] for k in range(len(by)) if k not in (i, j)]
        found = found - precision[by[i], by[j]] * np.prod(y[rest], axis=0)
    return found


def _require_apart(kernel: np.ndarray) -> None:
    correlation = kernel[0, 1] / np.sqrt(kernel[0, 0] * kernel[1, 1])
    if 1.0 - abs(correlation) < _NEAREST:
        raise ValueError(
            f"`x` contains two inputs whose correlation in some layer is within {_NEAREST:g} of 1 or -1: `order=1` of "
            "an activation whose derivatives jump is inaccurate there: leave one of them out."
        )
