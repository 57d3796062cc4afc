"""Products with a matrix on disk: its blocks are streamed, or computed again where that is faster."""

import time

import numpy as np

from .._memory import cores
from ..kernels import AbstractKernel
from ._products import AbstractTiled, Recomputed
from ._store import COPIES, KernelStore


class Stored(AbstractTiled):
    """Reads every block of the lower half once a product; `threads` blocks are in memory at a time."""

    def __init__(self, store: KernelStore, kernel: AbstractKernel, memory: int):
        self.store, self.n, self.size = store, store.n, store.block
        block_bytes = COPIES * store.block**2 * store.dtype.itemsize
        self.threads = int(np.clip(memory // 2 // block_bytes, 1, cores()))
        self._again = Recomputed(kernel, store.x)

    def tile(self, i: slice, j: slice) -> np.ndarray:
        return self.store.read(i.start // self.size, j.start // self.size)

    def columns(self, at: np.ndarray) -> np.ndarray:
        return self._again.columns(at)

    def row_products(self, at: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self._again.row_products(at, right)

    def diagonal(self) -> np.ndarray:
        return self._again.diagonal()


def stored_products(store: KernelStore, kernel: AbstractKernel, memory: int) -> "Stored | Recomputed":
    """Streamed or recomputed, whichever gives more entries a second on its threads: one block of each is timed."""
    stored = Stored(store, kernel, memory)
    again = stored._again
    last = store.blocks()[-1][0]
    far, near = store.rows(last), store.rows(0)
    part = slice(far.start, min(far.start + again.size, far.stop)), slice(0, min(again.size, near.stop))
    if part[0] == part[1]:
        return stored
    seconds = [_seconds(lambda: store.read(last, 0)), _seconds(lambda: again.tile(*part))]
    entries = [
        stored.threads * store.block**2,
        again.threads * (part[0].stop - part[0].start) * (part[1].stop - part[1].start),
    ]
    return stored if seconds[0] / entries[0] <= seconds[1] / entries[1] else again


def _seconds(call) -> float:
    call()  # once to compile, or to warm the disk
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
