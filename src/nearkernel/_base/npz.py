"""Arrays of an .npz file, by their names."""

import contextlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from .._run.memory import require_fits
from .files import missing


def npz_arrays(
    path: Path, label: str, needed: Mapping[str, str], optional: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """The `needed` arrays (name -> what to say before a complaint), and of the `optional` ones those that are there."""
    if not path.is_file():  # opening a pipe would wait for ever
        raise ValueError(missing(path))
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{label} is not an .npz archive: write it with numpy.savez.")
    with open(path, "rb") as file:
        with _readable(label):
            with zipfile.ZipFile(file) as archive:
                sizes = {each.filename.removesuffix(".npy"): each.file_size for each in archive.infolist()}
        for name, before in needed.items():
            if name not in sizes:
                there = ", ".join(map(repr, sizes)) or "none"
                raise ValueError(f"{before}{label} has no array {name!r}; it has {there}.")
        chosen = [*needed, *(name for name in optional if name in sizes)]
        require_fits(sum(sizes[name] for name in chosen), label, "use fewer rows, or float32")
        file.seek(0)
        with _readable(label), np.load(file, allow_pickle=False) as arrays:
            entries = {name: arrays[name] for name in chosen}
    for name, array in entries.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name!r} of {label} is not an array: write it with numpy.savez.")
    return entries


@contextlib.contextmanager
def _readable(label: str) -> Iterator[None]:
    """One line for what a damaged archive raises, which is nearly anything."""
    try:
        yield
    except Exception as error:
        if "Object arrays" in str(error):
            raise ValueError(
                f"{label} holds Python objects: save plain numbers, e.g. x.astype(float)."
            ) from error
        raise ValueError(f"{label} is damaged ({_one_line(error)}): copy or write it again.") from error


def _one_line(error: Exception) -> str:
    if "pickled" in str(error):
        return "its content is not in NumPy's format"
    return (" ".join(str(error).split()) or type(error).__name__)[:120].rstrip(".")
