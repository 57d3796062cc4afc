"""A `.csv` or `.parquet` file as numbers: every column checked, text of few values one-hot encoded."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._check import nearest
from .encoding import utf8

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CATEGORIES = 20  # a text column of more distinct values is a name or a sentence, not a category
_DELIMITERS = ",;\t|"


@dataclasses.dataclass(frozen=True)
class Table:
    """Features x (n, d) with their names, the raw target (n,), and what the user should be told."""

    x: np.ndarray
    features: tuple[str, ...]
    target: np.ndarray
    notes: tuple[str, ...]


def read_table(path: Path, target: str, drop: Sequence[str]) -> Table:
    """The columns of `path`: `target`, and as features all others except those in `drop`."""
    table = _read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)
    names = table.column_names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"{path.name} has more than one column {_listed(repeated)}: rename or remove the copies."
        )
    row_numbers = [n for n in names if n == "" or n.startswith("__index_level_")]
    table = table.drop_columns(row_numbers)
    for name in (target, *drop):
        if name not in table.column_names:
            option = "--target" if name == target else "--drop"
            raise ValueError(
                f"{option} {name}: {path.name} has no such column; it has {_listed(table.column_names)}."
                + nearest(name, table.column_names)
            )
    if target in drop:
        raise ValueError(f"--drop {target} is also the --target: leave it out of --drop.")
    table = table.drop_columns(list(drop))
    if table.num_columns < 2:
        raise ValueError(f"{path.name} has no feature column beside the target {target!r}.")
    _refuse_missing(table, path.name)

    blocks, features, encoded = [], [], []
    for name in table.column_names:
        if name == target:
            continue
        columns, labels = _encode(table.column(name), name, path.name)
        blocks.append(columns)
        features += labels
        if len(labels) > 1:
            encoded.append(f"{name} ({len(labels)} values)")
    notes = []
    if row_numbers:
        notes.append(f"left out {len(row_numbers)} column of row numbers without a name")
    if encoded:
        notes.append(f"one-hot encoded {', '.join(encoded)}")
    return Table(np.concatenate(blocks, axis=1), tuple(features), _values(table.column(target)), tuple(notes))


def _read_csv(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    data = utf8(path.read_bytes(), path.name)
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig")
    header = lines.readline().strip()
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
    try:
        return csv.read_csv(
            pa.BufferReader(data),
            # One block, so that a column's type is inferred from all of its rows and not from the first megabyte.
            read_options=csv.ReadOptions(block_size=min(len(data) + 1, 2**31 - 1)),
            parse_options=csv.ParseOptions(delimiter=max(_DELIMITERS, key=header.count)),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
        )
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path.name} could not be read as csv: {_one_line(error)}") from error


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


def _refuse_missing(table: pa.Table, file: str) -> None:
    """Nulls, NaN and inf are refused, not filled: how to fill them is a choice about the data."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing, infinite = [], []
    for name in table.column_names:
        column = table.column(name)
        gaps, infs = column.null_count, 0
        if pa.types.is_floating(column.type):
            gaps += pc.sum(pc.is_nan(column)).as_py() or 0
            infs = pc.sum(pc.is_inf(column)).as_py() or 0
        if gaps:
            missing.append(f"{name} ({gaps} of {len(column)})")
        if infs:
            infinite.append(f"{name} ({infs} of {len(column)})")
    if missing:
        raise ValueError(
            f"{file} has missing values in {_listed(missing, quote=False)}: "
            "fill them, remove those rows, or leave a column out with --drop."
        )
    if infinite:
        raise ValueError(
            f"{file} has infinite values in {_listed(infinite, quote=False)}: "
            "remove those rows, or leave a column out with --drop."
        )


def _encode(column: pa.ChunkedArray, name: str, file: str) -> tuple[np.ndarray, list[str]]:
    """One column as floats (n, k) with k names: numbers as they are, few words as one column each."""
    values = _values(column)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)[:, None], [name]
    if values.dtype.kind != "U":
        raise ValueError(
            f"{file}: column {name!r} holds {column.type}, neither numbers nor words: "
            f"turn it into numbers, or leave it out with --drop {name}."
        )
    words = np.unique(values)
    if len(words) > MAX_CATEGORIES:
        raise ValueError(
            f"{file}: column {name!r} holds text such as {str(values[0])!r} ({len(words)} distinct values, more than "
            f"{MAX_CATEGORIES} categories): turn it into numbers, or leave it out with --drop {name}."
        )
    return (values[:, None] == words).astype(np.float64), [f"{name}={word}" for word in words]


def _values(column: pa.ChunkedArray) -> np.ndarray:
    """A column as a NumPy array of bool, int, float or str; other types come back as objects."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values = column.to_numpy()
    return (
        values.astype(str)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else values
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _listed(items: Sequence[str], quote: bool = True, most: int = 12) -> str:
    shown = ", ".join(repr(item) if quote else item for item in items[:most])
    return shown + (f" and {len(items) - most} more" if len(items) > most else "")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
