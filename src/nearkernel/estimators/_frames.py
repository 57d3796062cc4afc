"""Tables of any library as plain columns: numbers, flags, text or moments, with what is missing marked."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from .._check import require_unmasked, shown
from .._extra import needing

KINDS = ("number", "flag", "text", "moment", "other")
_MISSING = {"", "?", "-", "--", "na", "n/a", "nan", "none", "null", "missing", "#n/a", "unknown"}
_DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d %b %Y", "%b %d, %Y",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M")
_MOSTLY = 0.95  # share of values that must be read for a column to be numbers or moments
_DIGITS = re.compile(r"^[-+]?[\d.,\s' ]*\d[\d.,\s' ]*(?:e[-+]?\d+)?$", re.IGNORECASE)
_UNITS = re.compile(r"^[$€£¥]\s*|\s*[%$€£¥]$")


@dataclasses.dataclass(frozen=True)
class Column:
    """Values of one kind: float64 with nan (number, flag 0 or 1, moment in seconds since 1970), or text with None."""

    kind: str
    values: np.ndarray
    type: str = ""  # as its library calls it, for messages
    infinite: int = 0  # values that were, and count as missing
    unread: int = 0  # text among numbers or moments, which counts as missing

    @property
    def missing(self) -> np.ndarray:
        if self.kind in ("text", "other"):
            return np.array([value is None for value in self.values], dtype=bool)
        return np.isnan(self.values)

    def taken(self, rows: np.ndarray) -> Column:
        return dataclasses.replace(self, values=self.values[rows])


Frame = dict[str, Column]


def is_frame(table: Any) -> bool:
    """Whether `table` has named columns."""
    return isinstance(table, Mapping) or any(
        hasattr(table, each) for each in ("collect", "__arrow_c_stream__", "columns")
    )


def frame_of(table: Any, name: str = "X") -> Frame:
    """The columns of a pandas, polars or Arrow table, of a dict of columns, or of an array (n, d)."""
    if scipy.sparse.issparse(table):
        raise TypeError(
            f"`{name}`: sparse data are not supported; dense data are required, e.g. `{name}.toarray()`."
        )
    if isinstance(table, Mapping) and all(isinstance(each, Column) for each in table.values()):
        return dict(table)
    if is_frame(table):
        return _columns(table, name)
    require_unmasked(table, name)
    array = np.asarray(table)
    if array.dtype.kind == "c":
        raise ValueError(f"`{name}`: Complex data not supported.")
    if array.ndim != 2:
        raise ValueError(
            f"`{name}` must be a table or an array (n, d) with rows and columns; got {shown(table)}. Reshape your data."
        )
    columns = {}
    for i, values in enumerate(array.T):
        columns[f"x{i}"] = column_of_objects(values) if array.dtype.kind in "OSU" else _numbers(values)
    return columns


def _columns(table: Any, name: str) -> Frame:
    """Those of a table that names them."""
    pa = _arrow()  # a quarter of a second that arrays need not wait for
    if isinstance(table, pa.Table):
        return {each: column_of(table.column(i)) for i, each in enumerate(table.column_names)}
    try:
        columns = _mapped(table) if isinstance(table, Mapping) else _named(table)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"`{name}` could not be read as a table: {_one_line(error)}.") from error
    if len({len(column.values) for column in columns.values()}) > 1:
        raise ValueError(f"`{name}` could not be read as a table: its columns differ in length.")
    return columns


def _arrow() -> Any:
    with needing("a table of named columns or text"):
        import pyarrow
        import pyarrow.compute
    return pyarrow


def column_of(column: Any) -> Column:
    """One Arrow column."""
    pa = _arrow()
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        column = pa.chunked_array([pa.array(column.to_pylist())])
        kind = column.type
    if kind == pa.string_view():
        column = pa.chunked_array([pa.array(column.to_pylist(), pa.string())])
        kind = column.type
    name = str(kind)
    if types.is_boolean(kind):
        return Column("flag", column.cast(pa.int8()).to_numpy().astype(float), name)
    if types.is_null(kind):
        return Column("number", np.full(len(column), np.nan), name)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return _numbers(column.cast(pa.float64(), safe=False).to_numpy(), name)
    if types.is_date(kind) or types.is_timestamp(kind):
        seconds = column.cast(pa.timestamp("us"), safe=False) if types.is_date(kind) else column
        seconds = seconds.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False).cast(pa.int64())
        return Column("moment", seconds.cast(pa.float64(), safe=False).to_numpy() / 1e6, name)
    if types.is_time(kind) or types.is_duration(kind):
        unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.float64(), safe=False)
        return Column("number", whole.to_numpy() / unit, name)
    if types.is_string(kind) or types.is_large_string(kind):
        return text_column(
            np.array(pa.compute.utf8_trim_whitespace(column.cast(pa.string())).to_pylist(), dtype=object)
        )
    return Column("other", np.array([*column.to_pylist(), None], dtype=object)[:-1], name)


def text_column(values: np.ndarray) -> Column:
    """Text (n,) with None; numbers or moments if nearly all values are."""
    values = np.array([None if v is None or v.lower() in _MISSING else v for v in values], dtype=object)
    given = [v for v in values if v is not None]
    if not given:
        return Column("number", np.full(len(values), np.nan), "string")
    least = _MOSTLY * len(given)
    if sum(map(str.isdigit, (v[-1] for v in given))) + sum(v[-1] in "%$€£¥" for v in given) >= least:
        numbers = _read_numbers(values)
        read = int(np.isfinite(numbers).sum())
        if read >= least and not all(len(v) > 1 and v[0] == "0" and v.isdigit() for v in given):
            return dataclasses.replace(_numbers(numbers, "string"), unread=len(given) - read)
    moments = _read_moments(values, least)
    if moments is not None:
        return Column("moment", moments, "string", unread=len(given) - int(np.isfinite(moments).sum()))
    return Column("text", values, "string")


def _numbers(values: np.ndarray, name: str = "") -> Column:
    if values.dtype.kind == "b":
        return Column("flag", values.astype(float), "bool")
    if values.dtype.kind == "M":
        seconds = values.astype("datetime64[us]").astype(np.int64).astype(float) / 1e6
        return Column("moment", np.where(np.isnat(values), np.nan, seconds), str(values.dtype))
    if values.dtype.kind not in "iuf":
        raise ValueError(f"`X` must hold numbers, text or dates; got {values.dtype}.")
    found = values.astype(np.float64)
    infinite = np.isinf(found)
    return Column("number", np.where(infinite, np.nan, found), name or str(values.dtype), int(infinite.sum()))


def column_of_objects(values: np.ndarray) -> Column:
    """Python objects (n,): numbers, text, dates, None."""
    pa = _arrow()
    plain = [None if each is None or each != each else each for each in values.tolist()]
    try:
        return column_of(pa.chunked_array([pa.array(plain)]))
    except (pa.ArrowException, TypeError):  # numbers and text side by side
        return text_column(np.array([None if each is None else str(each) for each in plain], dtype=object))


def _mapped(table: Mapping) -> Frame:
    """A dict of columns."""
    return {str(key): _of_any(_listed(each)) for key, each in table.items()}


def _named(table: Any) -> Frame:
    """A frame of another library. The index of a pandas frame numbers rows: it is not one of the columns."""
    pa = _arrow()
    if hasattr(table, "collect"):
        raise ValueError("it is lazy: pass X.collect()")
    if hasattr(table, "__arrow_c_stream__"):
        try:
            found = pa.table(table)
        except (pa.ArrowException, TypeError, ValueError):
            if not hasattr(table, "iloc"):  # by which it is read column by column
                raise
        else:
            index = (found.schema.pandas_metadata or {}).get("index_columns", [])
            found = found.drop_columns([each for each in index if isinstance(each, str)])
            return {each: column_of(found.column(i)) for i, each in enumerate(found.column_names)}
    if not hasattr(table, "columns"):
        raise ValueError("it has no columns: pass a table")
    names = [str(each) for each in table.columns]
    if len(set(names)) < len(names):
        raise ValueError(f"more than one column is called {max(names, key=names.count)!r}")
    return {each: _of_any(np.asarray(table.iloc[:, i])) for i, each in enumerate(names)}


def _of_any(values: Any) -> Column:
    """Values that Arrow takes, or numbers and text side by side."""
    pa = _arrow()
    try:
        return column_of(pa.chunked_array([pa.array(values, from_pandas=True)]))
    except (pa.ArrowException, TypeError):
        return column_of_objects(np.array([*values, None], dtype=object)[:-1])


def _listed(values: Any) -> Any:
    array = np.asarray(values, dtype=None if not isinstance(values, list) else object)
    if array.ndim != 1:
        raise ValueError(f"each column must have one value per row; got {shown(values)}")
    return array.tolist() if array.dtype.kind == "O" else array


def _read_numbers(values: np.ndarray) -> np.ndarray:
    """Floats, with nan for what is none; commas may be decimal, or part thousands."""
    cleaned = [None if v is None else _UNITS.sub("", v) for v in values]
    given = [v for v in cleaned if v is not None and _DIGITS.match(v)]
    comma = _decimal_comma(given)
    found = np.full(len(values), np.nan)
    for i, text in enumerate(cleaned):
        if text is None or not _DIGITS.match(text):
            continue
        text = re.sub(r"[\s' ]", "", text)
        text = text.replace(".", "").replace(",", ".") if comma else text.replace(",", "")
        try:
            found[i] = float(text)
        except ValueError:
            pass
    return found


def _decimal_comma(given: list[str]) -> bool:
    """Whether the comma separates decimals: it comes last, once, and not always before three digits."""
    with_comma = [v for v in given if "," in v]
    if not with_comma or any(v.count(",") > 1 or "." in v.partition(",")[2] for v in with_comma):
        return False
    thousands = all(re.search(r"^[-+]?[1-9]\d{0,2},\d{3}$", v) for v in with_comma)
    return not thousands


def _read_moments(values: np.ndarray, least: float) -> np.ndarray | None:
    """Seconds since 1970 by the first format that reads nearly all of the text."""
    pa = _arrow()
    sample = next(v for v in values if v is not None)
    if not re.search(r"\d", sample) or not re.search(r"\d[-/. ,T]\w|^\d{8}", sample) or len(sample) > 40:
        return None
    column, best = pa.array(values, pa.string()), None
    for day in _DATES:
        for clock in _CLOCKS:
            read = pa.compute.strptime(column, format=day + clock, unit="s", error_is_null=True)
            count = len(read) - read.null_count
            if count >= least and (best is None or count > best[0]):
                best = (count, read)
    return (
        None if best is None else best[1].cast(pa.int64()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:160].rstrip(".")
