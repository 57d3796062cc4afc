"""Sums over many rows: float32 within a piece, float64 between pieces.

Sums of a few hundred float32 products keep six digits of the sum of their sizes, and those of different pieces round
independently: what is added up in float64 keeps them at any length.
"""

from collections.abc import Iterable

import numpy as np

from .._run.blas import one_thread
from .._run.executor import in_order
from .._run.unlocked import gram
from ..kernels.tiles import mirror, pieces

PIECE = 4096  # rows of a Gram matrix, which BLAS sums in pieces itself
_SHORT = 512  # terms of a product with a vector


def summed(parts: Iterable[np.ndarray], m: int) -> np.ndarray:
    """The sum of upper halves (m, m) in float64, below the diagonal too."""
    total = np.zeros((m, m), order="F")
    for part in parts:
        total += part
    mirror(total.T)
    return total


def gram_of(factor: np.ndarray) -> np.ndarray:
    """factor^T factor in float64, of a `factor` (n, m) in either type."""
    with one_thread():
        return summed(in_order(lambda at: gram(factor[at]), _parts(factor)), factor.shape[1])


def transposed_times(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """factor^T right, (m, columns), some rows to each thread."""
    right, total = right.astype(factor.dtype, copy=False), np.zeros((factor.shape[1], right.shape[1]))
    with one_thread():
        for part in in_order(lambda at: columns_times(factor[at], right[at]), _parts(factor)):
            total += part
    return total


def times(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """factor right, (n, columns), some rows to each thread; in the type of `factor`."""
    right = right.astype(factor.dtype, copy=False)
    with one_thread():
        return np.concatenate(list(in_order(lambda at: factor[at] @ right, _parts(factor))))


def columns_times(rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """rows^T right, (m, columns), on one thread."""
    right, total = right.astype(rows.dtype, copy=False), np.zeros((rows.shape[1], right.shape[1]))
    for at in pieces(slice(0, len(rows)), _SHORT):
        total += rows[at].T @ right[at]
    return total


def _parts(factor: np.ndarray) -> list[slice]:
    return list(pieces(slice(0, len(factor)), PIECE))
