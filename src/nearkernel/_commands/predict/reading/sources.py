"""Which data a command was given: a name or a path, checked before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path

from ...._base.files import missing
from ...._base.spelling import nearest
from ...completion import DATA_SETS as EMBEDDED

SUFFIXES = (".csv", ".tsv", ".xlsx", ".npz", ".parquet")


def check_source(source: str, embedded: bool = True) -> None:
    """Raises unless `source` is an embedded data set or the path of a file of a known type."""
    path = Path(source)
    if embedded and source in EMBEDDED:
        return
    if path.suffix.lower() not in SUFFIXES:
        what = f"{source!r} is not a known file type" if path.exists() else f"no data set {source!r}"
        names = f"one of {', '.join(EMBEDDED)} or " if embedded else ""
        raise ValueError(
            f"{what}: give {names}a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file."
            + (nearest(source, EMBEDDED) if embedded else "")
        )
    if not path.is_file():
        raise ValueError(missing(path))


def check_save(path: Path | None, option: str = "--save") -> None:
    """Raises where no file could be written."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder: name a file, e.g. {path / 'model.nk'}.")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist.")
