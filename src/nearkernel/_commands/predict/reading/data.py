"""What to learn from: an embedded data set or a file, as columns and as numbers, with the task it poses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...._base.npz import npz_arrays
from ....estimators.tables.columns import Remark
from ....estimators.tables.frames import Frame
from ....estimators.tables.prepare import PrepareTable
from ....estimators.tables.reading import Column, Reading
from .kept import as_written, ids
from .sources import EMBEDDED as EMBEDDED
from .sources import check_source
from .tables import listed, read_table, with_target

TASKS = ("auto", "regression", "classification")
AUTO_CLASSES = 20  # whole numbers of at most so many distinct values are taken for class labels
MIN_ROWS = 4  # two to train on and two to test


@dataclasses.dataclass(frozen=True)
class LabeledData:
    """Inputs x (n, d) and targets y (n,): real values, or indices into `classes` for a classification.

    `frame` has the columns as they were read, None for images; x is what `PrepareTable` makes of all rows.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    features: tuple[str, ...]
    target: str
    classes: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None
    frame: Frame | None = None
    remarks: tuple[Remark, ...] = ()
    reading: Reading | None = None  # of the target, where it is a column of a table
    numbers: np.ndarray | None = None  # (n,) of rows, as a spreadsheet counts; None where none shows them
    ids: tuple[str, ...] = ()  # columns of the file that name its rows; they are left out

    @property
    def task(self) -> str:
        return "classification" if self.classes else "regression"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should be told."""
        return in_words(self.remarks)

    def troubles(self) -> list[Remark]:
        return [remark for remark in self.remarks if remark.trouble]


def in_words(remarks: Sequence[Remark]) -> tuple[str, ...]:
    """Grouped by what was done."""
    groups: dict[str, list[str]] = {}
    for remark in remarks:
        groups.setdefault(remark.done, []).append(f"{remark.column} ({remark.found})")
    return tuple(f"{done}: {listed(columns, quote=False)}" for done, columns in groups.items())


def load(
    source: str,
    target: str | None = None,
    task: str = "auto",
    drop: Sequence[str] = (),
    strict: bool = False,
    other_targets: Sequence[str] = (),
) -> LabeledData:
    """The data set called `source`, or the file at that path; `strict` raises if anything would have to be repaired.

    `other_targets` are predicted as well and are not used as features.
    """
    check_source(source)
    path = Path(source)
    if source in EMBEDDED:
        if target is not None or drop:
            option = f"--target {target}" if target is not None else f"--drop {drop[0]}"
            raise ValueError(f"{option} is for files; {source} is a built-in data set with a fixed target.")
        return _embedded(source, task)
    found = (
        _from_npz(path, target, task, drop)
        if path.suffix.lower() == ".npz"
        else _from_table(path, target, task, drop, other_targets)
    )
    troubles = found.troubles()
    if strict and troubles:
        count = f"{len(troubles)} problem{'s' * (len(troubles) > 1)}"
        raise ValueError(f"--strict: {path.name} has {count}: {'; '.join(map(str, troubles))}.")
    return found


def _from_table(
    path: Path, target: str | None, task: str, drop: Sequence[str], other_targets: Sequence[str]
) -> LabeledData:
    if target is None:
        raise ValueError(f"{path} needs --target COLUMN, the column to predict.")
    table, places = with_target(read_table(path, target, drop, other_targets), target)
    assert table.target is not None
    if not len(table.target.values):
        raise ValueError(f"column {target!r} of {path.name} is empty: give a column that has values.")
    _check_rows(len(table.target.values), path.name)
    y, classes = _read_target(_plain(table.target), task, f"column {target!r} of {path.name}")
    found = _prepared(path.name, table.frame, y, target, classes, table.remarks)
    named = ids(table.frame, list(found.frame or ()))
    numbers = as_written(path).rows
    return dataclasses.replace(found, numbers=numbers[places], ids=tuple(named), reading=table.target.reading)


def _prepared(
    name: str, frame: Frame, y: np.ndarray, target: str, classes: tuple[str, ...], remarks: Sequence[Remark]
) -> LabeledData:
    _check_rows(len(y), name)
    preparation = PrepareTable().fit(frame)
    if not preparation.columns_:
        why = "; ".join(map(str, preparation.remarks_[:-1][:5]))
        raise ValueError(f"{name}: no column is left to predict from ({why}).")
    x, features = preparation.transform(frame), tuple(preparation.get_feature_names_out())
    frame = {plan.name: frame[plan.name] for plan in preparation.columns_}  # what is left out stays out
    return LabeledData(name, x, y, features, target, classes, None, frame, (*remarks, *preparation.remarks_))


def _plain(column: Column) -> np.ndarray:
    """A target as a NumPy array of bool, float or str."""
    if column.kind == "flag":
        return column.values.astype(bool)
    if column.kind == "text":
        return column.values.astype(str)
    return column.values if column.kind == "number" else column.values.astype(object)


def _embedded(name: str, task: str) -> LabeledData:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    if name == "diabetes":
        y, classes = _read_target(bunch.target, task, "the target of diabetes")
        frame = _columns(bunch.data, bunch.feature_names)
        names = tuple(bunch.feature_names)
        return LabeledData(name, bunch.data, y, names, "disease progression", classes, frame=frame)
    labels = np.array([str(label) for label in bunch.target_names])
    if task == "regression" and name != "digits":
        raise ValueError(
            f"--task regression: the classes of {name} are names ({', '.join(labels)}), not quantities."
        )
    y, classes = _read_target(bunch.target, task, f"the target of {name}")
    return LabeledData(
        name,
        bunch.data,
        y,
        tuple(str(feature) for feature in bunch.feature_names),
        "digit" if name == "digits" else "class",
        tuple(labels) if classes else (),
        image_shape=(8, 8) if name == "digits" else None,
        frame=None if name == "digits" else _columns(bunch.data, bunch.feature_names),
    )


def _columns(x: np.ndarray, names: Sequence[str]) -> Frame:
    return {str(name): Column("number", values) for name, values in zip(names, x.T, strict=True)}


def _from_npz(path: Path, target: str | None, task: str, drop: Sequence[str]) -> LabeledData:
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
    wrong = (x, "x") if image_shape and not np.isfinite(x).all() else None
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        wrong = (y, target)
    if wrong is not None:
        count = int((~np.isfinite(wrong[0])).sum())
        raise ValueError(
            f"array {wrong[1]!r} of {path.name} has {count} NaN or infinite values: remove or fill them."
        )
    y, classes = _read_target(y.ravel(), task, f"array {target!r} of {path.name}")
    features = tuple(f"x{i}" for i in range(x.shape[1]))
    if image_shape is None:
        finite = np.where(np.isfinite(x), x, np.nan)
        counts = np.isinf(x).sum(axis=0)
        frame = {
            name: Column("number", values, infinite=int(count))
            for name, values, count in zip(features, finite.T, counts, strict=True)
        }
        return _prepared(path.name, frame, y, target, classes, ())
    _check_inputs(x, path.name)
    return LabeledData(path.name, x, y, features, target, classes, image_shape)


def _read_target(values: np.ndarray, task: str, what: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Targets (n,) and, for a classification, the names of the classes they index."""
    if values.dtype.kind not in "biufU":
        held = "dates" if values.dtype.kind == "O" else values.dtype
        raise ValueError(f"{what} holds {held}: neither numbers nor labels.")
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
            raise ValueError(f"{what} is always {_label(distinct[0])}: there is nothing to predict.")
        return values.astype(np.float64), ()
    if len(distinct) < 2:
        raise ValueError(f"{what} has one class only, {_label(distinct[0])!r}: there is nothing to classify.")
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


def _label(value: np.generic) -> str:
    return f"{value:g}" if value.dtype.kind in "iuf" else str(value)


def _check_rows(count: int, name: str) -> None:
    if count < MIN_ROWS:
        raise ValueError(f"{name} has {count} row{'s' * (count != 1)}: at least {MIN_ROWS} are needed.")


def _check_inputs(x: np.ndarray, name: str) -> None:
    _check_rows(len(x), name)
    if np.all(x == x[0]):
        raise ValueError(f"{name}: every feature is constant, so there is nothing to predict from.")
