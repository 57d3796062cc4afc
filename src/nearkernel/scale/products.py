"""K times columns: held in memory, or computed again tile by tile when it does not fit.

Solvers that only multiply see nothing else of a kernel matrix. The symmetric half is computed once and used twice.
In float32 a tile is multiplied in float32, and tiles are added up in float64: products keep six digits of their norm.
"""

import abc
import math
from collections.abc import Iterator

import numpy as np
import scipy.linalg

from .._run.blas import one_thread
from .._run.executor import in_order, lanes
from .._run.memory import rows_that_fit
from .._run.precision import working_dtype
from ..kernels.base import AbstractKernel
from ..kernels.tiles import covering, pieces

_PANEL = 2000  # rows of a task: large against its overhead, small against the matrix
_TILE_COPIES = 4  # of a tile while it is computed


class AbstractProducts(abc.ABC):
    """A symmetric kernel matrix (n, n) that is multiplied with, never factored.

    `work` is what an entry costs in one product, in floating-point operations; one that is read counts as many as
    could be done meanwhile.
    """

    n: int
    work: float = 18.0

    @abc.abstractmethod
    def times(self, right: np.ndarray) -> np.ndarray:
        """K right, for `right` (n, columns)."""

    @abc.abstractmethod
    def columns(self, at: np.ndarray) -> np.ndarray:
        """K[:, at], for integers `at`."""

    @abc.abstractmethod
    def diagonal(self) -> np.ndarray:
        """(n,)."""

    def row_products(self, at: np.ndarray, right: np.ndarray) -> np.ndarray:
        """K[at] right."""
        return self.columns(at).T @ right

    @abc.abstractmethod
    def among(self, at: np.ndarray) -> np.ndarray:
        """K[at][:, at]."""


class AbstractTiled(AbstractProducts):
    """A matrix that comes tile by tile, the lower half of it."""

    threads: int
    size: int

    @abc.abstractmethod
    def tile(self, i: slice, j: slice) -> np.ndarray:
        """K[i, j] for j.start <= i.start."""

    def times(self, right: np.ndarray) -> np.ndarray:
        product = np.zeros(right.shape)
        with one_thread():  # a panel is one thread's work, its products included
            # Panels are added in their order: the same sums on any number of threads.
            for rows, own, above in in_order(lambda i: self._panel(i, right), self._rows(), self.threads):
                product[rows] += own
                product[: rows.start] += above
        return product

    def _rows(self) -> Iterator[slice]:
        height = max(self.size, _PANEL // self.size * self.size)
        yield from reversed(list(pieces(slice(0, self.n), height)))  # the longest panels first

    def _panel(self, rows: slice, right: np.ndarray) -> tuple[slice, np.ndarray, np.ndarray]:
        """What the rows of a panel get from all before them, and what those get from the panel."""
        own, above = (
            np.zeros((rows.stop - rows.start, right.shape[1])),
            np.zeros((rows.start, right.shape[1])),
        )
        for i, j in covering(rows, slice(0, rows.stop), (self.size,) * 2, lower=True):
            here = slice(i.start - rows.start, i.stop - rows.start)
            tile = self.tile(i, j)
            own[here] += tile @ right[j].astype(tile.dtype, copy=False)
            if j.start < i.start:
                back = tile.T @ right[i].astype(tile.dtype, copy=False)
                if j.start < rows.start:
                    above[j] += back
                else:
                    own[j.start - rows.start : j.stop - rows.start] += back
        return rows, own, above


class Held(AbstractTiled):
    """The matrix itself. In float32 it is multiplied by tiles too: each is read once, and sums keep their digits."""

    size = 512

    def __init__(self, matrix: np.ndarray):
        self.matrix = matrix
        self.n = len(matrix)
        self.threads = lanes()

    def tile(self, i: slice, j: slice) -> np.ndarray:
        return self.matrix[i, j]

    def times(self, right: np.ndarray) -> np.ndarray:
        if self.matrix.dtype == np.float32:
            return super().times(right)
        if right.shape[1] == 1:  # one pass over half of the matrix
            return scipy.linalg.blas.dsymv(1.0, self.matrix.T, right[:, 0], lower=1)[:, None]
        return self.matrix @ right

    def columns(self, at: np.ndarray) -> np.ndarray:
        return self.matrix[at].T  # symmetric: rows lie together in memory

    def among(self, at: np.ndarray) -> np.ndarray:
        return self.matrix[np.ix_(at, at)]

    def diagonal(self) -> np.ndarray:
        return np.diagonal(self.matrix).astype(np.float64)


class Recomputed(AbstractTiled):
    """Entries computed anew in every product: no memory but that of a few tiles, as many as `memory` allows."""

    def __init__(self, kernel: AbstractKernel, x: np.ndarray, memory: int):
        self.kernel = kernel
        self.x = x
        self.n = len(x)
        self._tiles, self._chunk = kernel.tiles(x), memory // 8
        self.size = self._tiles.size
        tile_bytes = _TILE_COPIES * self.size**2 * working_dtype().itemsize
        self.threads = int(np.clip(memory // 2 // tile_bytes, 1, self._tiles.threads))
        self.work = 100.0 + 4.0 * math.prod(x.shape[1:])  # measured: entries wait for memory and exponentials

    def tile(self, i: slice, j: slice) -> np.ndarray:
        return self._tiles.tile(i, j)

    def columns(self, at: np.ndarray) -> np.ndarray:
        return self.kernel.entries(self.x, self.x[at])

    def row_products(self, at: np.ndarray, right: np.ndarray) -> np.ndarray:
        product, chunk = np.zeros((len(at), right.shape[1])), rows_that_fit(8 * len(at), self._chunk)
        for start in range(0, self.n, chunk):
            part = slice(start, start + chunk)
            product += self.kernel.entries(self.x[at], self.x[part]) @ right[part]
        return product

    def among(self, at: np.ndarray) -> np.ndarray:
        return self.kernel.entries(self.x[at], None)

    def diagonal(self) -> np.ndarray:
        return np.asarray(self.kernel.diag(self.x), dtype=np.float64)


def products_of(kernel: AbstractKernel, x: np.ndarray, memory: int) -> AbstractProducts:
    """Held if the matrix takes at most half of `memory` bytes, else recomputed."""
    if held_fits(len(x), memory):
        return Held(kernel.entries(x, None))
    return Recomputed(kernel, x, memory)


def held_fits(n: int, memory: int) -> bool:
    return 2 * n * n * working_dtype().itemsize <= memory


__all__ = ["AbstractProducts", "AbstractTiled", "Held", "Recomputed", "held_fits", "products_of"]
