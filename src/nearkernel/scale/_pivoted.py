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
    block = max(16, rank // 8)
    while len(pivots) < rank and left.sum() > tol * trace:
        found = len(pivots)
        proposed = draw.choice(n, size=min(block, n), p=left / left.sum())
        proposed = np.unique(proposed)  # a second draw of a pivot is always rejected
        columns = (
            products.columns(proposed).astype(np.float64) - factor[:, :found] @ factor[proposed, :found].T
        )
        kept, lower = _accepted(columns[proposed], left[proposed], draw, rank - found)
        if len(kept) == 0:
            continue
        new = scipy.linalg.solve_triangular(lower, columns[:, kept].T, lower=True, check_finite=False).T
        factor[:, found : found + len(kept)] = new
        pivots = np.concatenate([pivots, proposed[kept]])
        left = np.maximum(left - np.einsum("ij,ij->i", new, new), 0.0)
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
    """(F F^T + shift)^-1, from the singular values of F: exact where F F^T lives, 1/shift elsewhere."""

    def __init__(self, factor: np.ndarray, shift: float):
        gram = factor.T @ factor
        with one_thread(len(gram)):
            lam, vectors = scipy.linalg.eigh(gram, overwrite_a=True, check_finite=False)
        kept = lam > lam.max(initial=0.0) * len(lam) * np.finfo(float).eps
        self.lam, self.shift = lam[kept], shift
        self.basis = factor @ (vectors[:, kept] / np.sqrt(self.lam))
        self._gain = 1.0 / (self.lam + shift) - 1.0 / shift

    def __call__(self, right: np.ndarray) -> np.ndarray:
        return right / self.shift + self.basis @ (self._gain[:, None] * (self.basis.T @ right))
