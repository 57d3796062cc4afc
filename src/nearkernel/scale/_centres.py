r"""Nystrom centres: a kernel machine on m chosen points, from one pass over all the others.

f(x) = k(x, C) b. With K_CC = W^-T W^-1 the rows phi(x) = k(x, C) W are features of the kernel
k(x, C) K_CC^-1 k(C, x'), so whatever a filter g does to a kernel it does to G = sum phi^T phi: b = W g(G) sum phi^T y.
G and the sum are additive: data of any length are read once, in chunks.
"""

import time
from typing import NamedTuple

import numpy as np
import scipy.linalg

from .._blas import one_thread
from .._memory import rows_that_fit
from .._precision import precision, working_dtype
from ..kernels import AbstractKernel

_ROWS = 4096  # whose products are summed in float32


class Centred(NamedTuple):
    """Eigenvalues `lam` and vectors of G in the basis `back`, with `moment` = vectors^T sum phi^T y, and |y|^2."""

    back: np.ndarray
    lam: np.ndarray
    moment: np.ndarray
    square: np.ndarray
    seconds: float

    def coefficients(self, gain: np.ndarray) -> np.ndarray:
        """b for the filter values `gain` = g(lam)."""
        return self.back @ (gain[:, None] * self.moment)

    def residual(self, gain: np.ndarray) -> float:
        """|y - f(X)| / |y|, the worst column, without a second pass."""
        fitted = gain[:, None] * self.moment
        left = self.square + np.einsum("ij,ij->j", fitted, self.lam[:, None] * fitted - 2.0 * self.moment)
        return float(np.sqrt(np.maximum(left / np.where(self.square > 0, self.square, 1.0), 0.0)).max())


def centred(
    kernel: AbstractKernel, x: np.ndarray, y: np.ndarray, centres: np.ndarray, memory: int
) -> Centred:
    """One pass over `x` (n, d) and `y` (n, columns), which may be memory maps."""
    begin, single = time.perf_counter(), working_dtype() == np.float32
    with precision("float64"):
        lam, vectors = _eigh(kernel.entries(centres, None))
    kept = lam > lam[-1] * _least(len(centres), single)
    if not kept.any():  # the kernel is 0 on all centres
        nothing = np.zeros((len(centres), 0))
        return Centred(
            nothing, np.zeros(0), nothing.T @ np.zeros((len(centres), y.shape[1])), _squares(y), 0.0
        )
    whiten = vectors[:, kept] / np.sqrt(lam[kept])
    sums = _SingleSums(len(centres)) if single else _Sums(len(centres))
    moment, square = np.zeros((len(centres), y.shape[1])), np.zeros(y.shape[1])
    for at in range(0, len(x), chunk := rows_that_fit(2 * 8 * len(centres), memory // 8)):
        rows = kernel.entries(np.asarray(x[at : at + chunk], dtype=np.float64), centres)
        part = np.asarray(y[at : at + chunk], dtype=np.float64)
        sums.add(rows)
        moment += rows.T @ part
        square += np.einsum("ij,ij->j", part, part)
    lam, turn = _eigh(whiten.T @ sums.whole() @ whiten)
    lam = np.maximum(lam, 0.0)
    kept = lam > lam[-1] * len(lam) * np.finfo(float).eps
    back = whiten @ turn[:, kept]
    return Centred(back, lam[kept], back.T @ moment, square, time.perf_counter() - begin)


def _least(m: int, single: bool) -> float:
    """The smallest eigenvalue of the centres that is kept, relative to the largest.

    Sums of squares know half of the digits: below, a direction of the centres would hold rounding alone. In float32
    the errors of entries are independent, so that their matrix is sqrt(m) times smaller than one of equal errors.
    """
    return float(
        np.sqrt(2 * np.finfo(np.float32).eps / np.sqrt(m)) if single else np.sqrt(np.finfo(float).eps)
    )


class _Sums:
    """sum of r r^T over rows r, the upper half."""

    def __init__(self, m: int):
        self._upper = np.zeros((m, m), order="F")

    def add(self, rows: np.ndarray) -> None:
        self._upper = scipy.linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=self._upper, overwrite_c=1)

    def whole(self) -> np.ndarray:
        return self._upper + np.triu(self._upper, 1).T


class _SingleSums(_Sums):
    """The same of float32 rows, at twice the speed: products of a few thousand rows in float32, their sum in float64.

    Rows are taken relative to the mean `c` of the first ones, so that what varies keeps its digits; with s = sum (r
    - c), sum r r^T = sum (r - c)(r - c)^T + s c^T + c s^T + n c c^T.
    """

    def __init__(self, m: int):
        super().__init__(m)
        self._sum, self._count, self._mean = np.zeros(m), 0, np.zeros(0, np.float32)

    def add(self, rows: np.ndarray) -> None:
        if not self._count:
            self._mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        self._count += len(rows)
        for at in range(0, len(rows), _ROWS):
            part = rows[at : at + _ROWS] - self._mean
            self._sum += part.sum(axis=0, dtype=np.float64)
            self._upper += scipy.linalg.blas.ssyrk(1.0, part.T)

    def whole(self) -> np.ndarray:
        mean = self._mean.astype(np.float64)
        cross = np.outer(self._sum, mean)  # of sums of r - c
        return super().whole() + cross + cross.T + self._count * np.outer(mean, mean)


def _squares(y: np.ndarray) -> np.ndarray:
    return np.square(np.asarray(y, dtype=np.float64)).sum(axis=0)


def _eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with one_thread(len(matrix)):
        return scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False)
