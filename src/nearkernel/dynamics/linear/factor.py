"""Factor once, predict many times.

K by Cholesky for t -> infinity, in tridiagonal form for its rational functions, by its eigenvalues for all times.
"""

import abc
import functools
import math
from typing import Self

import numpy as np
import scipy.linalg

from ..._base.status import Status, StatusKind
from ..._run.blas import one_thread
from ..._run.executor import by_columns
from ..._run.unlocked import solved
from ..algorithms.spectral import SpectralAlgorithm


class AbstractFactor(abc.ABC):
    """What is kept of a symmetric kernel matrix."""

    lam_max: float
    rank: int
    cutoff: float

    @abc.abstractmethod
    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        """g(K) right."""

    def solved(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> tuple[Self, np.ndarray]:
        """This factor, with what it has to say of how it found them, and the coefficients g(K) right."""
        return self, self.apply(algorithm, right)

    def judged(self, status: Status) -> Status:
        """How training ends, with what this factor has to say of its matrix."""
        return status


class Cholesky(AbstractFactor):
    """K + shift = L L^T; answers for that shift alone, at a tenth of the price of eigenvalues."""

    def __init__(self, lower: np.ndarray, shift: float, lam_max: float):
        self.lower = lower
        self.shift = shift
        self.lam_max = lam_max
        self.rank, self.cutoff = len(lower), 0.0

    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        return self.solve(right)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(K + shift)^-1 right."""
        if right.ndim == 1:
            return self._solve(right)
        return by_columns(self._solve, right)

    def _solve(self, right: np.ndarray) -> np.ndarray:
        return solved(self.lower, solved(self.lower, right), transposed=True)

    def whiten(self, right: np.ndarray) -> np.ndarray:
        """L^-1 right: its Gram matrix is right^T (K + shift)^-1 right."""
        return by_columns(functools.partial(solved, self.lower), right)

    def log_determinant(self) -> float:
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())

    def log_evidence(self, y: np.ndarray, coefficients: np.ndarray) -> float:
        """The log density of targets `y` (n, out) with this covariance; `coefficients`, its inverse times `y`."""
        normal = y.shape[1] * (self.log_determinant() + len(y) * math.log(2 * math.pi))
        return -0.5 * (float((y * coefficients).sum()) + normal)


class RationalFactor(AbstractFactor):
    """One in whose basis K is so sparse that rational functions of it cost O(N) a vector."""

    lam_min: float

    @abc.abstractmethod
    def enter(self, right: np.ndarray) -> np.ndarray:
        """Columns in this basis."""

    @abc.abstractmethod
    def leave(self, right: np.ndarray) -> np.ndarray:
        """Columns back from it."""

    @abc.abstractmethod
    def times(self, right: np.ndarray) -> np.ndarray:
        """K right, both in this basis."""

    @abc.abstractmethod
    def divided(self, right: np.ndarray, constant: float, slope: float) -> np.ndarray:
        """(constant + slope K)^-1 right, both in this basis."""

    def solve(self, right: np.ndarray) -> np.ndarray:
        """K^-1 right."""
        return self.leave(self.divided(self.enter(right), 0.0, 1.0))


class Tridiagonal(RationalFactor):
    """K = Q T Q^T with T tridiagonal: a quarter of the price of eigenvectors, and all that rational functions need.

    Q stays a product of reflections, stored in the memory of K.
    """

    def __init__(self, reflections: np.ndarray, tau: np.ndarray, main: np.ndarray, off: np.ndarray):
        self.reflections, self.tau = reflections, tau
        self.main, self.off = main, off
        ends = [
            scipy.linalg.eigvalsh_tridiagonal(main, off, select="i", select_range=(i, i), check_finite=False)[
                0
            ]
            for i in (0, len(main) - 1)
        ]
        self.lam_min, self.lam_max = map(float, ends)
        self.rank, self.cutoff = len(main), 0.0

    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        return self.solve(right)

    def _rotate(self, right: np.ndarray, side: str) -> np.ndarray:
        turned = np.array(right if right.ndim == 2 else right[:, None], dtype=np.float64, order="F")
        if len(self.main) > 1:  # the first coordinate is left alone by every reflection
            block, rest = self.reflections[1:, :-1], np.asfortranarray(turned[1:])
            work = 64 * max(turned.shape[1], 1)
            turned[1:] = scipy.linalg.lapack.dormqr("L", side, block, self.tau, rest, work, overwrite_c=1)[0]
        return turned.reshape(right.shape)

    def enter(self, right: np.ndarray) -> np.ndarray:
        return self._rotate(right, "T")

    def leave(self, right: np.ndarray) -> np.ndarray:
        return self._rotate(right, "N")

    def times(self, right: np.ndarray) -> np.ndarray:
        main, off = (self.main, self.off) if right.ndim == 1 else (self.main[:, None], self.off[:, None])
        product = main * right
        product[1:] += off * right[:-1]
        product[:-1] += off * right[1:]
        return product

    def divided(self, right: np.ndarray, constant: float, slope: float) -> np.ndarray:
        main, off = constant + slope * self.main, slope * self.off
        if len(main) == 1:
            return right / main[0]
        return scipy.linalg.lapack.dptsv(main, off, right)[2]


class Spectrum(RationalFactor):
    """K = V diag(lam) V^T, eigenvalues below the cut-off set to zero."""

    def __init__(self, lam: np.ndarray, vectors: np.ndarray):
        self.lam_max = float(max(lam.max(initial=0.0), 0.0))
        self.cutoff = len(vectors) * np.finfo(float).eps * self.lam_max
        kept = lam > self.cutoff
        self.lam, self.vectors = lam[kept], vectors[:, kept]
        self.rank = int(kept.sum())
        self.lam_min = float(self.lam.min(initial=np.inf))

    def enter(self, right: np.ndarray) -> np.ndarray:
        return self.vectors.T @ right

    def leave(self, right: np.ndarray) -> np.ndarray:
        return self.vectors @ right

    def times(self, right: np.ndarray) -> np.ndarray:
        return (self.lam if right.ndim == 1 else self.lam[:, None]) * right

    def divided(self, right: np.ndarray, constant: float, slope: float) -> np.ndarray:
        below = constant + slope * self.lam
        return right / (below if right.ndim == 1 else below[:, None])

    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        """Nothing from the null space: no prediction sees it, since k(x, X) v = 0 for every v in it."""
        return self.vectors @ (algorithm.filter(self.lam)[:, None] * (self.vectors.T @ right))

    def judged(self, status: Status) -> Status:
        if not (status.ok and self.rank < len(self.vectors)):
            return status
        kind = StatusKind.singular if status.kind is StatusKind.converged else status.kind
        return Status(
            kind,
            f"{status}; kernel of rank {self.rank} < {len(self.vectors)}: pseudo-inverse, "
            f"eigenvalues below {self.cutoff:.3g} count as 0",
        )


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


def tridiagonal(matrix: np.ndarray) -> Tridiagonal | None:
    """The reduction of `matrix`, in its memory; None if it is singular to working accuracy."""
    with one_thread(len(matrix)):
        work = int(scipy.linalg.lapack.dsytrd_lwork(len(matrix), lower=1)[0])
        # The transpose of a symmetric matrix in C order is itself in Fortran order: LAPACK works in place.
        parts = scipy.linalg.lapack.dsytrd(matrix.T, lower=1, lwork=work, overwrite_a=1)
        reflections, main, off, tau, _ = parts
        factor = Tridiagonal(reflections, tau, main, off)
    singular = factor.lam_min <= len(matrix) * np.finfo(float).eps * factor.lam_max
    return None if singular else factor
