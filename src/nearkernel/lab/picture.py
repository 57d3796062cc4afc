"""What an experiment shows: pictures made of curves, numbers and remarks, as plain data for a page, a CSV or a test."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Numbers = Sequence[float] | np.ndarray
KINDS = ("line", "dashes", "thin", "dots", "points", "bars")


@dataclasses.dataclass(frozen=True)
class Curve:
    """y over x, with a `band` (lower, upper) or error bars `sem` around it.

    `kind`: "line", "dashes", "thin" (a pale line, one of many with the same name), "dots" (markers), "points" (markers
    that the user drags) or "bars". `series` chooses the color, 1 to 6, the same in all pictures of a page; 0 is gray.
    The legend lists curves of the same `group` together, and curves of the same name once.
    """

    name: str
    x: Numbers
    y: Numbers
    kind: str = "line"
    series: int = 1
    band: tuple[Numbers, Numbers] | None = None
    sem: Numbers | None = None
    group: str = ""

    def __post_init__(self) -> None:
        assert self.kind in KINDS and len(self.x) == len(self.y), (self.name, self.kind)

    def columns(self) -> dict[str, Numbers]:
        found = {"x": self.x, self.name: self.y}
        if self.band is not None:
            found |= {f"{self.name}, lower": self.band[0], f"{self.name}, upper": self.band[1]}
        if self.sem is not None:
            found[f"{self.name}, standard error"] = self.sem
        return found


@dataclasses.dataclass(frozen=True)
class Heat:
    """Colors over a rectangle: z (rows y, columns x). `diverging` puts the middle color at 0."""

    name: str
    x: Numbers
    y: Numbers
    z: np.ndarray
    diverging: bool = False

    def columns(self) -> dict[str, Numbers]:
        x, y = np.meshgrid(self.x, self.y)
        return {"x": x.ravel(), "y": y.ravel(), self.name: np.ravel(self.z)}


@dataclasses.dataclass(frozen=True)
class Cells:
    """Filled polygons, each (corners, 2), with a value each."""

    name: str
    polygons: tuple[np.ndarray, ...]
    values: np.ndarray
    diverging: bool = False

    def columns(self) -> dict[str, Numbers]:
        corners = [len(polygon) for polygon in self.polygons]
        which = np.repeat(np.arange(len(corners)), corners)
        xy = np.concatenate(self.polygons) if corners else np.zeros((0, 2))
        return {"polygon": which, "x": xy[:, 0], "y": xy[:, 1], self.name: np.repeat(self.values, corners)}


@dataclasses.dataclass(frozen=True)
class Picture:
    """Axes with things on them. `x_range` and `y_range` keep the view still while a slider moves."""

    title: str
    parts: tuple[Curve | Heat | Cells, ...]
    x: str = "x"
    y: str = "y"
    log_x: bool = False
    log_y: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    square: bool = False

    def plus(self, *parts: Curve | Heat | Cells) -> "Picture":
        """The same axes with more on them."""
        return dataclasses.replace(self, parts=(*self.parts, *parts))

    def csv(self) -> str:
        """A block of columns for each part."""
        blocks = []
        for part in self.parts:
            columns = part.columns()
            rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
            lines = [",".join(f'"{name}"' for name in columns)]
            lines += [",".join(f"{value:.12g}" for value in row) for row in rows]
            blocks.append("\n".join(lines) + "\n")
        return "\n".join(blocks)


@dataclasses.dataclass(frozen=True)
class Number:
    """A value beside the pictures, with what it means and, if it was measured, its standard error."""

    name: str
    value: float | str
    help: str = ""
    sem: float | None = None


@dataclasses.dataclass(frozen=True)
class Answer:
    """The pictures and numbers that a page shows for its settings."""

    pictures: tuple[Picture, ...]
    numbers: tuple[Number, ...] = ()
    notes: tuple[str, ...] = ()


def plain(value: object) -> Any:
    """As JSON can hold it: arrays as lists of 8 digits, numbers that are not finite as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {**fields, "type": type(value).__name__} if isinstance(value, Curve | Heat | Cells) else fields
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return value
