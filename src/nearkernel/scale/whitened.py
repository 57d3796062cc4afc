r"""A basis W in which a kernel matrix of centers is the unit matrix, W^T K W = 1: by Cholesky where K allows it.

A Cholesky factor costs a tenth of eigenvectors, but divides by the square roots of all eigenvalues, the smallest too:
where some are so small that they hold rounding alone, eigenvectors say which directions to leave out.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from .._run.blas import one_thread
from .._run.executor import by_columns
from .._run.unlocked import solved

# Sums of squares know half of the digits: below this, a direction of the centers would hold rounding alone.
_LEAST = np.sqrt(np.finfo(float).eps)
_FEW = 64  # centers whose eigenvectors cost nothing
_CLOSE = 0.05  # relative error of eigenvalues that are compared with thresholds


class Basis(NamedTuple):
    """W (m, r): `root` itself, or, if `triangular`, the inverse transpose of `root`, a Cholesky factor of K.

    `known` are the smallest and the second largest eigenvalue of K.
    """

    root: np.ndarray
    triangular: bool
    known: tuple[float, float]

    def within(self, squares: np.ndarray) -> np.ndarray:
        """W^T squares W for a symmetric matrix."""
        with one_thread(len(squares)):
            return by_columns(self.enter, by_columns(self.enter, squares).T)

    def enter(self, right: np.ndarray) -> np.ndarray:
        """W^T right."""
        if not self.triangular:
            return self.root.T @ right
        return solved(self.root, right)

    def leave(self, right: np.ndarray) -> np.ndarray:
        """W right."""
        if not self.triangular:
            return self.root @ right
        return solved(self.root, right, transposed=True)


def basis_of(matrix: np.ndarray) -> Basis:
    """Of a positive semidefinite `matrix` (m, m); r < m where some of its directions hold rounding alone."""
    return _triangular(matrix) or _by_eigenvectors(matrix)


def _triangular(matrix: np.ndarray) -> Basis | None:
    """By Cholesky, if no eigenvalue is so small that it would be left out."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    m = len(matrix)
    if m <= _FEW:
        return None
    with one_thread(m):
        lower, info = scipy.linalg.lapack.dpotrf(matrix.T, lower=1, clean=1)
        if info:
            return None
        inverse = LinearOperator(
            (m, m),
            matvec=lambda v: scipy.linalg.cho_solve((lower, True), v, check_finite=False),
            dtype=np.float64,
        )
        start = np.random.default_rng(0).normal(size=m)
        options = {"tol": _CLOSE, "v0": start, "return_eigenvectors": False}
        try:
            second, largest = np.sort(eigsh(matrix, k=2, which="LA", **options))
            least = 1.0 / eigsh(inverse, k=1, which="LA", **options)[0]
        except ArpackNoConvergence:
            return None
        if not least * (1.0 - _CLOSE) > _LEAST * largest:
            return None
    return Basis(lower, True, (float(least), float(second)))


def _by_eigenvectors(matrix: np.ndarray) -> Basis:
    lam, vectors = eigh(matrix)
    kept = lam > max(lam[-1], 0.0) * _LEAST
    known = float(lam[0]), float(lam[max(len(lam) - 2, 0)])
    return Basis(vectors[:, kept] / np.sqrt(lam[kept]), False, known)


def eigh(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors, in the memory of `matrix`."""
    with one_thread(len(matrix)):
        return scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False)
