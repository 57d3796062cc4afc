r"""Nystrom centers: a kernel machine on m chosen points, from one pass over all the others.

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
from .._precision import precision
from ..kernels import AbstractKernel


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
    begin = time.perf_counter()
    # Rounding of K_CC would be divided by its eigenvalues; that of the rows averages out.
    with precision("float64"):
        lam, vectors = _eigh(kernel.entries(centres, None))
    # Sums of squares know half of the digits: below this, a direction of the centres would hold rounding alone.
    kept = lam > lam[-1] * np.sqrt(np.finfo(float).eps)
    if not kept.any():  # the kernel is 0 on all centres
        nothing = np.zeros((len(centres), 0))
        return Centred(
            nothing, np.zeros(0), nothing.T @ np.zeros((len(centres), y.shape[1])), _squares(y), 0.0
        )
    whiten = vectors[:, kept] / np.sqrt(lam[kept])
    gram = np.zeros((len(centres), len(centres)), order="F")
    moment, square = np.zeros((len(centres), y.shape[1])), np.zeros(y.shape[1])
    for at in range(0, len(x), chunk := rows_that_fit(2 * 8 * len(centres), memory // 8)):
        rows = kernel.entries(np.asarray(x[at : at + chunk], dtype=np.float64), centres).astype(
            np.float64, copy=False
        )
        part = np.asarray(y[at : at + chunk], dtype=np.float64)
        gram = scipy.linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=gram, overwrite_c=1)  # the upper half
        moment += rows.T @ part
        square += np.einsum("ij,ij->j", part, part)
    gram += np.triu(gram, 1).T
    lam, turn = _eigh(whiten.T @ gram @ whiten)
    lam = np.maximum(lam, 0.0)
    kept = lam > lam[-1] * len(lam) * np.finfo(float).eps
    back = whiten @ turn[:, kept]
    return Centred(back, lam[kept], back.T @ moment, square, time.perf_counter() - begin)


def _squares(y: np.ndarray) -> np.ndarray:
    return np.square(np.asarray(y, dtype=np.float64)).sum(axis=0)


def _eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with one_thread(len(matrix)):
        return scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False)
