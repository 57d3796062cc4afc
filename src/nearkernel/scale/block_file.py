"""One block of a matrix as one file: its numbers, and checksums that know the place where it belongs.

    numbers | crc32c of the numbers | crc32c of (seal of the matrix, place, that crc32c) | offset, size | crc32c of both

That is a shard of Zarr (version 3) with one chunk: Zarr's readers find the numbers by offset and size at the end, and
leave the second checksum alone. By it a block that stands in another's place, or comes from another matrix, is found.
"""

import os
import struct
from pathlib import Path

import numpy as np

from .._base.extra import needing
from .._base.files import write_whole

_TAIL = struct.Struct("<IIQQI")


class Unsound(Exception):
    """A block that is "missing" or "damaged"."""


def _tail(numbers: np.ndarray, seal: str, place: str) -> bytes:
    with needing("a kernel matrix on disk"):
        import google_crc32c

    flat = numbers.reshape(-1)
    flat.flags.writeable = False  # of this view: the checksum takes nothing else
    check = google_crc32c.value(flat)
    mark = google_crc32c.value(f"{seal} {place} {check}".encode())
    size = numbers.nbytes + 4
    return _TAIL.pack(check, mark, 0, size, google_crc32c.value(struct.pack("<QQ", 0, size)))


def write_block(path: Path, numbers: np.ndarray, seal: str, place: str, sync: bool = False) -> None:
    """`numbers` contiguous, in little-endian order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tail = _tail(numbers, seal, place)
    write_whole(path, numbers.data, tail, sync=sync)


def read_block(path: Path, shape: tuple[int, int], dtype: np.dtype, seal: str, place: str) -> np.ndarray:
    """The numbers, every byte of the file checked; raises `Unsound`."""
    try:
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != shape[0] * shape[1] * dtype.itemsize + _TAIL.size:
                raise Unsound("damaged")  # before memory is taken for it
            numbers = np.empty(shape, dtype)
            room = numbers.reshape(-1).view(np.uint8).data
            while room and (count := file.readinto(room)):
                room = room[count:]
            if room or file.read(_TAIL.size) != _tail(numbers, seal, place):
                raise Unsound("damaged")
    except (FileNotFoundError, NotADirectoryError):
        raise Unsound("missing") from None
    except OSError:
        raise Unsound("damaged") from None  # a folder in its place, a sector that cannot be read
    return numbers
