"""Fill a store: on the threads of this process, or by the workers of a Dask cluster; again after any interruption."""

import errno
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .._base.check import inputs, one_of, whole
from .._base.types import ArrayLike
from .._run.blas import one_thread
from .._run.cluster import Lost
from .._run.executor import AbstractJob, lanes, on_cluster, run
from .._run.memory import human_bytes, parse_bytes
from .._run.precision import in_float64, precision
from ..kernels.base import AbstractKernel
from ..kernels.tiles import Tiles, covering
from .blocks import DTYPES
from .store import COPIES, KernelStore, create_store, open_store, require_disk

Watch = Callable[[int, int], None]  # (blocks done, blocks in all)
_BLOCK = 2000  # rows: 32 MB in float64


@in_float64
def build(
    kernel: AbstractKernel,
    x: ArrayLike,
    path: "str | Path",
    *,
    memory: "str | int" = "2GiB",
    dtype: str = "float64",
    block: int | None = None,
    scheduler: str | None = None,
    settings: dict | None = None,
    watch: Watch | None = None,
) -> KernelStore:
    """Writes the kernel matrix of `x` (n, d) to disk at `path`, and resumes an interrupted build.

    **Arguments:** `kernel`; `x`; `path`; `memory`, the limit for blocks under construction; `dtype`, "float64" or
    "float32"; `block`, rows per block, by default chosen from `memory`; `scheduler`, the address of a Dask scheduler
    whose workers see `path`; `settings`, stored with the matrix; `watch`, a function `watch(done, all)` called after
    each block.

    Existing blocks are read once and their checksums compared; damaged blocks are recomputed. Raises `ValueError` if
    the path holds another kernel, other data or another version, or if another process is building it.
    """
    if not isinstance(kernel, AbstractKernel):
        raise TypeError(f"`kernel` must be a kernel of nk.kernels; got {type(kernel).__name__}.")
    path, budget = Path(path), parse_bytes(memory)
    kind = np.dtype(one_of(dtype, "dtype", DTYPES))
    x = inputs(x, "x", kernel.input_dim())
    with on_cluster(scheduler):
        store = _begun(kernel, x, path, budget, kind, block, settings)
        with store.held():
            store.drop_leftovers()
            if store.inputs_state() != "sound":
                store.write_inputs(x)
            return _filled(kernel, store, budget, scheduler is not None, watch)


def _begun(
    kernel: AbstractKernel,
    x: np.ndarray,
    path: Path,
    budget: int,
    dtype: np.dtype,
    block: int | None,
    settings: dict | None,
) -> KernelStore:
    """The store at `path`, created if there is none; refused if it is one of another kernel or other inputs."""
    if not path.exists():
        rows = _block_rows(len(x), budget, dtype) if block is None else whole(block, "block", 1)
        create_store(path, kernel, x, rows, dtype, settings)
    store = open_store(path, writable=True)
    store.require(kernel, x, same_version=True)
    if store.dtype != dtype:
        raise ValueError(f"`dtype` is {dtype}, but {path} holds {store.dtype}. Use another path.")
    if block is not None and whole(block, "block", 1) != store.block:
        raise ValueError(f"`block` is {block}, but {path} has blocks of {store.block} rows. Leave it out.")
    return store


def _filled(
    kernel: AbstractKernel, store: KernelStore, budget: int, elsewhere: bool, watch: Watch | None
) -> KernelStore:
    """All blocks that are missing or damaged."""
    missing, block_bytes = [(i, j) for i, j, _ in store.unsound()], store.block**2 * store.dtype.itemsize
    require_disk(store.path, len(missing) * block_bytes)
    total = len(store.blocks())
    done = total - len(missing)
    try:
        for _ in _computed(kernel, store, missing, budget, elsewhere):
            done += 1
            if watch is not None:
                watch(done, total)
    except OSError as error:
        kept = f"{done} of {total} blocks are stored"
        if isinstance(error, Lost):
            raise OSError(f"{error}: at least {kept}; start a scheduler and run this again.") from None
        if error.errno != errno.ENOSPC:
            raise
        raise OSError(
            f"no space left for {store.path}: {kept}; free "
            f"{human_bytes((total - done) * block_bytes)} and run this again."
        ) from None
    finally:
        if elsewhere:
            store.drop_leftovers()  # of workers that were killed
    return store


def _block_rows(n: int, budget: int, dtype: np.dtype) -> int:
    """As many rows as let every thread have a block in the making."""
    most = math.isqrt(budget // (COPIES * dtype.itemsize * lanes()))
    if most < 16:
        raise MemoryError(f"`memory` of {human_bytes(budget)} is too small for one block: use 1 MiB or more.")
    return max(1, min(_BLOCK, most, n))


def _computed(
    kernel: AbstractKernel, store: KernelStore, missing: list, budget: int, elsewhere: bool
) -> Iterator[object]:
    """One item for every block that has been written."""
    fit = int(budget // (COPIES * store.block**2 * store.dtype.itemsize))
    if fit < 1 and not elsewhere:
        raise MemoryError(
            f"a block of {store.path} has {store.block} rows, too many for `memory` = {human_bytes(budget)}."
        )
    job = _BlockJob(kernel, str(store.path.absolute()), store.seal)
    with one_thread():
        yield from run(job, missing, min(lanes(), fit), ordered=False)


class _BlockJob(AbstractJob[tuple[int, int]]):
    """Blocks of a matrix, computed and written where the folder can be seen."""

    def __init__(self, kernel: AbstractKernel, path: str, seal: str):
        self.kernel = kernel
        self.path = path
        self.seal = seal

    def ready(self) -> Callable[[tuple[int, int]], None]:
        store = open_store(self.path, writable=True)
        if store.seal != self.seal:
            raise ValueError(f"a worker sees a different matrix at {self.path} than this machine.")
        with precision(store.dtype.name):  # the sides of the tiles are made in this type
            tiles = self.kernel.tiles(store.x)

        def write(at: tuple[int, int]) -> None:
            rows, columns = (store.rows(index) for index in at)
            with one_thread():
                block = _block(tiles, rows, columns, store.dtype)
            if not np.isfinite(block).all():
                raise ValueError(
                    f"`kernel` has NaN or infinite entries between rows {rows.start} to {rows.stop - 1} and "
                    f"{columns.start} to {columns.stop - 1} of `x`: scale the inputs or change its settings."
                )
            store.write(*at, block)

        return write


def _block(tiles: Tiles, rows: slice, columns: slice, dtype: np.dtype) -> np.ndarray:
    """K[rows, columns], tile by tile."""
    block, same = np.empty((rows.stop - rows.start, columns.stop - columns.start), dtype), rows == columns
    for i, j in covering(rows, columns, (tiles.size,) * 2, lower=same):
        down = slice(i.start - rows.start, i.stop - rows.start)
        right = slice(j.start - columns.start, j.stop - columns.start)
        block[down, right] = tiles.tile(i, j)
        if same and j.start < i.start:
            block[right, down] = block[down, right].T
    return block
