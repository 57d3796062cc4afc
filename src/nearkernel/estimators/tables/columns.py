"""What becomes of one column: decided on the training rows, applied to all others."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import numpy as np

from .reading import Column, Reading

_ID_ROWS = 20  # below, all values may well differ
_MOST_LEVELS = 40
_RARE = 0.005  # share of rows below which a level counts as rare ...
_RARE_ROWS = 2  # ... or so few of them
_DAY = 86400.0
_ID_NAME = re.compile(
    r"(?:^|[_\W])(?i:id|uuid|guid|index|row|key)$|[a-z](?:Id|ID)$|^(?i:id|uuid|guid)(?:$|[_\W])"
)
_TIME_NAME = re.compile(r"year|month|week|day|date|time|hour|age", re.IGNORECASE)
OTHER, ABSENT = "(other)", "(missing)"


@dataclasses.dataclass(frozen=True)
class Remark:
    """What was found in a column and what was done; `trouble` if strictness would refuse it."""

    column: str
    found: str
    done: str
    trouble: bool = True

    def __str__(self) -> str:
        return f"{self.column}: {self.found}, {self.done}"


class _Plan:
    kinds: tuple[str, ...]

    def taking(self, column: Column) -> Column:
        """A column of new rows; missing if it is of another kind."""
        if column.kind in self.kinds:
            return column
        return column.read_as(Reading(self.kinds[0]), lambda: [None] * len(column.values))


@dataclasses.dataclass(frozen=True)
class Number(_Plan):
    """As it is; what is missing becomes `fill`, with a flag beside it if training rows had any missing."""

    kinds = ("number", "flag")

    name: str
    fill: float
    flag: bool

    @property
    def features(self) -> list[str]:
        return [self.name, *([f"{self.name} {ABSENT}"] if self.flag else [])]

    def encoded(self, column: Column) -> np.ndarray:
        gone = np.isnan(column.values)
        parts = [np.where(gone, self.fill, column.values)]
        return np.stack([*parts, *([gone.astype(float)] if self.flag else [])], axis=1)


@dataclasses.dataclass(frozen=True)
class Category(_Plan):
    """One column of 0 and 1 per level; levels never seen count as rare ones, or as none."""

    kinds = ("text",)

    name: str
    levels: tuple[str, ...]

    @property
    def features(self) -> list[str]:
        return [f"{self.name}={level}" for level in self.levels]

    def encoded(self, column: Column) -> np.ndarray:
        place = {level: i for i, level in enumerate(self.levels)}
        fallback = place.get(OTHER, -1)
        index = np.array([place.get(ABSENT if v is None else v, fallback) for v in column.values], dtype=int)
        one_hot = np.zeros((len(index), len(self.levels)))
        known = np.flatnonzero(index >= 0)
        one_hot[known, index[known]] = 1.0
        return one_hot

    def unseen(self, column: Column) -> int:
        """How many values are of a level that was not kept."""
        return sum(v is not None and v not in self.levels for v in column.values)

    @property
    def flag(self) -> bool:
        """Whether training rows had missing values."""
        return ABSENT in self.levels


@dataclasses.dataclass(frozen=True)
class Moment(_Plan):
    """Days since `first`, and the circles of year, week and day that `cycles` names."""

    kinds = ("moment",)

    name: str
    first: float
    fill: float
    flag: bool
    cycles: tuple[str, ...]

    @property
    def features(self) -> list[str]:
        circles = [f"{self.name} {cycle} {part}" for cycle in self.cycles for part in ("sin", "cos")]
        return [f"{self.name} days", *circles, *([f"{self.name} {ABSENT}"] if self.flag else [])]

    def encoded(self, column: Column) -> np.ndarray:
        gone = np.isnan(column.values)
        values = np.where(gone, self.fill, column.values)
        parts = [(values - self.first) / _DAY]
        for cycle in self.cycles:
            angle = 2 * np.pi * _phase(values, cycle)
            parts += [np.sin(angle), np.cos(angle)]
        return np.stack([*parts, *([gone.astype(float)] if self.flag else [])], axis=1)


Plan = Number | Category | Moment


def planned(name: str, column: Column) -> tuple[Plan | None, list[Remark]]:
    """The plan for a column of training rows, None to leave it out, and what is to be said of it."""
    gone, remarks = column.missing, []
    n, count = len(gone), int(gone.sum())
    if column.kind == "other":
        return None, [Remark(name, f"holds {column.type}", "left out")]
    if column.infinite:
        remarks.append(Remark(name, f"{_of(column.infinite, n)} infinite", "taken as missing"))
    if column.unread:
        remarks.append(Remark(name, f"{_of(column.unread, n)} not {column.reading.what}", "taken as missing"))
    if count == n:
        return None, [*remarks, Remark(name, "all values are missing", "left out")]
    if column.kind == "text":
        return _category(name, column, remarks)
    values = column.values[~gone]
    if values.min() == values.max() and count == 0:
        return None, [*remarks, Remark(name, f"always {_shown(column, values[0])}", "left out")]
    if count:
        filled = "the median" if column.kind != "flag" else "the more frequent value"
        remarks.append(Remark(name, f"{_of(count, n)} missing", f"filled with {filled} and flagged"))
    fill = float(np.median(values)) if column.kind != "flag" else float(np.mean(values) > 0.5)
    if column.kind == "moment":
        plan = Moment(name, float(values.min()), fill, bool(count), _cycles(values))
        remarks.append(Remark(name, "dates", f"made {len(plan.features)} columns", trouble=False))
        return plan, remarks
    if column.kind == "number" and _is_id(name, values):
        return None, [*remarks, Remark(name, "a different number in each row, like an id", "left out")]
    return Number(name, fill, bool(count)), remarks


def _category(name: str, column: Column, remarks: list[Remark]) -> tuple[Plan | None, list[Remark]]:
    n = len(column.values)
    counts = Counter(value for value in column.values if value is not None)
    given = sum(counts.values())
    if given >= _ID_ROWS and len(counts) > max(0.5 * given, 20):
        what = f"text such as {next(iter(counts))[:30]!r} ({len(counts)} distinct values)"
        return None, [*remarks, Remark(name, what, "left out")]
    least = max(_RARE_ROWS, _RARE * n)
    common = [level for level, _ in counts.most_common(_MOST_LEVELS)]
    # A value that is called as the column of rare levels belongs to them.
    kept = [v for v in common if v != OTHER and (counts[v] >= least or len(counts) <= 2)]
    kept = kept or [v for v in common if v != OTHER][:1] or common
    rare = len(counts) - len(kept)
    missing = n - given
    levels = (*sorted(kept), *([OTHER] if rare else []), *([ABSENT] if missing else []))
    if len(levels) == 1:
        return None, [*remarks, Remark(name, f"always {levels[0]!r}", "left out")]
    if missing:
        remarks.append(Remark(name, f"{_of(missing, n)} missing", "treated as a separate level"))
    if rare:
        remarks.append(
            Remark(name, f"{rare} rare level{'s' * (rare > 1)}", "merged into one level", trouble=False)
        )
    remarks.append(Remark(name, f"{len(counts)} levels", "one-hot encoded", trouble=False))
    return Category(name, levels), remarks


def _is_id(name: str, values: np.ndarray) -> bool:
    """Integers, all different: nearly row numbers, or of a name that says so."""
    if (
        len(values) < _ID_ROWS
        or not np.all(values == np.rint(values))
        or len(np.unique(values)) < len(values)
    ):
        return False
    if _ID_NAME.search(name):
        return True
    counted = np.all(np.diff(values) > 0) and values[-1] - values[0] < 2 * len(values)
    return bool(counted) and not _TIME_NAME.search(name)


def _cycles(values: np.ndarray) -> tuple[str, ...]:
    span = values.max() - values.min()
    plans = []
    if span > 90 * _DAY:
        plans.append("year")
    if span > 6 * _DAY:
        plans.append("week")
    if np.any(values % _DAY != values[0] % _DAY):
        plans.append("day")
    return tuple(plans)


def _phase(seconds: np.ndarray, cycle: str) -> np.ndarray:
    """Where in its cycle a moment is, from 0 to 1."""
    if cycle == "day":
        return seconds / _DAY % 1.0
    if cycle == "week":
        return (seconds / _DAY + 4.0) / 7.0 % 1.0
    return seconds / (365.2425 * _DAY) % 1.0


def _of(count: int, total: int) -> str:
    return f"{count} of {total} values are"


def _shown(column: Column, value: float) -> str:
    if column.kind == "moment":
        return str(np.datetime64(int(value), "s"))
    return str(bool(value)) if column.kind == "flag" else f"{value:g}"
