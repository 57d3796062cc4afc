"""A `.csv`, `.tsv`, `.xlsx` or `.parquet` file as columns, whatever its delimiter, encoding and decimal point."""

from __future__ import annotations

import csv as python_csv
import dataclasses
import functools
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...._base.check import nearest
from ....estimators.tables.columns import Remark
from ....estimators.tables.frames import Frame, column_of, column_of_objects
from ....estimators.tables.reading import Column, Reading
from .encoding import utf8
from .spreadsheet import ESCAPED, distinct, unescaped

if TYPE_CHECKING:
    import pyarrow as pa

_DELIMITERS = ",;\t|"


@dataclasses.dataclass(frozen=True)
class Table:
    """Feature columns, the target if one was asked for, and what the user should be told of the file."""

    frame: Frame
    target: Column | None
    remarks: tuple[Remark, ...]


def read_table(
    path: Path,
    target: str | None,
    drop: Sequence[str] = (),
    other_targets: Sequence[str] = (),
    how: Callable[[str], Reading | None] = lambda name: None,
) -> Table:
    """The columns of `path`: `target`, and as features all others except those in `drop` and `other_targets`.

    `how` tells of a column how it is written; None to find out.
    """
    remarks: list[Remark] = []
    found, columns = _columns(path, remarks)
    if target is not None and found.count(target) > 1:
        raise ValueError(
            f"--target {target}: {path.name} has more than one such column: rename or remove the copies."
        )
    names = distinct(found)
    for name, again in zip(found, names, strict=True):
        if again != name:
            done = f"the other is called {again!r}"
            remarks.append(Remark(name, "more than one column of this name", done))
    targets = [*([] if target is None else [target]), *other_targets]
    for name in (*targets, *drop):
        if name not in names:
            option = "--target" if name in targets else "--drop"
            raise ValueError(
                f"{option} {name}: {path.name} has no such column; it has {listed(names)}."
                + nearest(name, names)
            )
    for name in targets:
        if name in drop:
            raise ValueError(f"--drop {name} is also the --target: leave it out of --drop.")
    frame: Frame = {}
    for place, name in enumerate(names):
        if name == "" or name.startswith("__index_level_"):
            remarks.append(Remark("a column without a name", "row numbers", "left out", trouble=False))
        elif name not in drop and name not in other_targets:
            frame[name] = columns[place](how(name))
    chosen = None if target is None else frame.pop(target)
    if not frame:
        beside = "" if target is None else f" besides the target {target!r}"
        raise ValueError(f"{path.name} has no feature column{beside}.")
    return Table(frame, chosen, tuple(remarks))


def _columns(path: Path, remarks: list[Remark]) -> tuple[list[str], list[Callable[[Reading | None], Column]]]:
    """The names of all columns of a file, and each column when it is asked for."""
    if path.suffix.lower() == ".xlsx":
        from .sheets import read_sheet

        names, values = read_sheet(path, remarks)
        return names, [functools.partial(column_of_objects, each) for each in values]
    table = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_text(path, remarks)
    return table.column_names, [functools.partial(column_of, each) for each in table.columns]


def with_target(table: Table, name: str) -> tuple[Table, np.ndarray]:
    """The rows whose target `name` is known, and their places in the file."""
    assert table.target is not None
    gone = table.target.missing
    if not gone.any():
        return table, np.arange(len(gone))
    rows = np.flatnonzero(~gone)
    frame = {key: column.taken(rows) for key, column in table.frame.items()}
    remark = Remark(
        name, f"the target is missing in {gone.sum()} of {len(gone)} rows", "those rows are left out"
    )
    return Table(frame, table.target.taken(rows), (*table.remarks, remark)), rows


def _read_text(path: Path, remarks: list[Remark]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    data, guessed = utf8(path.read_bytes(), path.name)
    if guessed:
        remarks.append(Remark(path.name, "not UTF-8", f"read as {guessed}"))
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig")
    header = lines.readline().strip("\r\n ")
    if not header:
        raise ValueError(
            f"{path.name} is empty, or its first line is: it needs a line of column names, then rows."
        )
    if not lines.readline():
        raise ValueError(f"{path.name} has one line only: it needs a line of column names, then rows.")
    if all(
        _is_number(cell)
        for cell in header.replace('"', "").translate({ord(d): "," for d in _DELIMITERS}).split(",")
    ):
        raise ValueError(
            f"{path.name} has no header (its first line is {header[:40]!r}): add a line of column names."
        )
    delimiter = max(_DELIMITERS, key=header.count)
    lines.seek(0)
    try:
        names = next(python_csv.reader(lines, delimiter=delimiter))
    except python_csv.Error as error:  # a quote that does not end
        raise ValueError(f"{path.name} could not be read as csv: {_one_line(error)}") from error
    # Text as it is written: what it means is for all columns of all sources found out in the same way.
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    # One block, so that no row is cut.
    block = min(len(data) + 1, 2**31 - 1)
    reads = functools.partial(
        csv.read_csv, parse_options=csv.ParseOptions(delimiter=delimiter), convert_options=as_text
    )
    try:
        found = reads(pa.BufferReader(data), csv.ReadOptions(block_size=block))
        names = [unescaped(each) for each in found.column_names]
        return pa.Table.from_arrays([_unescaped(each) for each in found.columns], names=names)
    except pa.ArrowInvalid as error:
        told = error
    try:
        reads(pa.BufferReader(data), csv.ReadOptions(use_threads=False, block_size=block))
    except pa.ArrowInvalid as error:  # of one thread it says which row is meant
        told = error
    raise ValueError(f"{path.name} could not be read as csv: {_one_line(told)}") from told


def _unescaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    if not pc.any(pc.starts_with(column, "'")).as_py():
        return column
    return pc.replace_substring_regex(column, ESCAPED, r"\1")


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open(path, "rb") as file:  # opened here, since Arrow takes only names in UTF-8
            table = parquet.read_table(file, page_checksum_verification=True)
        table.validate(full=True)
        table.column_names  # noqa: B018  names that are not UTF-8 raise here
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path.name} could not be read as parquet: {_one_line(error)}") from error
    if table.num_rows == 0:
        raise ValueError(f"{path.name} has no rows.")
    return table


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def listed(items: Sequence[str], quote: bool = True, most: int = 12) -> str:
    shown = ", ".join(repr(item) if quote else item for item in items[:most])
    return shown + (f" and {len(items) - most} more" if len(items) > most else "")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
