"""A kernel matrix on disk: square blocks of its lower half in a Zarr store, each with its checksum.

A block is written to a file of its own and then renamed, so it is whole or not there, whatever happens. What the matrix
was made of stands in the attributes; the inputs are kept beside it.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._memory import human_bytes
from ..kernels import AbstractKernel
from ._fingerprint import describe, hash_array

FORMAT = 1
MATRIX = "matrix"
COPIES = 5  # of a block in memory while it is computed or read, checked and moved


class KernelStore:
    """A symmetric matrix (n, n) in blocks on disk, whole or in the making.

    **Fields:** `path`; `n`, `dim` of the inputs, `block` rows of a block, `dtype`; `kernel`, a description; `version`
    of nearkernel that made it; `settings`, from which the command line makes the kernel again; `x`, the inputs.
    """

    def __init__(self, path: Path, group: Any):
        self.path = path
        self._array = group[MATRIX]
        self._inputs = group["x"]
        about = dict(group.attrs)
        self.kernel, self.version, self.settings = about["kernel"], about["version"], about["settings"]
        self.data_hash, self.block = about["data"], int(about["block"])
        self.n, self.dim = self._inputs.shape
        self.dtype = np.dtype(self._array.dtype)

    @property
    def x(self) -> np.ndarray:
        return np.asarray(self._inputs[...])

    def blocks(self) -> list[tuple[int, int]]:
        """All blocks of the lower half, row by row."""
        count = -(-self.n // self.block)
        return [(i, j) for i in range(count) for j in range(i + 1)]

    def rows(self, i: int) -> slice:
        return slice(i * self.block, min((i + 1) * self.block, self.n))

    def has(self, i: int, j: int) -> bool:
        return self._file(i, j).exists()

    def _file(self, i: int, j: int) -> Path:
        return self.path / MATRIX / "c" / str(i) / str(j)

    def read(self, i: int, j: int) -> np.ndarray:
        """A block; ValueError if it is not there or its checksum is wrong."""
        if not self.has(i, j):
            raise ValueError(f"{self.path}: block {i}, {j} is missing: run `nearkernel kernel build` again.")
        try:
            return np.asarray(self._array[self.rows(i), self.rows(j)])
        except Exception:  # a wrong checksum, a file cut short: each codec has its own complaint
            raise ValueError(
                f"{self.path}: block {i}, {j} is damaged: run `nearkernel kernel build` again, which mends it."
            ) from None

    def write(self, i: int, j: int, block: np.ndarray) -> None:
        self._array[self.rows(i), self.rows(j)] = block

    def is_sound(self, i: int, j: int) -> bool:
        """Whether the block is there, with the right checksum and finite."""
        with contextlib.suppress(ValueError):
            return bool(np.isfinite(self.read(i, j)).all())
        return False

    def unsound(self) -> Iterator[tuple[int, int, bool]]:
        """(i, j, whether it is there) of every block that is missing or damaged."""
        for i, j in self.blocks():
            if not self.is_sound(i, j):
                yield i, j, self.has(i, j)

    def stored_bytes(self) -> int:
        """What a whole store takes on disk."""
        return len(self.blocks()) * self.block**2 * self.dtype.itemsize

    def drop_leftovers(self) -> None:
        """Files that a killed process left half-written."""
        for file in (self.path / MATRIX).rglob("*.partial"):
            file.unlink(missing_ok=True)

    def require(
        self, kernel: AbstractKernel | None, x: np.ndarray | None, *, same_version: bool = False
    ) -> None:
        """Refuse another kernel, other inputs or another version, and say which."""
        if kernel is not None and (asked := describe(kernel)) != self.kernel:
            raise ValueError(
                f"{self.path} holds another kernel: {_short(self.kernel)}; asked for {_short(asked)}. Use another path."
            )
        if x is not None and hash_array(x) != self.data_hash:
            sizes = f" ({self.n} rows of {self.dim}; got {len(x)} of {x.shape[1]})"
            other = "other data" + sizes * (x.shape != (self.n, self.dim))
            raise ValueError(f"{self.path} was made from {other}. Use another path.")
        if same_version and self.version != _version():
            raise ValueError(
                f"{self.path} was begun by nearkernel {self.version}, this is {_version()}: "
                "finish it there, or use another path."
            )


def _version() -> str:
    from .. import __version__

    return __version__


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:297]}..."


def open_store(path: "str | Path", *, writable: bool = False) -> KernelStore:
    """The kernel matrix at `path`, written by `nk.scale.build` or `nearkernel kernel build`; whole or not.

    **Arguments:** `writable`, whether blocks may be written to it.
    """
    import zarr  # a third of a second: only for those who ask

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: make it with `nearkernel kernel build`.")
    try:
        group = zarr.open_group(str(path), mode="r+" if writable else "r")
        about = dict(group.attrs)
        if about.get("format") is None:
            raise KeyError
        if about["format"] != FORMAT:
            raise ValueError(f"{path} has format {about['format']}, this nearkernel reads {FORMAT}.")
        return KernelStore(path, group)
    except (KeyError, FileNotFoundError, FileExistsError, NotADirectoryError):
        raise ValueError(f"{path} is not a kernel matrix of nearkernel.") from None


def create_store(
    path: Path, kernel: AbstractKernel, x: np.ndarray, block: int, dtype: np.dtype, settings: dict | None
) -> KernelStore:
    """An empty store, made beside `path` and then renamed: it is there with all it needs, or not at all."""
    import zarr
    from zarr.codecs import BytesCodec, Crc32cCodec

    count = -(-len(x) // block)
    require_disk(path, count * (count + 1) // 2 * block**2 * dtype.itemsize + x.nbytes)
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.new")
    try:
        group = zarr.create_group(str(new))
        checked: dict[str, Any] = {"serializer": BytesCodec(), "compressors": (Crc32cCodec(),)}
        inputs = group.create_array("x", shape=x.shape, dtype=x.dtype, chunks=x.shape, **checked)
        inputs[...] = x
        group.create_array(
            MATRIX, shape=(len(x), len(x)), dtype=dtype, chunks=(block, block), fill_value=np.nan, **checked
        )
        group.attrs.update(
            {"format": FORMAT, "version": _version(), "kernel": describe(kernel), "data": hash_array(x),
             "block": block, "settings": settings}
        )  # fmt: skip
        os.replace(new, path)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return open_store(path, writable=True)


def require_disk(path: Path, needed: int) -> None:
    """Refuse before writing what the disk cannot hold."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"{path} needs {human_bytes(needed)} on disk, {human_bytes(free)} are free: free some, use fewer points, "
            "or float32."
        )
