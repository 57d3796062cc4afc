"""Arrays of an .npz file, by their names."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np


def npz_arrays(
    path: Path, label: str, needed: Mapping[str, str], optional: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """The `needed` arrays (name -> what to say before a complaint), and of the `optional` ones those that are there."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{label} is no npz archive: write it with numpy.savez.")
    with np.load(path, allow_pickle=False) as arrays:
        for name, before in needed.items():
            if name not in arrays:
                there = ", ".join(map(repr, arrays)) or "none"
                raise ValueError(f"{before}{label} has no array {name!r}; it has {there}.")
        try:
            return {name: arrays[name] for name in (*needed, *(n for n in optional if n in arrays))}
        except ValueError as error:
            raise ValueError(
                f"{label} holds Python objects: save plain numbers, e.g. x.astype(float)."
            ) from error
