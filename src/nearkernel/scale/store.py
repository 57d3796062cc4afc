"""A kernel matrix on disk: square blocks of its lower half in a Zarr store, each with its checksums.

A block is written to a separate file and then renamed, so it is whole or not there, whatever happens. What the matrix
was made of stands in the attributes; the inputs are kept beside it.
"""

import contextlib
import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .._base.extra import needing
from .._base.files import remove, sweep, unfinished
from .._run.memory import human_bytes
from ..kernels.base import AbstractKernel
from .block_file import Unsound, read_block, write_block
from .blocks import FORMAT, INPUTS, MATRIX, MOST_BLOCKS, About, arrays, read_about
from .fingerprint import describe, hash_array

COPIES = 3  # of a block in memory while it is computed or read, checked and moved


class KernelStore:
    """A symmetric matrix (n, n) in blocks on disk, complete or under construction.

    **Fields:** `path`; `n`, `dim` of the inputs, `block`, rows per block, `dtype`; `kernel`, a description; `version`
    of nearkernel that made it; `settings`, from which the command line rebuilds the kernel; `x`, the inputs.
    """

    def __init__(self, path: Path, about: About, writable: bool):
        self.path, self.seal = path, about.seal()
        self.n = about.points
        self.dim = about.features
        self.block = about.block
        self.dtype = np.dtype(about.dtype)
        self.kernel = about.kernel
        self.version = about.version
        self.settings = about.settings
        self._about, self._writable = about, writable

    @property
    def x(self) -> np.ndarray:
        """The inputs (n, dim); raises `ValueError` if they are missing or damaged."""
        inputs = self._read(INPUTS, "0", "0", (self.n, self.dim), np.dtype(np.float64))
        if hash_array(inputs) != self._about.data:
            raise self._complaint(INPUTS, "damaged")
        return inputs

    def blocks(self) -> list[tuple[int, int]]:
        """All blocks of the lower half, row by row."""
        return [(i, j) for i in range(self._about.side()) for j in range(i + 1)]

    def rows(self, i: int) -> slice:
        """The rows of the matrix in blocks (`i`, ...)."""
        return slice(i * self.block, min((i + 1) * self.block, self.n))

    def has(self, i: int, j: int) -> bool:
        """Whether the file of block (`i`, `j`) exists."""
        return self._file(i, j).is_file()

    def _file(self, i: int, j: int) -> Path:
        return self.path / MATRIX / "c" / str(i) / str(j)

    def read(self, i: int, j: int) -> np.ndarray:
        """Block (`i`, `j`); raises `ValueError` if it is missing or a checksum is wrong."""
        whole = self._read(MATRIX, str(i), str(j), (self.block, self.block), self.dtype)
        return whole[: self.rows(i).stop - self.rows(i).start, : self.rows(j).stop - self.rows(j).start]

    def _read(self, name: str, i: str, j: str, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
        place = f"{name} {i} {j}"
        try:
            return read_block(self.path / name / "c" / i / j, shape, dtype, self.seal, place)
        except Unsound as error:
            raise self._complaint(place, str(error)) from None

    def _complaint(self, place: str, what: str) -> ValueError:
        word, *at = place.split()
        thing = f"block {at[0]}, {at[1]} is" if word == MATRIX else "the inputs `x` are"
        return ValueError(
            f"{self.path}: {thing} {what}: run `nearkernel kernel build` again, which repairs it."
        )

    def write(self, i: int, j: int, block: np.ndarray) -> None:
        """Store `block` as block (`i`, `j`)."""
        if not self._writable:
            raise ValueError(f"{self.path} was opened for reading only: use open_store(path, writable=True).")
        full = np.ascontiguousarray(block, self.dtype)
        if full.shape != (self.block, self.block):  # at the edge: Zarr's chunks are of one size
            full = np.full((self.block, self.block), np.nan, self.dtype)
            full[: block.shape[0], : block.shape[1]] = block
        write_block(self._file(i, j), full, self.seal, f"{MATRIX} {i} {j}")

    def write_inputs(self, x: np.ndarray) -> None:
        """Store the inputs `x`."""
        file = self.path / INPUTS / "c" / "0" / "0"
        write_block(file, np.ascontiguousarray(x, np.float64), self.seal, f"{INPUTS} 0 0", sync=True)

    def is_sound(self, i: int, j: int) -> bool:
        """Whether block (`i`, `j`) exists, is finite and has the right checksums."""
        with contextlib.suppress(ValueError):
            return bool(np.isfinite(self.read(i, j)).all())
        return False

    def unsound(self) -> Iterator[tuple[int, int, bool]]:
        """(i, j, whether it exists) for every block that is missing or damaged."""
        for i, j in self.blocks():
            if not self.is_sound(i, j):
                yield i, j, self.has(i, j)

    def inputs_state(self) -> str:
        """ "sound", "missing" or "damaged"."""
        with contextlib.suppress(ValueError):
            return "sound" if len(self.x) else ""
        return "damaged" if (self.path / INPUTS / "c" / "0" / "0").exists() else "missing"

    def stored_bytes(self) -> int:
        """The size on disk of a complete store."""
        return len(self.blocks()) * self.block**2 * self.dtype.itemsize

    def drop_leftovers(self) -> None:
        """Deletes files that a killed process left half-written."""
        for name in (MATRIX, INPUTS):
            for file in (self.path / name).rglob(".*.unfinished"):
                file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """A lock: only one process at a time builds a store. The lock is released when the process ends."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            yield
            return
        with open(self.path / "zarr.json", "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OSError(
                    f"{self.path} is being built by another process: wait for it, or use another path."
                ) from None
            except OSError:
                pass  # a file system without locks
            yield

    def require(
        self, kernel: AbstractKernel | None, x: np.ndarray | None, *, same_version: bool = False
    ) -> None:
        """Raises `ValueError` unless the store has this `kernel`, inputs `x` and, with `same_version`, version."""
        if kernel is not None and (asked := describe(kernel)) != self.kernel:
            python = f" Python {self._about.python} made it, and functions compiled by another Python differ."
            raise ValueError(
                f"{self.path} holds another kernel: {_around(self.kernel, asked)}; requested "
                f"{_around(asked, self.kernel)}. Use another path."
                + python
                * (self._about.python != _python())
            )
        if x is not None and hash_array(x) != self._about.data:
            sizes = f" ({self.n} rows of {self.dim}; got {len(x)} of {x.shape[1]})"
            other = "other data" + sizes * (x.shape != (self.n, self.dim))
            raise ValueError(f"{self.path} was made from {other}. Use another path.")
        if same_version and self.version != _version():
            raise ValueError(
                f"{self.path} was begun by nearkernel {self.version}, but this is {_version()}: "
                "finish it with that version, or use another path."
            )


def _version() -> str:
    from .. import __version__

    return __version__


def _python() -> str:
    return "{}.{}".format(*sys.version_info)


def _around(text: str, other: str, most: int = 300) -> str:
    """Of a long description the part where it differs from the other."""
    if len(text) <= most:
        return text
    same = next((at for at, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), len(other))
    begin = max(0, same - most // 3)
    return "..." * bool(begin) + text[begin : begin + most] + "..." * (begin + most < len(text))


def open_store(path: "str | Path", *, writable: bool = False) -> KernelStore:
    """Opens the kernel matrix at `path`, written by `nk.scale.build` or `nearkernel kernel build`, complete or not.

    **Arguments:** `writable`, whether blocks may be written to it.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: make it with `nearkernel kernel build`.")
    return KernelStore(path, read_about(path), writable)


def create_store(
    path: Path, kernel: AbstractKernel, x: np.ndarray, block: int, dtype: np.dtype, settings: dict | None
) -> KernelStore:
    """An empty store, made beside `path` and then renamed: it is there with all it needs, or not at all."""
    try:
        settings = json.loads(json.dumps(settings, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"`settings` must be numbers, strings, lists or dicts of these: {error}.") from None
    about = About(
        FORMAT,
        _version(),
        _python(),
        describe(kernel),
        hash_array(x),
        len(x),
        x.shape[1],
        block,
        dtype.name,
        settings,
    )
    if about.count() > MOST_BLOCKS:
        raise ValueError(
            f"`block` of {block} rows cuts {len(x)} points into {about.count()} blocks, more than {MOST_BLOCKS}: use "
            "larger blocks, or more `memory`."
        )
    require_disk(path, about.count() * block**2 * dtype.itemsize + x.nbytes)
    sweep(path.absolute().parent, path.name)
    new = unfinished(path)
    try:
        _write_layout(new, about)
        KernelStore(new, about, True).write_inputs(x)
        os.rename(new, path)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise OSError(f"no space left for {path}: make space and run this again.") from None
        if not path.exists():
            raise
        # Else another process was first, and what it made is looked at as any other store is.
    finally:
        remove(new)
    return open_store(path, writable=True)


def _write_layout(path: Path, about: About) -> None:
    with needing("a kernel matrix on disk"):
        import zarr  # a third of a second: only for those who ask
        from zarr.codecs import BytesCodec, Crc32cCodec

    group = zarr.create_group(str(path), zarr_format=3, attributes=about.attributes())
    for name, (shape, chunk, dtype) in arrays(about).items():
        group.create_array(
            name, shape=shape, dtype=dtype, chunks=chunk, shards=chunk, fill_value=np.nan, filters=(),
            serializer=BytesCodec(), compressors=(Crc32cCodec(),),
        )  # fmt: skip


def require_disk(path: Path, needed: int) -> None:
    """Refuse before writing what the disk cannot hold."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"{path} needs {human_bytes(needed)} on disk, but {human_bytes(free)} are free: make space, use fewer "
            "points, or float32."
        )
