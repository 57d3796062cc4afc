"""What tells rows apart: their numbers in the spreadsheet, their ids, and columns that users ask for.

Cells are kept as they are written: `00123` is an id, and not the number 123.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ...._base.check import nearest
from ....estimators.tables.frames import Frame
from .encoding import utf8
from .spreadsheet import unescaped
from .tables import _DELIMITERS, listed

ROW = "row"
_FIRST = 2  # of a spreadsheet: its first row names the columns
_LONGEST, _MOST_WORDS = 40, 2  # of an id; other text is prose
_ID_ROWS = 20  # below, all values of any column may well differ


@dataclasses.dataclass(frozen=True)
class Sheet:
    """The names of a file's columns, the number of each row, and the cells of a column, (n,), by its place."""

    names: list[str]
    rows: np.ndarray
    cells: Callable[[int], list[object]]


def as_written(path: Path) -> Sheet:
    """A file that `read_table` has read, with rows counted as a spreadsheet counts them: empty ones, too."""
    kind = path.suffix.lower()
    if kind == ".parquet":
        from pyarrow import parquet

        with open(path, "rb") as file:
            table = parquet.read_table(file)
        stored = lambda place: ["" if each is None else each for each in table.column(place).to_pylist()]
        return Sheet(table.column_names, np.arange(table.num_rows) + _FIRST, stored)
    if kind == ".xlsx":
        import openpyxl

        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        lines = [list(row) for row in book[book.sheetnames[0]].iter_rows(values_only=True)]
        book.close()
    else:
        text = io.StringIO(utf8(path.read_bytes(), path.name)[0].decode("utf-8-sig"), newline="")
        first = text.readline()
        text.seek(0)
        try:
            read = csv.reader(text, delimiter=max(_DELIMITERS, key=first.count))
            lines = [[unescaped(cell) for cell in line] for line in read]
        except csv.Error as error:
            raise ValueError(f"{path.name} could not be read as csv: {error}.") from error
    filled = [i for i, line in enumerate(lines) if any(cell is not None for cell in line)]
    head, *body = filled
    names = ["" if name is None else str(name) for name in lines[head]]
    if kind == ".xlsx":
        names = [name.strip() for name in names]

    def cells(place: int) -> list[object]:
        found = [lines[i][place] if place < len(lines[i]) else "" for i in body]
        return ["" if each is None else each for each in found]

    return Sheet(names, np.array(body) + 1, cells)


def ids(frame: Frame, used: Sequence[str], least: int = _ID_ROWS) -> list[str]:
    """The columns that name rows: integers, or short words, that are all different.

    They are left out of the features; of those that are `used`, only integers that count up name rows, too.
    """
    found = []
    for name, column in frame.items():
        values = column.values[~column.missing]
        if column.kind not in ("number", "text") or len(values) < least:
            continue
        if column.kind == "number":
            short = bool(np.all(values == np.rint(values)))
            short = short and (name not in used or bool(np.all(np.diff(values) > 0)))
        elif name in used:
            continue
        else:
            short = all(len(each) <= _LONGEST and len(each.split()) <= _MOST_WORDS for each in values)
        if short and len(set(values.tolist())) == len(values):
            found.append(name)
    return found


def beside(path: Path, ids: Sequence[str], keep: Sequence[str], taken: Sequence[str]) -> dict[str, object]:
    """Columns to write before the predictions, whose names are `taken`: row numbers, `ids`, and those in `keep`."""
    sheet = as_written(path)
    for name in keep:
        if name not in sheet.names:
            raise ValueError(
                f"--keep {name}: {path.name} has no such column; it has {listed(sheet.names)}."
                + nearest(name, sheet.names)
            )
    found: dict[str, object] = {}
    for name in dict.fromkeys((*ids, *keep)):
        if name in sheet.names:
            given = f"{name} (given)" if name in (*taken, ROW) else name
            found[given] = sheet.cells(sheet.names.index(name))
    return {**({} if ROW in taken else {ROW: sheet.rows}), **found}
