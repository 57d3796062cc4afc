"""Files appear together and whole, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...._base.files import remove, replace_together, sweep, unfinished, write_whole

_ASIDE = "files"


def check_writable(folder: Path, names: tuple[str, ...]) -> None:
    """Refuse before any work is done a folder that could not take the files `names`."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise ValueError(f"--out {folder}: {existing} is a file, not a folder.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"--out {folder}: no permission to write in {existing}.")
    for name in names:
        if (folder / name).is_dir():
            raise ValueError(f"--out {folder}: {folder / name} is a folder, where the file {name} belongs.")


@contextlib.contextmanager
def written_to(option: str, path: Path) -> Iterator[None]:
    """One line that names the option if nothing can be written to `path`."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{option} {path}: could not write there ({error.strerror}).") from error


def write_together(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write each text of `files` under its name in `folder`, replacing older ones only once all are on disk."""
    with written_to("--out", folder):
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder, _ASIDE)
        aside = unfinished(
            folder / _ASIDE
        )  # inside the folder: each move stays on one file system and is atomic
        aside.mkdir()
        try:
            for name, content in files.items():
                # File names that are not UTF-8 may be quoted in a text: "?" stands for what cannot be said.
                data = content.encode("utf-8", "replace") if isinstance(content, str) else content
                write_whole(aside / name, data)
            replace_together((aside / name, folder / name) for name in files)
        finally:
            remove(aside)
