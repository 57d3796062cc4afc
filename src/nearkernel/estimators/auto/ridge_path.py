r"""Ridge regression and what it would say of each row without it, in closed form: $e_i = [C^{-1} y]_i / [C^{-1}]_{ii}$.

Three ways, by the number of rows: all ridges from one eigendecomposition; one ridge from one Cholesky factor; all
ridges on few centers, from the eigendecomposition of their features.
"""

import dataclasses

import numpy as np
import scipy.linalg

from ..._run.blas import one_thread

RIDGES = np.logspace(-6, 2, 33)  # in units of the mean of the kernel's diagonal
_TRIED_ROWS = 6000  # of many, on which ridges are compared
_CHUNK = 4096  # rows whose products are summed in the precision of the features
_JITTER = 1e-8  # of the mean of the centers' diagonal


@dataclasses.dataclass(frozen=True)
class Fit:
    """Coefficients (rows or centers, out), left-out predictions (n, out) and the ridge, in units of the diagonal."""

    coefficients: np.ndarray
    left_out: np.ndarray
    ridge: float
    error: float


class Spectrum:
    """The eigendecomposition of a kernel matrix (n, n), which is overwritten: it serves all ridges and all targets."""

    def __init__(self, kernel: np.ndarray):
        self.unit = _unit(kernel)
        with one_thread(len(kernel)):
            lam, self.vectors = scipy.linalg.eigh(kernel, driver="evd", overwrite_a=True, check_finite=False)
        self.lam = np.maximum(lam, 0.0)

    def fit(self, y: np.ndarray, ridges: np.ndarray = RIDGES) -> Fit:
        """The best of `ridges` for targets y (n, out)."""
        with one_thread(len(y)):
            inside = self.vectors.T @ y
            gains = 1.0 / (self.lam[:, None] + ridges * self.unit)  # (n, ridges)
            diagonals = np.square(self.vectors) @ gains
            errors = np.zeros(len(ridges))
            for column in inside.T:
                errors += np.mean((self.vectors @ (gains * column[:, None]) / diagonals) ** 2, axis=0)
            best = int(errors.argmin())
            solved = self.vectors @ (gains[:, best, None] * inside)
        left_out = y - solved / diagonals[:, best, None]
        return Fit(solved, left_out, float(ridges[best]), float(errors[best]) / y.shape[1])


def by_cholesky(kernel: np.ndarray, y: np.ndarray, ridge: float) -> Fit:
    """One `ridge`; the matrix is overwritten."""
    n = len(kernel)
    kernel[np.diag_indices(n)] += ridge * _unit(kernel)
    with one_thread(n):
        lower = scipy.linalg.cholesky(kernel.T, lower=True, overwrite_a=True, check_finite=False)
        solved = scipy.linalg.cho_solve((lower, True), y, check_finite=False)
        inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=1, overwrite_c=1)
        diagonal = np.einsum("ij,ij->j", inverse, inverse)
    residual = solved / diagonal[:, None]
    return Fit(solved, y - residual, ridge, float(np.mean(residual**2)))


def by_centers(rows: np.ndarray, centers: np.ndarray, y: np.ndarray, ridges: np.ndarray = RIDGES) -> Fit:
    """The best of `ridges` for the kernel `rows` (n, m) of all rows with m centers, and that of the centers (m, m).

    Both are overwritten. Ridges are compared on some of the rows if there are many.
    """
    unit = _unit(centers)
    centers[np.diag_indices_from(centers)] += _JITTER * unit
    root = scipy.linalg.cholesky(centers.T, lower=True, overwrite_a=True, check_finite=False)
    features = _divided(rows, root)  # (n, m), whose products are the kernel as the centers see it
    gram, inside = np.zeros_like(centers), np.zeros((len(centers), y.shape[1]))
    for at in range(0, len(rows), _CHUNK):
        part = features[at : at + _CHUNK]
        gram += part.T @ part
        inside += part.T @ y[at : at + _CHUNK]
    lam, turn = scipy.linalg.eigh(gram, driver="evd", check_finite=False)
    tried = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _TRIED_ROWS)).astype(int))
    turned, along = features[tried] @ turn.astype(rows.dtype), turn.T @ inside
    squares, strengths = np.square(turned), np.maximum(lam, 0.0)[:, None] + ridges * unit
    leverage = squares @ (1.0 / strengths).astype(rows.dtype)  # (tried, ridges)
    errors = np.zeros(len(ridges))
    for column, truth in zip(along.T, y[tried].T, strict=True):
        fitted = turned @ (column[:, None] / strengths).astype(rows.dtype)
        errors += np.mean((_left_out(truth[:, None], fitted, leverage)) ** 2, axis=0)
    lower, best = _factor(gram, unit, ridges, int(errors.argmin()))
    solved = scipy.linalg.cho_solve((lower, True), inside, check_finite=False)
    fitted = features @ solved.astype(rows.dtype)
    inverse = _divided(features, lower)
    residual = _left_out(y, fitted, np.einsum("ij,ij->i", inverse, inverse)[:, None])
    coefficients = scipy.linalg.solve_triangular(root, solved, lower=True, trans="T", check_finite=False)
    return Fit(coefficients, y - residual, float(ridges[best]), float(np.mean(residual**2)))


def _factor(gram: np.ndarray, unit: float, ridges: np.ndarray, best: int) -> tuple[np.ndarray, int]:
    """Cholesky's of the Gram matrix with the best ridge, or the next one that is above the rounding of features."""
    while True:
        shifted = gram + ridges[best] * unit * np.eye(len(gram))
        try:
            return scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False), best
        except np.linalg.LinAlgError:
            if best == len(ridges) - 1:
                raise
            best += 1


def _unit(kernel: np.ndarray) -> float:
    return max(float(np.trace(kernel)) / len(kernel), np.finfo(float).tiny)


def _divided(rows: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """rows lower^-T, in the memory of `rows` (n, m)."""
    solve = scipy.linalg.get_blas_funcs("trsm", (rows,))
    return solve(1.0, lower.astype(rows.dtype), rows.T, lower=1, overwrite_b=1).T


def _left_out(y: np.ndarray, fitted: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """Errors at rows that were left out."""
    return (y - fitted) / np.maximum(1.0 - leverage, 1e-6)
