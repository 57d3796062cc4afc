"""What to learn from: an embedded data set or a file, as numbers, with the task it poses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._check import nearest
from .._npz import npz_arrays
from .tables import read_table

EMBEDDED = ("digits", "diabetes", "breast_cancer", "wine", "iris")
TASKS = ("auto", "regression", "classification")
SUFFIXES = (".csv", ".npz", ".parquet")
AUTO_CLASSES = 20  # whole numbers of at most so many distinct values are taken for class labels
MIN_ROWS = 4  # two to train on and two to test


@dataclasses.dataclass(frozen=True)
class Data:
    """Inputs x (n, d) and targets y (n,): real values, or indices into `classes` for a classification."""

    name: str
    x: np.ndarray
    y: np.ndarray
    features: tuple[str, ...]
    target: str
    classes: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        return "classification" if self.classes else "regression"


def load(source: str, target: str | None = None, task: str = "auto", drop: Sequence[str] = ()) -> Data:
    """The data set called `source`, or the file at that path."""
    path = Path(source)
    if source in EMBEDDED:
        if target is not None or drop:
            option = f"--target {target}" if target is not None else f"--drop {drop[0]}"
            raise ValueError(f"{option} is for files; {source} is embedded and brings its own target.")
        return _embedded(source, task)
    if path.suffix.lower() not in SUFFIXES:
        what = f"{source!r} is no known file type" if path.exists() else f"no data set {source!r}"
        raise ValueError(
            f"{what}: give one of {', '.join(EMBEDDED)} or a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file."
            + nearest(source, EMBEDDED)
        )
    if not path.is_file():
        raise ValueError(f"{source} is a folder." if path.is_dir() else f"{source}: no such file.")
    if path.suffix.lower() == ".npz":
        return _from_npz(path, target, task, drop)
    if target is None:
        raise ValueError(f"{source} needs --target COLUMN, the column to predict.")
    table = read_table(path, target, drop)
    _check_inputs(table.x, path.name)
    y, classes = _read_target(table.target, task, f"column {target!r} of {path.name}")
    return Data(path.name, table.x, y, table.features, target, classes, notes=table.notes)


def _embedded(name: str, task: str) -> Data:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    if name == "diabetes":
        y, classes = _read_target(bunch.target, task, "the target of diabetes")
        return Data(name, bunch.data, y, tuple(bunch.feature_names), "disease progression", classes)
    labels = np.array([str(label) for label in bunch.target_names])
    if task == "regression" and name != "digits":
        raise ValueError(
            f"--task regression: the classes of {name} are names ({', '.join(labels)}), not quantities."
        )
    y, classes = _read_target(bunch.target, task, f"the target of {name}")
    return Data(
        name,
        bunch.data,
        y,
        tuple(str(feature) for feature in bunch.feature_names),
        "digit" if name == "digits" else "class",
        tuple(labels) if classes else (),
        image_shape=(8, 8) if name == "digits" else None,
    )


def _from_npz(path: Path, target: str | None, task: str, drop: Sequence[str]) -> Data:
    """Arrays `x` (n, d), or images (n, h, w), and `y` (n,)."""
    if drop:
        raise ValueError(f"--drop {drop[0]} is for tables; {path.name} holds arrays.")
    target = target or "y"
    arrays = npz_arrays(path, path.name, {"x": "", target: f"--target {target}: "})
    x, y = arrays["x"], arrays[target]
    if x.ndim < 2 or x.dtype.kind not in "biuf" or 0 in x.shape:
        raise ValueError(
            f"array 'x' of {path.name} must hold numbers (n, d), or images (n, height, width) or "
            f"(n, height, width, channels); got {x.dtype} {x.shape}."
        )
    if y.shape not in ((len(x),), (len(x), 1)):
        raise ValueError(
            f"array {target!r} of {path.name} must have shape ({len(x)},) as 'x' has; got {y.shape}."
        )
    image_shape = x.shape[1:] if x.ndim in (3, 4) else None
    x = x.reshape(len(x), -1).astype(np.float64)
    for name, array in (("x", x), (target, y)):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            count = int((~np.isfinite(array)).sum())
            raise ValueError(
                f"array {name!r} of {path.name} has {count} NaN or infinite values: remove or fill them."
            )
    _check_inputs(x, path.name)
    y, classes = _read_target(y.ravel(), task, f"array {target!r} of {path.name}")
    features = tuple(f"x{i}" for i in range(x.shape[1]))
    return Data(path.name, x, y, features, target, classes, image_shape)


def _read_target(values: np.ndarray, task: str, what: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Targets (n,) and, for a classification, the names of the classes they index."""
    if values.dtype.kind not in "biufU":
        raise ValueError(f"{what} holds {values.dtype}: neither numbers nor labels.")
    numbers = values.dtype.kind in "iuf"
    distinct = np.unique(values)
    if task == "auto":
        labels = not numbers or (
            len(distinct) <= AUTO_CLASSES and bool(np.all(distinct == np.rint(distinct)))
        )
        task = "classification" if labels else "regression"
    if task == "regression":
        if values.dtype.kind == "U":
            raise ValueError(f"--task regression: {what} holds text such as {str(values[0])!r}, not numbers.")
        if len(distinct) < 2:
            raise ValueError(f"{what} is always {distinct[0]}: there is nothing to predict.")
        return values.astype(np.float64), ()
    if len(distinct) < 2:
        raise ValueError(f"{what} has one class only, {str(distinct[0])!r}: there is nothing to tell apart.")
    if len(distinct) > len(values) // 2:
        hint = "use --task regression" if numbers else "choose another --target"
        raise ValueError(
            f"{what} has {len(distinct)} distinct values in {len(values)} rows, too many classes: {hint}."
        )
    if numbers and np.all(distinct == np.rint(distinct)):
        distinct, values = (
            distinct.astype(np.int64),
            values.astype(np.int64),
        )  # labels 0 and 1, not 0.0 and 1.0
    return np.searchsorted(distinct, values), tuple(str(label) for label in distinct)


def _check_inputs(x: np.ndarray, name: str) -> None:
    if len(x) < MIN_ROWS:
        raise ValueError(f"{name} has {len(x)} row{'s' * (len(x) > 1)}: at least {MIN_ROWS} are needed.")
    if np.all(x == x[0]):
        raise ValueError(f"{name}: every feature is constant, so there is nothing to predict from.")
