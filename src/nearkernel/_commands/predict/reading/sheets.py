"""An `.xlsx` file as columns: its first sheet, whose first row names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ....estimators.tables.columns import Remark


def read_sheet(path: Path, remarks: list[Remark]) -> tuple[list[str], list[np.ndarray]]:
    """Names, and the values (n,) of each column as objects, None where a cell is empty."""
    try:
        import openpyxl
    except ImportError:
        raise ValueError(
            f"{path.name}: to read .xlsx install openpyxl (`pip install openpyxl`), or save the sheet as .csv."
        ) from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheets = book.sheetnames
        rows = [
            row
            for row in book[sheets[0]].iter_rows(values_only=True)
            if any(each is not None for each in row)
        ]
        book.close()
    except Exception as error:  # a damaged file raises nearly anything
        detail = " ".join(str(error).split())[:160]
        raise ValueError(f"{path.name} could not be read as xlsx: {detail}") from error
    if len(sheets) > 1:
        remarks.append(
            Remark(path.name, f"{len(sheets)} sheets", f"read the first, {sheets[0]!r}", trouble=False)
        )
    if len(rows) < 2:
        raise ValueError(
            f"{path.name} has {len(rows)} filled rows: it needs a row of column names, then rows."
        )
    head, *body = rows
    if all(isinstance(each, int | float) for each in head if each is not None):
        raise ValueError(
            f"{path.name} has no header (its first row holds numbers): add a row of column names."
        )
    table = np.empty((len(body), len(head)), dtype=object)
    for i, row in enumerate(body):
        table[i, : len(row)] = row[: len(head)]
    named = [j for j, name in enumerate(head) if name is not None or any(v is not None for v in table[:, j])]
    return ["" if head[j] is None else str(head[j]).strip() for j in named], [table[:, j] for j in named]
