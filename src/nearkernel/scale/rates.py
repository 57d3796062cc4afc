"""How fast one core makes kernel entries, multiplies with them and writes them: a few seconds on this machine."""

import dataclasses
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .._base.check import one_of, positive, whole
from .._base.files import unfinished
from .._base.result import Result
from .._run.blas import one_thread
from .._run.memory import cores
from .._run.precision import in_float64, precision
from .._run.unlocked import gram
from ..kernels.base import AbstractKernel
from .blocks import DTYPES
from .building import build
from .products import Recomputed

_POINTS, _CENTERS, _NUMBERS = 8000, 1000, 3e7  # fewer points where they have many features
_REPEATS = 2  # the best counts: other programs only add time
_DISK = 128 * 2**20  # bytes written and waited for


@dataclasses.dataclass(frozen=True, repr=False)
class Rates(Result):
    """The measured rates from which a plan is computed, per core with all cores busy.

    **Fields:** `cores`, number of cores of a machine; `build`, entries per second, computed and written; `product`,
    entries of the lower half per second, computed and used twice; `entries`, entries per second of a matrix between two
    sets of points; `flops`, float64 operations per second of a matrix product; `disk`, bytes per second of the disk or
    the shared folder; `network`, bytes per second of one worker; `task`, seconds that a scheduler spends on a block.
    """

    cores: int
    build: float
    product: float
    entries: float
    flops: float
    disk: float
    network: float = 1.25e9
    task: float = 1e-3

    def __post_init__(self) -> None:
        whole(self.cores, "cores", 1)
        for field in dataclasses.fields(self)[1:]:
            positive(getattr(self, field.name), field.name)


@in_float64
def measure_rates(
    kernel: AbstractKernel, d: int, *, dtype: str = "float64", folder: "str | Path | None" = None
) -> Rates:
    """The rates of this machine for `kernel` on inputs of `d` features, measured in a few seconds.

    **Arguments:** `dtype` of the entries, "float64" or "float32"; `folder`, on the disk to measure, by default the
    folder for temporary files. Network and scheduler cannot be measured on one machine; their rates are 10 Gbit/s
    and 1 ms per block.
    """
    if not isinstance(kernel, AbstractKernel):
        raise TypeError(f"`kernel` must be a kernel of nk.kernels; got {type(kernel).__name__}.")
    one_of(dtype, "dtype", DTYPES)
    d = whole(d, "d", 1, 10**6)
    block = int(np.clip(_NUMBERS / d, 400, _POINTS)) // 4
    n, m = 4 * block, min(_CENTERS, block)
    x = np.random.default_rng(0).normal(size=(n, d))
    with precision(dtype), tempfile.TemporaryDirectory(dir=folder) as name:
        products, ones = Recomputed(kernel, x, 2**30), np.ones((n, 1))
        path = Path(name) / "K"
        built = _best(lambda: build(kernel, x, path, block=block, dtype=dtype), path)
        multiplied = _best(lambda: products.times(ones))
        crossed = _best(lambda: kernel.entries(x, x[:m]))
        rows = np.array(np.broadcast_to(x[:, :1], (n, m)), order="C")
        with one_thread():
            summed = _best(lambda: gram(rows))
        disk = _DISK / _seconds(lambda: _written(Path(name) / "disk"))
    count = cores()
    return Rates(
        cores=count, build=10 * block**2 / built / count, product=0.5 * n**2 / multiplied / count,
        entries=n * m / crossed / count, flops=n * m**2 / summed, disk=disk,
    )  # fmt: skip


def _best(work: Callable[[], object], path: Path | None = None) -> float:
    """Seconds of the best of several runs; the first compiles and is not counted. What is at `path` is removed before
    each run: it need not be written any more, which would slow the next run down."""
    seconds = []
    for _ in range(1 + _REPEATS):
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
        seconds.append(_seconds(work))
    return min(seconds[1:])


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _written(path: Path) -> None:
    held = unfinished(path)
    with open(held, "wb") as file:
        file.write(os.urandom(2**20) * (_DISK // 2**20))
        file.flush()
        os.fsync(file.fileno())
    held.unlink()
