"""Rows of numbers as people paste them: with commas, semicolons, tabs or spaces, with or without a line of names."""

import math
import re
from typing import NamedTuple

import numpy as np

LONGEST = 6000  # characters
_LEAST, _DIGITS = 1e-140, 1e-12  # of the range of a column: alone, and over its size
ROWS, COLUMNS = (4, 200), (2, 11)  # at least and at most


class Table(NamedTuple):
    """`names` of the columns, the last of which is the target; inputs `x` (n, d) and targets `y` (n,)."""

    names: tuple[str, ...]
    x: np.ndarray
    y: np.ndarray


def table(text: str, name: str = "rows") -> Table:
    """Reads `text`; an error is one line that begins with `name` and says where it is."""
    if len(text) > LONGEST:
        raise ValueError(f"{name}: {len(text)} characters; at most {LONGEST} are allowed.")
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise ValueError(f"{name}: empty; paste lines of numbers, the target last.")
    cells = [(number, _cells(line)) for number, line in lines]
    width = len(cells[0][1])
    if not COLUMNS[0] <= width <= COLUMNS[1]:
        raise ValueError(
            f"{name}: line {cells[0][0]} has {_counted(width, 'column')}; give 1 to {COLUMNS[1] - 1} inputs and the "
            "target, with commas, tabs or spaces between them."
        )
    header = all(_number(cell) is None for cell in cells[0][1])
    names = (
        tuple(cell[:30] for cell in cells[0][1])
        if header
        else (*(f"input {i}" for i in range(1, width)), "target")
    )
    rows = [_row(number, found, width, name) for number, found in cells[header:]]
    if not ROWS[0] <= len(rows) <= ROWS[1]:
        raise ValueError(f"{name}: {_counted(len(rows), 'row')} of numbers; give {ROWS[0]} to {ROWS[1]}.")
    values = np.array(rows)
    for column, word in enumerate(names):
        where, span = f"{name}: column {column + 1} ({word})", float(np.ptp(values[:, column]))
        if span == 0:
            raise ValueError(f"{where} is constant; leave it out.")
        if span < _LEAST:  # the square of what it is divided by would be 0
            raise ValueError(f"{where} varies by {span:.2g} only: scale it towards 1.")
        if span < _DIGITS * np.abs(values[:, column]).max():
            raise ValueError(f"{where} varies in its last digits only: subtract a constant from it.")
    return Table(names, values[:, :-1], values[:, -1])


def _cells(line: str) -> list[str]:
    """Split at the strongest separator that is there; one at the end separates nothing."""
    for separator in (";", "\t", ","):
        if separator in line:
            return [cell.strip().strip('"') for cell in line.removesuffix(separator).split(separator)]
    return re.split(r"\s+", line)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _row(number: int, cells: list[str], width: int, name: str) -> list[float]:
    if len(cells) != width:
        raise ValueError(
            f"{name}: line {number} has {_counted(len(cells), 'column')}, the first line has {width}."
        )
    found = []
    for cell in cells:
        value = _number(cell)
        if value is None or not math.isfinite(value) or abs(value) > 1e12:
            shown = repr(cell[:20]) if cell else "an empty cell"
            raise ValueError(
                f"{name}: line {number}: {shown} is not a finite number; write numbers like 0.5 or 1e-3."
            )
        found.append(value)
    return found
