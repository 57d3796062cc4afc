"""Columns as CSV that no spreadsheet runs: text that would be a formula gets an apostrophe, which reading takes off."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....estimators.tables.reading import inferred

ESCAPED = r"^'('*[=+\-@\t\r\n])"  # also of RE2, so no lookahead
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")


def escaped(cell: Any) -> Any:
    """A cell as it is written. Numbers stay as they are, also those in text, such as the label "-1"."""
    if not isinstance(cell, str) or not _FORMULA.match(cell) or inferred([cell]).kind == "number":
        return cell
    return f"'{cell}"


def unescaped(cell: str) -> str:
    """A cell as it was before `escaped`."""
    return re.sub(ESCAPED, r"\1", cell)


def distinct(names: Sequence[str]) -> list[str]:
    """Names with a number after those that came before: "low", "low (2)"."""
    found: list[str] = []
    for name in names:
        again, count = name, 1
        while again in found and name:
            count += 1
            again = f"{name} ({count})"
        found.append(again)
    return found


def as_csv(columns: dict[str, Any]) -> str:
    """A line of names, then one line per row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    cells = [[name, *np.asarray(column).tolist()] for name, column in columns.items()]
    writer.writerows(zip(*([escaped(each) for each in column] for column in cells), strict=True))
    return text.getvalue()
