r"""Ridge regression and what it would say of each row without it, in closed form: $e_i = [C^{-1} y]_i / [C^{-1}]_{ii}$.

Three ways, by the number of rows: all ridges from one eigendecomposition; one ridge from one Cholesky factor; all
ridges on few centers, from the eigendecomposition of their features.
"""

import dataclasses

import numpy as np
import scipy.linalg

from .._blas import one_thread

RIDGES = np.logspace(-6, 2, 33)  # in units of the mean of the kernel's diagonal


@dataclasses.dataclass(frozen=True)
class Fit:
    """Coefficients (rows or centers, out), left-out predictions (n, out) and the ridge, in units of the diagonal."""

    coefficients: np.ndarray
    left_out: np.ndarray
    ridge: float
    error: float


def by_spectrum(kernel: np.ndarray, y: np.ndarray, ridges: np.ndarray = RIDGES) -> Fit:
    """The best of `ridges` for the matrix `kernel` (n, n), which is overwritten, and targets y (n, out)."""
    unit = max(float(np.trace(kernel)) / len(kernel), np.finfo(float).tiny)
    with one_thread(len(kernel)):
        lam, vectors = scipy.linalg.eigh(kernel, driver="evd", overwrite_a=True, check_finite=False)
        lam = np.maximum(lam, 0.0)
        inside = vectors.T @ y
        gains = 1.0 / (lam[:, None] + ridges * unit)  # (n, ridges)
        diagonals = np.square(vectors) @ gains
        errors = np.zeros(len(ridges))
        for column in inside.T:
            errors += np.mean((vectors @ (gains * column[:, None]) / diagonals) ** 2, axis=0)
        best = int(errors.argmin())
        solved = vectors @ (gains[:, best, None] * inside)
    left_out = y - solved / diagonals[:, best, None]
    return Fit(solved, left_out, float(ridges[best]), float(errors[best]) / y.shape[1])


def by_cholesky(kernel: np.ndarray, y: np.ndarray, ridge: float) -> Fit:
    """One `ridge`; the matrix is overwritten."""
    n = len(kernel)
    kernel[np.diag_indices(n)] += ridge * float(np.trace(kernel)) / n
    with one_thread(n):
        lower = scipy.linalg.cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
        solved = scipy.linalg.cho_solve((lower, True), y, check_finite=False)
        inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=1, overwrite_c=1)
        diagonal = np.einsum("ij,ij->j", inverse, inverse)
    residual = solved / diagonal[:, None]
    return Fit(solved, y - residual, ridge, float(np.mean(residual**2)))


def by_centers(rows: np.ndarray, centers: np.ndarray, y: np.ndarray, ridges: np.ndarray = RIDGES) -> Fit:
    """The best of `ridges` for the kernel `rows` (n, m) of all rows with m centers, and that of the centers (m, m)."""
    unit = max(float(np.trace(centers)) / len(centers), np.finfo(float).tiny)
    lam, vectors = scipy.linalg.eigh(centers, driver="evd", overwrite_a=True, check_finite=False)
    kept = lam > 1e-10 * lam[-1]
    whiten = (vectors[:, kept] / np.sqrt(lam[kept])).astype(rows.dtype)
    features = rows @ whiten
    lam, turn = scipy.linalg.eigh(
        (features.T @ features).astype(float), driver="evd", overwrite_a=True, check_finite=False
    )
    lam = np.maximum(lam, 0.0)
    features = features @ turn.astype(rows.dtype)
    inside = features.T.astype(float) @ y
    squares = np.square(features)
    best = (np.inf, 0.0)
    for ridge in ridges:
        residual = _left_out_of_features(features, squares, y, inside, lam + ridge * unit)
        best = min(best, (float(np.mean(residual**2)), float(ridge)))
    strength = lam + best[1] * unit
    residual = _left_out_of_features(features, squares, y, inside, strength)
    solved = whiten.astype(float) @ (turn @ (inside / strength[:, None]))
    return Fit(solved, y - residual, best[1], best[0])


def _left_out_of_features(
    features: np.ndarray, squares: np.ndarray, y: np.ndarray, inside: np.ndarray, strength: np.ndarray
) -> np.ndarray:
    leverage = squares @ (1.0 / strength).astype(squares.dtype)
    fitted = features @ (inside / strength[:, None]).astype(features.dtype)
    return (y - fitted) / np.maximum(1.0 - leverage, 1e-6)[:, None]
