"""How noisy are the targets? Asked of the training rows alone."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from ..._run.blas import one_thread
from ...dynamics.linear.factor import Tridiagonal, spectrum, tridiagonal
from ...kernels import AbstractKernel

NOISES = np.geomspace(1e-6, 10, 71)  # candidates, in units of the target variance
MOST_ROWS = 2000  # a factorization of more rows would take longer than the answers themselves


def most_likely_noise(kernel: AbstractKernel, x: np.ndarray, y: np.ndarray) -> float:
    """The candidate under which the targets (n, out) of at most `MOST_ROWS` rows, spread evenly, are most likely."""
    if len(x) > MOST_ROWS:
        rows = np.linspace(0, len(x) - 1, MOST_ROWS).astype(int)
        x, y = x[rows], y[rows]
    return float(NOISES[np.argmax(log_evidence(kernel, x, y))])


def log_evidence(kernel: AbstractKernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log N(y; 0, K + noise), summed over outputs, for every candidate: one reduction of K serves them all."""
    factor = tridiagonal(kernel(x))
    if isinstance(factor, Tridiagonal):
        inside = factor.enter(y)
        return np.array([_of_tridiagonal(factor, inside, noise) for noise in NOISES])
    found = spectrum(kernel(x))
    return of_eigenvalues(found.lam, found.vectors.T @ y, y)


def of_eigenvalues(lam: np.ndarray, inside: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same from the eigenvalues (r,) that are not 0 and the targets along their eigenvectors, (r, out)."""
    (n, out), rank = y.shape, len(lam)
    variance = np.maximum(lam, 0.0) + NOISES[:, None]  # (candidates, r)
    power = np.sum(inside**2, axis=1)
    outside = max(float(np.sum(y**2)) - float(power.sum()), 0.0)
    fit = np.sum(power / variance, axis=1) + outside / NOISES
    volume = np.sum(np.log(variance), axis=1) + (n - rank) * np.log(NOISES)
    return -0.5 * (fit + out * (volume + n * math.log(2 * math.pi)))


def _of_tridiagonal(factor: Tridiagonal, inside: np.ndarray, noise: float) -> float:
    main, _, info = scipy.linalg.lapack.dpttrf(factor.main + noise, factor.off)
    assert info == 0, "K is positive"
    fit = float(np.sum(inside * factor.divided(inside, noise, 1.0)))
    n, out = inside.shape
    return -0.5 * (fit + out * (float(np.sum(np.log(main))) + n * math.log(2 * math.pi)))


def most_likely_linear(
    x: np.ndarray, y: np.ndarray, x_new: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Bayesian ridge regression with the kernel x . x' / d, from the singular values of x (n, d).

    Mean (m, out) and variance (m,) of the function at `x_new`, the most likely noise, and the log evidence there.
    """
    with one_thread(len(x)):
        vectors, roots, turn = scipy.linalg.svd(
            x / math.sqrt(x.shape[1]), full_matrices=False, check_finite=False
        )
        inside = vectors.T @ y
        found = of_eigenvalues(roots**2, inside, y)
        noise = float(NOISES[np.argmax(found)])
        features = x_new @ turn.T / math.sqrt(x.shape[1])
        mean = features @ (inside * (roots / (roots**2 + noise))[:, None])
        outside = np.maximum(
            np.einsum("ij,ij->i", x_new, x_new) / x.shape[1] - np.sum(features**2, axis=1), 0.0
        )
        variance = features**2 @ (noise / (roots**2 + noise)) + outside
    return mean, variance, noise, float(found.max())
