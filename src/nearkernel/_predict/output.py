"""Files appear together and whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


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


def write_together(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write each text of `files` under its name in `folder`, replacing older ones only once all are on disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Inside the folder, so that each move stays on one file system and is atomic.
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=folder) as unfinished:
            for name, content in files.items():
                data = content.encode("utf-8") if isinstance(content, str) else content
                Path(unfinished, name).write_bytes(data)
            for name in files:
                os.replace(Path(unfinished, name), folder / name)
    except OSError as error:
        raise ValueError(f"--out {folder}: could not write there ({error.strerror}).") from error
