r"""A Gaussian matrix between two clouds of which only what was asked is known.

W has entries of variance C_W / fan-in. Asked for W v, it answers from what earlier questions fixed, and draws the rest:
conditioned on W q_k = X_k and W^T p_k = Y_k, a Gaussian matrix is fixed on the span of the q, fixed through
<p, W q> = kappa <W^T p, q> on that of the p, and independent elsewhere. Training adds a matrix of low rank, which is
kept in its action on the q: S_k = X_k + (change of W) q_k. With B = <p, X> = kappa <Y, q> both directions are

    W v   = <v, q> S + (kappa <v, Y> - <v, q> B^T) p,        W^T g = <g, p> Y + (<g, S> - <g, p> B) q / kappa.

Weight decay multiplies all of it: with a share c left of the first W, S_k = c X_k + ..., and Y and B come with c.
"""

import math

import numpy as np

from .cloud import AbstractCloud, OutOfDirections, Stack

_ROUNDING = 1e-6  # of a norm: below, a direction is rounding error


class KnownMatrix:
    """From fields on `left` to fields on `right`.

    **Arguments:** the two clouds; `variance` C_W; `kappa`, the root of the ratio of their widths, left over right;
    `tol`: fields that are known up to this share of their norm are not asked for again. The noise that is left out
    is independent of everything, so that averages change by tol^2.
    """

    def __init__(self, left: AbstractCloud, right: AbstractCloud, variance: float, kappa: float, tol: float):
        self.left, self.right, self.kappa, self.tol = left, right, kappa, max(tol, _ROUNDING)
        self._root = math.sqrt(variance)
        self._q, self._y = (Stack(left.size, left.dtype) for _ in range(2))
        self._p, self._x, self._s = (Stack(right.size, right.dtype) for _ in range(3))
        self._b = np.zeros((0, 0))  # (p, q)
        self._kept = 1.0  # what decay has left of the matrix at initialization

    @property
    def rank(self) -> tuple[int, int]:
        """Directions asked (forward, backward)."""
        return len(self._q.array), len(self._p.array)

    def forward(self, v: np.ndarray, learn: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """(<v, q>, W v) of fields v (k, M) on the left."""
        along = self.left.inner(v, self._q.array)
        if learn:
            along = self._along(along, v, *_unknown(self.left, v, along, self.tol), forward=True)
        answered = self._kept * (self.kappa * self.left.inner(v, self._y.array) - along @ self._b.T)
        return along, _combined(along, self._s.array) + _combined(answered, self._p.array)

    def backward(self, g: np.ndarray, learn: bool = True) -> np.ndarray:
        """W^T g of fields g (k, M) on the right."""
        along = self.right.inner(g, self._p.array)
        if learn:
            along = self._along(along, g, *_unknown(self.right, g, along, self.tol), forward=False)
        along = self._kept * along
        answered = (self.right.inner(g, self._s.array) - along @ self._b) / self.kappa
        return _combined(along, self._y.array) + _combined(answered, self._q.array)

    def begin(self, fields: np.ndarray, directions: np.ndarray, forward: bool) -> None:
        """Asks for the first combinations, `directions` (k, rows), of `fields`."""
        along = np.zeros((len(fields), 0))
        self._along(along, fields, directions, fields, forward)

    def change(self, along: np.ndarray, g: np.ndarray) -> np.ndarray:
        """sum_i g_i v_i^T in its action on the q, (q, M), for v with <v, q> = `along`."""
        return _combined(along.T, g)

    def shift(self, change: np.ndarray, amount: float) -> None:
        """Adds `amount` times what `change` gave, then or earlier: directions learned since are 0 in it."""
        moved = self._s.array[: len(change)]
        moved += np.asarray(amount, moved.dtype) * change

    def decay(self, share: float) -> None:
        """Takes away this share of the matrix."""
        kept = self._s.array
        kept *= np.asarray(1.0 - share, kept.dtype)
        self._kept *= 1.0 - share

    def _along(self, along, fields, directions, rest, forward: bool) -> np.ndarray:
        """Learns the `directions` of `rest`; the coefficients of `fields` along all that is known then."""
        if not len(directions):
            return along
        here, there = (self.left, self.right) if forward else (self.right, self.left)
        known, images = (self._q, self._y) if forward else (self._p, self._x)
        if len(known.array) + len(directions) > here.most:
            raise OutOfDirections
        new = _orthonormal(here, here.without(_combined(directions, rest), known.array))
        response = here.inner(new, images.array) * (self.kappa if forward else 1.0)
        known.append(new)
        if forward:
            self._b = np.concatenate([self._b, response.T], axis=1)
            fresh = there.fresh(len(new), False, self._p.array)
            image = _combined(response, self._p.array) + fresh.dtype.type(self._root) * fresh
            self._x.append(image)
            self._s.append(image.dtype.type(self._kept) * image)
        else:
            self._b = np.concatenate([self._b, response])
            fresh = there.fresh(len(new), True, self._q.array)
            self._y.append(
                _combined(response / self.kappa, self._q.array) + fresh.dtype.type(self._root) * fresh
            )
        return np.concatenate([along, here.inner(fields, new)], axis=1)


def _combined(coefficients: np.ndarray, fields: np.ndarray) -> np.ndarray:
    return coefficients.astype(fields.dtype, copy=False) @ fields


def _unknown(
    cloud: AbstractCloud, fields: np.ndarray, along: np.ndarray, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """Combinations (k, rows) of the `fields` in which more than `tol` of their norms is not yet known."""
    gram = cloud.inner(fields, fields)
    norms = np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
    gram = (gram - along @ along.T) / np.outer(norms, norms)
    lam, vectors = np.linalg.eigh(gram)
    found = lam[::-1] > tol**2
    return vectors[:, ::-1].T[found] / norms, fields


def _orthonormal(cloud: AbstractCloud, fields: np.ndarray) -> np.ndarray:
    """The same span, one field after the other."""
    for _ in range(2):
        norms = np.sqrt(np.diagonal(cloud.inner(fields, fields)))
        fields = fields / norms[:, None].astype(fields.dtype)
        lower = np.linalg.cholesky(cloud.inner(fields, fields))
        fields = _combined(np.linalg.inv(lower), fields)
    return fields
