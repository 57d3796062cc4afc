r"""Randomly pivoted Cholesky: K ~ F F^T from a few of its columns, and the preconditioner that it makes.

A column is drawn with a probability proportional to what is left of the diagonal, so that no cluster of points is
forgotten. Columns come in blocks, and a drawn pivot is accepted with the probability that it would have had one by
one (Epperly, Tropp, Webber 2024): the same law as drawing singly, at the speed of matrix products.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from .._blas import one_thread
from ._products import AbstractProducts

_ROWS = 8192  # of columns that are worked on at a time


def bytes_for(n: int, rank: int) -> int:
    """Memory of a factor in the making: itself, and blocks of columns of two types."""
    return n * (8 * rank + 12 * max(16, rank // 16))


class PivotedCholesky(NamedTuple):
    """`factor` F (n, rank), the `pivots` whose columns were used, and the mean diagonal of K - F F^T."""

    factor: np.ndarray
    pivots: np.ndarray
    left: float


def pivoted_cholesky(
    products: AbstractProducts, rank: int, seed: int = 0, tol: float = 1e-12
) -> PivotedCholesky:
    """Stops at `rank` columns, or when the trace left is below `tol` of the whole."""
    n, draw = products.n, np.random.default_rng(seed)
    left = products.diagonal()
    if left.min() < 0:
        at = int(left.argmin())
        raise ValueError(f"the kernel is not positive: k(x, x) = {left[at]:.3g} at point {at}.")
    trace = left.sum()
    rank = min(rank, n)
    factor, pivots = np.zeros((n, rank)), np.zeros(0, dtype=int)
    block = max(16, rank // 16)
    while len(pivots) < rank and left.sum() > tol * trace:
        found = len(pivots)
        proposed = draw.choice(n, size=min(block, n), p=left / left.sum())
        proposed = np.unique(proposed)  # a second draw of a pivot is always rejected
        columns, known = products.columns(proposed), factor[proposed, :found].T
        gram = columns[proposed] - factor[proposed, :found] @ known
        kept, lower = _accepted(gram, left[proposed], draw, rank - found)
        if len(kept) == 0:
            continue
        for at in range(0, n, _ROWS):  # parts of the columns, so that there is no second array of their size
            rows = slice(at, at + _ROWS)
            part = columns[rows, kept] - factor[rows, :found] @ known[:, kept]
            new = scipy.linalg.solve_triangular(lower, part.T, lower=True, check_finite=False).T
            factor[rows, found : found + len(kept)] = new
            left[rows] -= np.einsum("ij,ij->i", new, new)
        pivots = np.concatenate([pivots, proposed[kept]])
        left = np.maximum(left, 0.0)
        left[pivots] = 0.0
    return PivotedCholesky(factor[:, : len(pivots)], pivots, float(left.mean()))


def _accepted(gram: np.ndarray, diagonal: np.ndarray, draw: np.random.Generator, most: int):
    """Which proposals to keep, and the Cholesky factor of their Gram matrix."""
    size = len(gram)
    kept: list[int] = []
    lower, left = np.zeros((size, size)), np.diagonal(gram).copy()
    for i in draw.permutation(size):
        if len(kept) == most:
            break
        if draw.uniform() * diagonal[i] < left[i] and left[i] > 1e-14 * diagonal[i]:
            now = len(kept)
            column = (gram[:, i] - lower[:, :now] @ lower[i, :now]) / np.sqrt(left[i])
            lower[:, now] = column
            left -= column**2
            kept.append(int(i))
    return np.array(kept, dtype=int), lower[kept, : len(kept)]


class Preconditioner:
    """(F F^T + shift)^-1, from the eigenvalues of F^T F: exact where F F^T lives, 1/shift elsewhere.

    With F^T F = V lam V^T it is 1/shift + F V (1/(lam + shift) - 1/shift)/lam V^T F^T: no second array of the size
    of F.
    """

    def __init__(self, factor: np.ndarray, shift: float):
        gram = scipy.linalg.blas.dsyrk(1.0, factor.T)  # the upper half; the transpose is as BLAS likes it
        with one_thread(len(gram)):
            lam, vectors = scipy.linalg.eigh(gram, lower=False, overwrite_a=True, check_finite=False)
        kept = lam > lam.max(initial=0.0) * len(lam) * np.finfo(float).eps
        lam, vectors = lam[kept], vectors[:, kept]
        self.factor, self.shift = factor, shift
        self._between = (vectors * (1.0 / (lam + shift) - 1.0 / shift) / lam) @ vectors.T

    def __call__(self, right: np.ndarray) -> np.ndarray:
        return right / self.shift + self.factor @ (self._between @ (self.factor.T @ right))
