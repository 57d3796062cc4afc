"""Products with a matrix on disk: its blocks are streamed, and each is checked as it is read."""

import numpy as np

from .._run.memory import cores
from ..kernels.base import AbstractKernel
from .products import AbstractTiled, Recomputed
from .store import COPIES, KernelStore


class Stored(AbstractTiled):
    """Reads every block of the lower half once a product; `threads` blocks are in memory at a time.

    A block that is missing or damaged raises ValueError in the first product, whatever the machine. Single columns,
    which preconditioners ask for, are computed from the kernel.
    """

    def __init__(self, store: KernelStore, kernel: AbstractKernel, memory: int):
        self.store = store
        self.n = store.n
        self.size = store.block
        block_bytes = COPIES * store.block**2 * store.dtype.itemsize
        self.threads = int(np.clip(memory // 2 // block_bytes, 1, cores()))
        self._again = Recomputed(kernel, store.x, memory)

    def tile(self, i: slice, j: slice) -> np.ndarray:
        return self.store.read(i.start // self.size, j.start // self.size)

    def columns(self, at: np.ndarray) -> np.ndarray:
        return self._again.columns(at)

    def row_products(self, at: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self._again.row_products(at, right)

    def among(self, at: np.ndarray) -> np.ndarray:
        return self._again.among(at)

    def diagonal(self) -> np.ndarray:
        return self._again.diagonal()
