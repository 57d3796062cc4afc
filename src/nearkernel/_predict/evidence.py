"""How noisy are the targets? Asked of the training rows alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg

from .._blas import one_thread

NOISES = np.geomspace(1e-6, 10, 71)  # candidates, in units of the target variance
MOST_ROWS = 2000  # an eigendecomposition of more rows would take longer than the answers themselves


def most_likely_noise(kernel: Any, x: np.ndarray, y: np.ndarray) -> float:
    """The candidate under which the targets (n, out) of at most `MOST_ROWS` rows are most likely."""
    return float(NOISES[np.argmax(log_evidence(kernel, x[:MOST_ROWS], y[:MOST_ROWS]))])


def log_evidence(kernel: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log N(y; 0, K + noise), summed over outputs, for every candidate: one eigendecomposition serves them all."""
    matrix = kernel(x)
    with one_thread(len(x)):
        lam, vectors = scipy.linalg.eigh(matrix, driver="evd", overwrite_a=True)
    variance = np.maximum(lam, 0) + NOISES[:, None]  # (candidates, n)
    power = np.sum((vectors.T @ y) ** 2, axis=1)
    constant = y.size * math.log(2 * math.pi)
    return -0.5 * (
        np.sum(power / variance, axis=1) + y.shape[1] * np.sum(np.log(variance), axis=1) + constant
    )
