r"""Nystrom centers: a kernel machine on m chosen points, from one pass over all the others.

f(x) = k(x, C) b. With K_CC = W^-T W^-1 the rows phi(x) = k(x, C) W are features of the kernel
k(x, C) K_CC^-1 k(C, x'), so whatever a filter g does to a kernel it does to G = sum phi^T phi: b = W g(G) sum phi^T y.
G and the sum are additive: data of any length are read once, in chunks. W is triangular where K_CC has a Cholesky
factor that can be trusted: eigenvectors, which cost ten times as much, are made only where a filter asks for them.
"""

import dataclasses
import functools
import time
from collections.abc import Iterator

import numpy as np

from .._run.blas import one_thread
from .._run.executor import in_order, lanes
from .._run.memory import rows_that_fit
from .._run.precision import precision, working_dtype
from .._run.unlocked import gram
from ..kernels.base import AbstractKernel
from ..kernels.tiles import pieces
from .sums import PIECE, columns_times, summed
from .whitened import Basis, basis_of, eigh

_CLEAR = 1e-3  # of eigenvalues of centers: above this, sums in float32 change predictions by less than 1e-3
_FEW = 1000  # rows whose mean is near that of all


@dataclasses.dataclass(frozen=True)
class Centered:
    """The `basis` W, G = `gram` (r, r), `moment` = sum phi^T y (r, columns), and |y|^2 by column."""

    basis: Basis
    gram: np.ndarray
    moment: np.ndarray
    square: np.ndarray
    seconds: float

    @functools.cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of G."""
        return eigh(self.gram.copy())

    def residual(self, fitted: np.ndarray) -> float:
        """|y - f(X)| / |y| of `fitted` = g(G) moment, the worst column, without a second pass."""
        left = self.square + np.einsum("ij,ij->j", fitted, self.gram @ fitted - 2.0 * self.moment)
        return float(np.sqrt(np.maximum(left / np.where(self.square > 0, self.square, 1.0), 0.0)).max())


def centered(
    kernel: AbstractKernel, x: np.ndarray, y: np.ndarray, centers: np.ndarray, memory: int
) -> Centered:
    """One pass over `x` (n, d) and `y` (n, columns), which may be memory maps."""
    begin = time.perf_counter()
    # Rounding of K_CC would be divided by its eigenvalues; that of the rows averages out.
    with precision("float64"):
        basis = basis_of(kernel.entries(centers, None))
    squares, moment, square = _sums(kernel, x, y, centers, memory, _bear_float32(*basis.known, len(x)))
    gram, moment = basis.within(squares), basis.enter(moment)
    return Centered(basis, gram, moment, square, time.perf_counter() - begin)


def _bear_float32(least: float, second: float, n: int) -> bool:
    """Whether sums over `n` rows in float32 know all directions of centers whose matrix has such eigenvalues.

    Rounding counts by the square of lam_max / lam_min, and that of different pieces averages out. The largest
    eigenvalue is left out, `second` is the next: the largest belongs to the mean, which is taken away.
    """
    if working_dtype() != np.float32:
        return False
    return least * max(n / PIECE, 1.0) ** 0.25 > _CLEAR * second


def _sums(kernel, x, y, centers, memory: int, single: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """sum k k^T (m, m), sum k y^T and sum y^2 over the rows k = k(x_i, C), chunk by chunk on all cores.

    In float32 rows are taken from their `middle`, roughly their mean, which would cost digits: what it adds to the
    sums is known.
    """
    m, threads = len(centers), lanes()
    chunk = min(_even(len(x)), rows_that_fit(2 * 8 * m, memory // (4 * (threads + 1))))
    middle = _mean(kernel, x, centers) if single else None

    def part(at: slice) -> tuple[np.ndarray, ...]:
        values = np.asarray(y[at], dtype=np.float64)
        rows = kernel.entries(np.asarray(x[at], dtype=np.float64), centers)
        if middle is None:
            rows = rows.astype(np.float64, copy=False)
        else:
            rows -= middle
        ones_and_values = np.concatenate([np.ones((len(values), 1)), values], axis=1)
        return gram(rows), columns_times(rows, ones_and_values), ones_and_values.sum(axis=0), _squares(values)

    cross, count, square = np.zeros((m, 1 + y.shape[1])), np.zeros(1 + y.shape[1]), np.zeros(y.shape[1])

    def grams() -> Iterator[np.ndarray]:
        for own, *others in in_order(part, list(pieces(slice(0, len(x)), chunk)), threads):
            for sums, more in zip((cross, count, square), others, strict=True):
                sums += more
            yield own

    with one_thread():  # a chunk is one thread's work
        total = summed(grams(), m)
    if middle is not None:
        mean = middle.astype(np.float64)
        apart = np.outer(mean, cross[:, 0] + 0.5 * len(x) * mean)
        total += apart
        total += apart.T
        cross += np.outer(mean, count)
    return total, cross[:, 1:], square


def _even(n: int) -> int:
    """Rows of a piece of `n`: an even number of equal pieces, so that two threads end together."""
    return -(-n // (2 * -(-n // (2 * PIECE))))


def _mean(kernel, x, centers) -> np.ndarray:
    """The mean of a few rows."""
    few = np.asarray(x[:: -(-len(x) // _FEW)], dtype=np.float64)
    return kernel.entries(few, centers).mean(axis=0, dtype=np.float64).astype(np.float32)


def _squares(y: np.ndarray) -> np.ndarray:
    return np.square(np.asarray(y, dtype=np.float64)).sum(axis=0)
