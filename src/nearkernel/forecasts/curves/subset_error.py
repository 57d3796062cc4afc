r"""From one kernel matrix of n points the error of training on any m <= n of them.

Training on m of n points with the ridge s sees the same effective ridge kappa as training on all n with a larger one,

    g = s + (n - m) kappa(g),      kappa(g) = 1 / tr (K + g)^-1,

and leave-one-out with g tells the error there, but for a factor. For a sum of ridges with weights w_j (`Ridges`),

    E(m) = mean_i sum_jk w_j w_k C_jk e_i(g_j) e_i(g_k),   C_jk = (d_jk / n) m / (m - n + d_jk),
    d_jk = 1 / (kappa_j kappa_k tr (K + g_j)^-1 (K + g_k)^-1),

where e_i(g) is the residual of point i, left out, for the ridge g. At m = n this is leave-one-out itself.
"""

import functools

import numpy as np

from ..._run.blas import one_thread
from ...dynamics.algorithms.ridges import Ridges
from ...dynamics.linear.factor import Spectrum
from ...dynamics.linear.leave_one_out import real_times

_NEAR_ZERO = 1e-13  # ridge beside the mean eigenvalue: no ridge, where the matrix is singular
_CHUNK = 2**22


class Pool:
    """n points: the spectrum of their kernel matrix, and targets (n, columns)."""

    def __init__(self, spectrum: Spectrum, y: np.ndarray):
        self.spectrum, self.y, self.n = spectrum, y, len(y)
        self.null = self.n - spectrum.rank
        self.lam = spectrum.lam
        self.inside = spectrum.vectors.T @ y
        self.outside = np.zeros_like(y) if self.null == 0 else y - spectrum.vectors @ self.inside
        self.floor = _NEAR_ZERO * float(self.lam.sum()) / self.n

    @functools.cached_property
    def _squares(self) -> np.ndarray:
        return self.spectrum.vectors**2

    @functools.cached_property
    def _outside_square(self) -> np.ndarray:
        return np.zeros(self.n) if self.null == 0 else 1.0 - self._squares.sum(axis=1)

    def shares(self, g: np.ndarray) -> np.ndarray:
        """g / (lam + g), (rank, ridges): 1 for an infinite ridge, which is no training at all."""
        return 1 / (1 + self.lam[:, None] / g)

    def matched(self, strengths: np.ndarray, m: int) -> np.ndarray:
        """g = s + (n - m) kappa(g) by Newton's method from above: kappa is concave, so that no step overshoots.

        From a small start it would find a wrong root.
        """
        strengths = np.where(strengths == 0, self.floor, strengths)
        if m == self.n or np.isinf(strengths).all():
            return strengths
        g = (self.n * strengths + (self.n - m) * self.lam.sum() / self.n) / m
        for _ in range(500):
            a = self.shares(g)
            first, second = a.sum(axis=0) + self.null, (a**2).sum(axis=0) + self.null
            short = g - strengths - (self.n - m) * g / first
            step = short / (1 - (self.n - m) * second / first**2)
            g = g - step
            if np.all(np.abs(step) <= 1e-14 * np.abs(g)):
                break
        return g

    def left_out(self, g: np.ndarray) -> np.ndarray:
        """e_i(g), (n, columns, ridges)."""
        found = np.empty((*self.y.shape, len(g)), dtype=g.dtype)
        chunk = max(1, _CHUNK // self.y.size)
        with one_thread(self.n):
            for at in range(0, len(g), chunk):
                a = self.shares(g[at : at + chunk])
                flat = (self.inside[:, :, None] * a[:, None, :]).reshape(len(a), -1)
                above = real_times(self.spectrum.vectors, flat).reshape(*self.y.shape, -1)
                above = above + self.outside[:, :, None]
                below = real_times(self._squares, a) + self._outside_square[:, None]
                found[:, :, at : at + chunk] = -above / below[:, None, :]
        return found

    def errors(self, ridges: Ridges, m: int) -> tuple[np.ndarray, float]:
        """The summands of E(m) of each column, (n, columns), and the error on the m points themselves, of all."""
        g = self.matched(ridges.strengths, m)
        a = self.shares(g)
        sums = a.sum(axis=0) + self.null
        left, w, fit = self.left_out(g), ridges.weights, _share_left(ridges.strengths, sums / g, m)
        pairs = [(a, sums, w, left, fit)]
        if np.iscomplexobj(g):  # each strength stands for a conjugate pair
            pairs.append((a.conj(), sums.conj(), w.conj(), left.conj(), fit.conj()))
        total, train = np.zeros(self.y.shape), 0.0
        for a2, sums2, w2, left2, fit2 in pairs:
            d = np.outer(sums, sums2) / (a.T @ a2 + self.null)
            factor = np.outer(w, w2) * (d / self.n) * m / (m - self.n + d)
            per_point = lambda f, other=left2: (
                np.einsum("icj,icj->ic", (left.reshape(-1, len(g)) @ f).reshape(left.shape), other).real
            )
            total += per_point(factor) / len(pairs)
            train += float(per_point(factor * np.outer(fit, fit2)).sum() / self.n) / len(pairs)
        return total, train


def _share_left(strengths: np.ndarray, traces: np.ndarray, m: int) -> np.ndarray:
    """s / (m kappa): what a ridge leaves of the residual of a point that it has seen."""
    return np.where(np.isinf(strengths), 1.0, np.where(np.isinf(strengths), 1.0, strengths) * traces / m)
