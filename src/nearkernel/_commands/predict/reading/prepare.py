"""Rows to train on and rows to test with, in the units a network likes; and the way back."""

from __future__ import annotations

import dataclasses

import numpy as np

from ....estimators.tables.columns import Remark
from ....estimators.tables.prepare import PrepareTable
from .data import MIN_ROWS, LabeledData


@dataclasses.dataclass(frozen=True)
class Split:
    """Standardized training rows, standardized test inputs, and the true answers of the test rows.

    Target = center + scale * y. A classification is one-hot, so y has one column per class; a regression has one.
    """

    x: np.ndarray  # (n, d)
    y: np.ndarray  # (n, out), mean 0 and mean square 1 over all entries
    x_new: np.ndarray  # (m, d)
    truth: np.ndarray  # (m,) real values, or class indices
    rows: np.ndarray  # (m,) where the test rows stand in the data
    center: np.ndarray  # (out,)
    scale: float
    input_scaling: str
    notes: tuple[str, ...]
    trained: np.ndarray = dataclasses.field(
        default_factory=lambda: np.zeros(0, int)
    )  # (n,) where those rows stand
    preparation: PrepareTable | None = None  # of the columns, fitted on the training rows; None for images
    remarks: tuple[Remark, ...] = ()  # of the training rows

    def mean_in_target_units(self, mean: np.ndarray) -> np.ndarray:
        """(m, out) predictions of y as predictions of the target."""
        return self.center + self.scale * mean


def split(data: LabeledData, test_fraction: float, max_train: int, seed: int) -> Split:
    """Shuffle, keep at most `max_train` training rows (and as many test rows as belong to them), standardize."""
    total = len(data.x)
    kept = min(total, int(max_train / (1 - test_fraction)))
    tests = round(kept * test_fraction)
    if tests < 1 or kept - tests < 2:
        option = f"--max-train {max_train}" if kept < total else f"--test-fraction {test_fraction}"
        raise ValueError(
            f"{option} leaves {kept - tests} training and {tests} test rows of {total}; "
            f"at least 2 and 1 are needed ({MIN_ROWS} rows in all)."
        )
    train, test = shuffled(data, kept, tests, seed)
    notes = (
        []
        if kept == total
        else [f"kept {kept - tests} training and {tests} test rows of {total} (--max-train)"]
    )

    if data.frame is None:
        return _prepared(data, train, test, notes)
    preparation = PrepareTable().fit({name: column.taken(train) for name, column in data.frame.items()})
    if not preparation.columns_:
        raise ValueError(
            f"{data.name}: every feature is constant in the {len(train)} training rows; use more rows."
        )
    features = tuple(preparation.get_feature_names_out())
    data = dataclasses.replace(data, x=preparation.transform(data.frame), features=features)
    found = _prepared(data, train, test, notes)
    return dataclasses.replace(found, preparation=preparation, remarks=tuple(preparation.remarks_))


def all_rows(data: LabeledData, most: int, seed: int) -> Split:
    """At most `most` rows, all to train on, standardized."""
    kept = min(len(data.x), most)
    rows = np.sort(np.random.default_rng(seed).permutation(len(data.x))[:kept])
    notes = [] if kept == len(data.x) else [f"kept {kept} of {len(data.x)} rows (--max-rows)"]
    return _prepared(data, rows, rows[:0], notes)


def few(found: Split, most: int, seed: int) -> Split:
    """The same with at most `most` training rows."""
    if len(found.x) <= most:
        return found
    kept = np.sort(np.random.default_rng(seed).permutation(len(found.x))[:most])
    return dataclasses.replace(found, x=found.x[kept], y=found.y[kept])


def _prepared(data: LabeledData, train: np.ndarray, test: np.ndarray, notes: list[str]) -> Split:
    constant = np.ptp(data.x[train], axis=0) == 0
    if constant.all():
        raise ValueError(
            f"{data.name}: every feature is constant in the {len(train)} training rows; use more rows."
        )
    if constant.any():
        notes.append(f"{constant.sum()} of {len(constant)} features are constant in the training rows")
    spread = _spread(data.x[train])
    for i in np.flatnonzero(~constant):
        _check_size(spread[i], f"feature {data.features[i]!r}")
    x, x_new, scaling = _standardized(data, train, test, np.where(constant, 1.0, spread))

    y = data.y[:, None] == np.arange(len(data.classes)) if data.classes else data.y[:, None]
    center = y[train].mean(axis=0)
    if np.ptp(data.y[train]) == 0:
        raise ValueError(
            f"target {data.target!r} is the same in all {len(train)} training rows; use more rows."
        )
    scale = float(np.sqrt(np.mean(_spread(y[train]) ** 2)))
    _check_size(scale, f"target {data.target!r}")
    return Split(
        x, (y[train] - center) / scale, x_new, data.y[test], test, center, scale, scaling, tuple(notes), train
    )


def shuffled(data: LabeledData, kept: int, tests: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of training and test rows; each class keeps its share in both where the rows allow."""
    order = np.random.default_rng(seed).permutation(len(data.x))[:kept]
    if data.classes:
        # Deal the shuffled rows class by class, then take every (kept / tests)-th: shares agree within one row.
        order = order[np.argsort(data.y[order], kind="stable")]
        position = (np.arange(tests) + 0.5) * kept / tests
        chosen = position.astype(int)
    else:
        chosen = np.arange(tests)
    is_test = np.zeros(kept, dtype=bool)
    is_test[chosen] = True
    return np.sort(order[~is_test]), np.sort(order[is_test])


def _spread(columns: np.ndarray) -> np.ndarray:
    """Standard deviation of each column; overflow is caught by `_check_size`."""
    with np.errstate(over="ignore"):
        return columns.std(axis=0)


def _check_size(spread: float, what: str) -> None:
    """Squares must neither overflow nor vanish."""
    if not 1e-100 < spread < 1e100:
        raise ValueError(f"{what} varies by {spread:.3g}, too far from 1 for its square: rescale it.")


def _standardized(
    data: LabeledData, train: np.ndarray, test: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, str]:
    """Inputs with training mean 0 and training variance 1, so that |x|^2 is about the number of features."""
    center = data.x[train].mean(axis=0)
    if (
        data.image_shape
    ):  # pixels share a unit: dividing each by its own spread would blow up the dark corners
        scale: np.ndarray | float = float(np.sqrt(np.mean(_spread(data.x[train]) ** 2)))
        scaling = "mean of each pixel, one standard deviation for all (training rows)"
    else:
        scale = spread
        scaling = "mean and standard deviation of each feature (training rows)"
    return (data.x[train] - center) / scale, (data.x[test] - center) / scale, scaling
