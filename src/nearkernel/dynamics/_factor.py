"""Factor once, predict many times: K by Cholesky for t -> infinity, by its eigenvalues for all times."""

import abc

import numpy as np
import scipy.linalg

from .._blas import one_thread
from ._algorithms import SpectralAlgorithm


class AbstractFactor(abc.ABC):
    """What is kept of a symmetric kernel matrix."""

    lam_max: float
    rank: int
    cutoff: float

    @abc.abstractmethod
    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        """g(K) right."""


class Cholesky(AbstractFactor):
    """K + shift = L L^T; answers for that shift alone, at a tenth of the price of eigenvalues."""

    def __init__(self, lower: np.ndarray, shift: float, lam_max: float):
        self.lower, self.shift, self.lam_max = lower, shift, lam_max
        self.rank, self.cutoff = len(lower), 0.0

    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        return self.solve(right)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(K + shift)^-1 right."""
        return scipy.linalg.cho_solve((self.lower, True), right, check_finite=False)

    def whiten(self, right: np.ndarray) -> np.ndarray:
        """L^-1 right: its Gram matrix is right^T (K + shift)^-1 right."""
        return scipy.linalg.solve_triangular(self.lower, right, lower=True, check_finite=False)

    def log_determinant(self) -> float:
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())


class Spectrum(AbstractFactor):
    """K = V diag(lam) V^T, eigenvalues below the cut-off set to zero."""

    def __init__(self, lam: np.ndarray, vectors: np.ndarray):
        self.lam_max = float(max(lam.max(initial=0.0), 0.0))
        self.cutoff = len(vectors) * np.finfo(float).eps * self.lam_max
        kept = lam > self.cutoff
        self.lam, self.vectors, self.rank = lam[kept], vectors[:, kept], int(kept.sum())

    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        """Nothing from the null space: no prediction sees it, since k(x, X) v = 0 for every v in it."""
        return self.vectors @ (algorithm.filter(self.lam)[:, None] * (self.vectors.T @ right))


def largest_eigenvalue(matrix: np.ndarray) -> float:
    """lambda_max to rounding by Lanczos; exact for small matrices."""
    if len(matrix) <= 64:
        return float(np.linalg.eigvalsh(matrix)[-1])
    from scipy.sparse.linalg import eigsh

    start = np.ones(len(matrix))
    return float(eigsh(matrix, k=1, which="LA", tol=1e-13, v0=start, return_eigenvectors=False)[0])


def cholesky(matrix: np.ndarray, shift: float, need_max: bool) -> Cholesky | None:
    """The factor of `matrix` + shift, in the memory of `matrix`; None if that is singular to working accuracy."""
    lam_max = largest_eigenvalue(matrix) if need_max else np.nan
    one_norm = scipy.linalg.lapack.dlange("1", matrix.T) + shift
    matrix[np.diag_indices_from(matrix)] += shift
    with one_thread(len(matrix)):
        # The transpose of a symmetric matrix in C order is itself in Fortran order: LAPACK works in place.
        lower, info = scipy.linalg.lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=1)
        if info:
            return None
        reciprocal, info = scipy.linalg.lapack.dpocon(lower, one_norm, uplo="L")
    if reciprocal < len(matrix) * np.finfo(float).eps:
        return None
    return Cholesky(lower, shift, lam_max)


def spectrum(matrix: np.ndarray) -> Spectrum:
    """All eigenvalues, in the memory of `matrix`."""
    with one_thread(len(matrix)):
        lam, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
    return Spectrum(lam, vectors)
