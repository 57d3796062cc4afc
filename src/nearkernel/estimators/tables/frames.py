"""Tables of any library as plain columns: numbers, flags, text or moments, with what is missing marked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy.sparse

from ..._base.check import require_unmasked, shown
from ..._base.types import Unchecked
from .reading import CLOCK, EXACT, ISO, Column, Reading, arrow, numbers_column, text_column

Frame = dict[str, Column]
# Readings of columns by name or by place; None: to be found.
Readings = Mapping[str, Reading | None] | Sequence[Reading | None] | None


def is_frame(table: Unchecked) -> bool:
    """Whether `table` has named columns."""
    if isinstance(table, np.ndarray):
        return table.dtype.names is not None
    return isinstance(table, Mapping) or any(
        hasattr(table, each) for each in ("collect", "__arrow_c_stream__", "columns")
    )


def frame_of(table: Unchecked, name: str = "X", readings: Readings = None) -> Frame:
    """The columns of a pandas, polars or Arrow table, of a dict of columns, or of an array (n, d).

    With `readings`, columns are read that way; if they have names, no others are read.
    """
    if scipy.sparse.issparse(table):
        raise TypeError(
            f"`{name}`: sparse data are not supported; dense data are required, e.g. `{name}.toarray()`."
        )
    if isinstance(table, Mapping) and all(isinstance(each, Column) for each in table.values()):
        return dict(table)
    if is_frame(table):
        return _columns(table, name, readings)
    require_unmasked(table, name)
    array = np.asarray(table)
    if array.dtype.kind in "biufSU" and isinstance(table, list | tuple):
        array = np.asarray(table, dtype=object)  # numbers beside text stay numbers, and True stays True
    if array.dtype.kind == "c":
        raise ValueError(f"`{name}`: Complex data not supported.")
    if array.ndim != 2:
        raise ValueError(
            f"`{name}` must be a table or an array (n, d) with rows and columns; got {shown(table)}. Reshape your data."
        )
    known = _by_name([f"x{i}" for i in range(array.shape[1])], readings)
    read = column_of_objects if array.dtype.kind in "OSU" else _of_numbers
    return {each: read(values, known[each]) for each, values in zip(known, array.T, strict=True)}


def _by_name(names: Sequence[str], readings: Readings) -> dict[str, Reading | None]:
    """Those of the columns `names` that are to be read, and how."""
    if isinstance(readings, Mapping):
        return {each: readings[each] for each in names if each in readings}
    # More or fewer columns than training rows had are counted, and refused, by those who asked.
    known = itertools.chain(readings or (), itertools.repeat(None))
    return dict(zip(names, known, strict=False))


def _columns(table: Unchecked, name: str, readings: Readings) -> Frame:
    """Those of a table that names them."""
    pa = arrow()  # a quarter of a second that arrays need not wait for
    try:
        given = list(_mapped(table) if isinstance(table, Mapping) else _named(table))
        _require_distinct([each for each, _, _ in given])
        known = _by_name([each for each, _, _ in given], readings)
        columns = {each: read(values, known[each]) for each, values, read in given if each in known}
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"`{name}` could not be read as a table: {_one_line(error)}.") from error
    if len({len(column.values) for column in columns.values()}) > 1:
        raise ValueError(f"`{name}` could not be read as a table: its columns differ in length.")
    return columns


def _require_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise ValueError(f"more than one column is called {twice!r}: rename or remove the others")


def column_of(column: Unchecked, reading: Reading | None = None) -> Column:
    """One Arrow column."""
    pa = arrow()
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        column = pa.chunked_array([pa.array(column.to_pylist(), kind.value_type)])
        kind = column.type
    if types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view():
        return text_column(column.to_pylist() if kind == pa.string_view() else column, reading)
    typed = _typed(column)
    if reading is not None:
        return typed.read_as(reading, lambda: [as_text(each) for each in column.to_pylist()])
    if types.is_integer(kind) and _share_floats(pa.compute.count_distinct(column).as_py(), typed):
        return text_column([as_text(each) for each in column.to_pylist()], Reading("text"))
    return typed


def _typed(column: Unchecked) -> Column:
    """An Arrow column of any type but text."""
    pa = arrow()
    kind, types = column.type, pa.types
    name = str(kind)
    if types.is_boolean(kind):
        return Column("flag", column.cast(pa.int8()).to_numpy().astype(float), name)
    if types.is_null(kind):
        return Column("number", np.full(len(column), np.nan), name)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return numbers_column(column.cast(pa.float64(), safe=False).to_numpy(), name)
    if types.is_date(kind) or types.is_timestamp(kind):
        seconds = column.cast(pa.timestamp("us"), safe=False) if types.is_date(kind) else column
        seconds = seconds.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False).cast(pa.int64())
        values = seconds.cast(pa.float64(), safe=False).to_numpy() / 1e6
        return Column("moment", values, name, found=Reading("moment", form=ISO))
    if types.is_time(kind) or types.is_duration(kind):
        unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.float64(), safe=False)
        form = CLOCK if types.is_time(kind) else "duration"
        return Column("number", whole.to_numpy() / unit, name, found=Reading("number", form=form))
    return Column("other", np.array([*column.to_pylist(), None], dtype=object)[:-1], name)


def _share_floats(distinct: int, found: Column) -> bool:
    """Whether so many `distinct` integers are fewer floats: then they name something, as ids do."""
    values = found.values[~np.isnan(found.values)]
    return bool(np.abs(values).max(initial=0.0) > EXACT) and distinct > len(np.unique(values))


def as_text(value: object) -> str | None:
    """A value as it is called among levels: 3.0 is 3, since a column with a gap makes floats of integers."""
    if _is_missing(value):
        return None
    if isinstance(value, complex):
        raise ValueError("Complex data not supported")
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(float(value))
    return str(value)


def _is_missing(value: object) -> bool:
    """None, nan, NaT, NA of pandas, or masked."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, str | np.ndarray | list | dict):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA, of which nothing is true
        return True


def _of_numbers(values: np.ndarray, reading: Reading | None = None) -> Column:
    """An array (n,) of a plain type."""
    if values.dtype.kind == "b":
        column = Column("flag", values.astype(float), "bool")
    elif values.dtype.kind == "M":
        seconds = values.astype("datetime64[us]").astype(np.int64).astype(float) / 1e6
        seconds = np.where(np.isnat(values), np.nan, seconds)
        column = Column("moment", seconds, str(values.dtype), found=Reading("moment", form=ISO))
    elif values.dtype.kind == "m":
        seconds = np.where(np.isnat(values), np.nan, values / np.timedelta64(1, "s"))
        column = Column("number", seconds, str(values.dtype), found=Reading("number", form="duration"))
    elif values.dtype.kind in "iuf":
        column = numbers_column(values.astype(np.float64), str(values.dtype))
        if values.dtype.kind != "f" and _share_floats(len(np.unique(values)), column):
            reading = reading or Reading("text")
    else:
        raise ValueError(f"`X` must hold numbers, text or dates; got {values.dtype}.")
    if reading is None:
        return column
    plain = values.astype("datetime64[us]") if values.dtype.kind == "M" else values
    return column.read_as(reading, lambda: [as_text(each) for each in plain.tolist()])


def column_of_objects(values: np.ndarray, reading: Reading | None = None) -> Column:
    """Python objects (n,): numbers, text, dates, None."""
    pa = arrow()
    plain = [None if _is_missing(each) else each for each in values.tolist()]
    try:
        column = pa.chunked_array([pa.array(plain)])
    except (pa.ArrowException, TypeError, OverflowError):  # numbers and text side by side, or beyond 64 bits
        return _mixed(plain, reading or text_column(_written(plain)).reading)
    return column_of(column, reading)


def _mixed(values: Sequence, reading: Reading) -> Column:
    """Each type of Python by itself, so that a value is read as it would be alone."""
    pa = arrow()
    held = np.full(len(values), None if reading.kind == "text" else np.nan, dtype=object)
    infinite = unread = 0
    for kind in {type(each) for each in values if each is not None}:
        places = [i for i, each in enumerate(values) if type(each) is kind]
        chosen = [values[i] for i in places]
        try:
            part = column_of(pa.chunked_array([pa.array(chosen)]), reading)
        except OverflowError:
            part = text_column([as_text(each) for each in chosen], reading)
        held[places] = part.values
        infinite, unread = infinite + part.infinite, unread + part.unread
    held = held if reading.kind == "text" else held.astype(float)
    return Column(reading.kind, held, "mixed", infinite, unread, reading)


def _written(values: Sequence) -> list[str | None]:
    """Mixed values as text; numbers get the decimal sign that the text among them has."""
    reading = text_column([each if isinstance(each, str) else None for each in values]).reading
    comma = reading.kind == "number" and reading.decimal == ","
    texts = [as_text(each) for each in values]
    return [
        text.replace(".", ",") if comma and text is not None and not isinstance(each, str) else text
        for each, text in zip(values, texts, strict=True)
    ]


_Found = tuple[str, Unchecked, Callable[[Unchecked, Reading | None], Column]]


def _mapped(table: Mapping) -> list[_Found]:
    """A dict of columns."""
    return [(str(key), _listed(each), _of_any) for key, each in table.items()]


def _named(table: Unchecked) -> list[_Found]:
    """A frame of another library. The index of a pandas frame numbers rows: it is not one of the columns."""
    pa = arrow()
    if isinstance(table, np.ndarray):  # of records
        names = table.dtype.names or ()
        return [(each, _listed(np.ma.asarray(table)[each]), _of_any) for each in names]
    if isinstance(table, pa.Table):
        return [(each, table.column(i), column_of) for i, each in enumerate(table.column_names)]
    if hasattr(table, "collect"):
        raise ValueError("it is lazy: pass X.collect()")
    if hasattr(table, "__arrow_c_stream__"):
        try:
            arrow_table = pa.table(table)
        except (pa.ArrowException, TypeError, ValueError):
            if not hasattr(table, "iloc"):  # by which it is read column by column
                raise
        else:
            index = (arrow_table.schema.pandas_metadata or {}).get("index_columns", [])
            places = [i for i, each in enumerate(arrow_table.column_names) if each not in index]
            return [(arrow_table.column_names[i], arrow_table.column(i), column_of) for i in places]
    if not hasattr(table, "columns"):
        raise ValueError("it has no columns: pass a table")
    return [(str(each), np.asarray(table.iloc[:, i]), _of_any) for i, each in enumerate(table.columns)]


def _of_any(values: Unchecked, reading: Reading | None = None) -> Column:
    """Values that Arrow takes, or numbers and text side by side."""
    pa = arrow()
    if isinstance(values, pa.Array):
        return column_of(pa.chunked_array([values]), reading)
    try:
        column = pa.chunked_array([pa.array(values, from_pandas=True)])
    except (pa.ArrowException, TypeError, OverflowError):
        return column_of_objects(np.array([*values, None], dtype=object)[:-1], reading)
    return column_of(column, reading)


def _listed(values: Unchecked) -> Unchecked:
    """One value per row; masked ones are missing."""
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    if isinstance(values, list | tuple):
        values = [None if each is np.ma.masked else each for each in values]
    array = np.asarray(values, dtype=object if isinstance(values, list) else None)
    if array.ndim != 1:
        raise ValueError(f"each column must have one value per row; got {shown(values)}")
    if array.dtype.kind == "O":
        return [None if mask is not None and mask[i] else each for i, each in enumerate(array.tolist())]
    return array if mask is None else arrow().array(array, mask=mask, from_pandas=True)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:160].rstrip(".")
