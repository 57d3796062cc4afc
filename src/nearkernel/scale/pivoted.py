r"""Randomly pivoted Cholesky: K ~ F F^T from a few of its columns, and the preconditioner that it makes.

A column is drawn with a probability proportional to what is left of the diagonal, so that no cluster of points is
forgotten. Columns come in blocks, and a drawn pivot is accepted with the probability that it would have had one by
one (Epperly, Tropp, Webber 2024): the same law as drawing singly, at the speed of matrix products.
"""

import functools
from typing import NamedTuple

import numpy as np
import scipy.linalg

from .._run.blas import one_thread
from .._run.executor import in_order
from .._run.precision import working_dtype
from .._run.unlocked import solved
from ..kernels.tiles import pieces
from .products import AbstractProducts
from .sums import PIECE, gram_of, times, transposed_times

_SAFE = 1e-8  # of the trace


def bytes_for(n: int, rank: int, itemsize: int = 8) -> int:
    """Memory of a factor in the making: itself, and blocks of columns of two types."""
    return n * (itemsize * rank + 12 * max(16, rank // 16))


class PivotedCholesky(NamedTuple):
    """`factor` F (n, rank) in the type of the kernel's entries, `pivots`, and the mean diagonal of K - F F^T."""

    factor: np.ndarray
    pivots: np.ndarray
    left: float


def pivoted_cholesky(
    products: AbstractProducts, rank: int, seed: int = 0, tol: float | None = None
) -> PivotedCholesky:
    """Stops at `rank` columns, or when the trace left is below `tol` of the whole: 1e-12, in float32 1e-6."""
    n, draw = products.n, np.random.default_rng(seed)
    left = products.diagonal()
    if left.min() < 0:
        at = int(left.argmin())
        raise ValueError(f"the kernel is not positive: k(x, x) = {left[at]:.3g} at point {at}.")
    trace = left.sum()
    rank, dtype = min(rank, n), working_dtype()
    tol = {4: 1e-6, 8: 1e-12}[dtype.itemsize] if tol is None else tol
    factor, pivots = np.zeros((n, rank), dtype), np.zeros(0, dtype=int)
    block = max(16, rank // 16)
    while len(pivots) < rank and left.sum() > tol * trace:
        count = len(pivots)
        proposed = draw.choice(n, size=min(block, n), p=left / left.sum())
        proposed = np.unique(proposed)  # a second draw of a pivot is always rejected
        columns, known = products.columns(proposed), factor[proposed, :count].T
        with one_thread():  # some rows are one thread's work
            gram = (columns[proposed] - factor[proposed, :count] @ known).astype(np.float64, copy=False)
            kept, lower = _accepted(gram, left[proposed], draw, rank - count)
            new = _New(columns=columns, kept=kept, known=known, lower=lower, found=count)
            if len(kept) == 0:
                continue
            for _ in in_order(functools.partial(new.fill, factor, left), list(pieces(slice(0, n), PIECE))):
                pass
        pivots = np.concatenate([pivots, proposed[kept]])
        left = np.maximum(left, 0.0)
        left[pivots] = 0.0
    return PivotedCholesky(factor[:, : len(pivots)], pivots, float(left.mean()))


class _New(NamedTuple):
    """Columns that are accepted: `columns` of K and which are `kept`, what is known of them, their Cholesky factor."""

    columns: np.ndarray
    kept: np.ndarray
    known: np.ndarray
    lower: np.ndarray
    found: int

    def fill(self, factor: np.ndarray, left: np.ndarray, rows: slice) -> None:
        """Some rows at a time, so that there is no second array of the size of the columns."""
        part = self.columns[rows, self.kept] - factor[rows, : self.found] @ self.known[:, self.kept]
        lower = self.lower.astype(part.dtype, copy=False)
        new = solved(lower, part.T).T
        factor[rows, self.found : self.found + len(self.kept)] = new
        left[rows] -= np.einsum("ij,ij->i", new, new)


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
    """(F F^T + shift)^-1 = 1/shift - F (F^T F + shift)^-1 F^T / shift: exact where F F^T lives, 1/shift elsewhere.

    No second array of the size of F is made.
    """

    def __init__(self, factor: np.ndarray, shift: float):
        self.factor, self.shift = factor, shift
        self._between = _inverse(gram_of(factor), shift) / -shift

    def __call__(self, right: np.ndarray) -> np.ndarray:
        return right / self.shift + times(self.factor, self._between @ transposed_times(self.factor, right))


def _inverse(gram: np.ndarray, shift: float) -> np.ndarray:
    """(gram + shift)^-1, by eigenvalues where the shift is so small that a Cholesky factor would know few digits."""
    m = len(gram)
    with one_thread(m):
        if shift > _SAFE * np.trace(gram):
            gram[np.diag_indices(m)] += shift
            lower, _ = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
            inverse, _ = scipy.linalg.lapack.dpotri(lower, lower=1, overwrite_c=1)
            return np.tril(inverse) + np.tril(inverse, -1).T
        lam, vectors = scipy.linalg.eigh(gram, overwrite_a=True, check_finite=False)
        kept = lam > lam.max(initial=0.0) * len(lam) * np.finfo(float).eps
        lam, vectors = lam[kept], vectors[:, kept]
        return (vectors / (lam + shift)) @ vectors.T
