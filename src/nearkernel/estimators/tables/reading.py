"""Text as numbers, dates, true and false, or levels. The format is found once, in the training rows, and kept: a value
is then read by itself, whatever stands in the rows beside it."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

from ..._base.extra import needing
from ..._base.types import Unchecked

MISSING = {
    "", "?", "-", "--", "na", "n/a", "nan", "none", "null", "missing", "#n/a", "unknown", "#na", "<na>", "nat",
    "-nan", "(missing)", "#n/a n/a", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
}  # fmt: skip
EXACT = 2**53  # integers beyond it may share a float
_DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d %b %Y", "%b %d, %Y",
)  # fmt: skip
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M")
_MOSTLY = 0.95  # share of values that must be read for a column to be numbers or moments
_TRUTH = {"true": 1.0, "false": 0.0}
_FLAGS = {**_TRUTH, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
_INFINITE = {sign + word: float(sign + word) for sign in ("", "+", "-") for word in ("inf", "infinity")}
_SIGNS = set("%$€£¥")
_DIGITS = re.compile(r"[-+]?[\d.,\s'’]*\d[\d.,\s'’]*(?:e[-+]?\d+)?", re.IGNORECASE)
_UNIT = re.compile(r"^([-+]?)([$€£¥])\s*|\s*([%$€£¥])$")
_CODE = re.compile(r"0\d+")
_INTEGER = re.compile(r"[-+]?\d+")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?\s*(?:Z|[-+]\d\d:?\d\d)?)?")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ISO, CLOCK, PERCENT = "iso", "clock", "%"
_APART = {".": ",", ",": ".", "": ""}  # what may stand between thousands, besides spaces and apostrophes


def _numbers_with(decimal: str) -> re.Pattern[str]:
    """Numbers with this decimal sign, and thousands set apart in groups or not at all."""
    point = re.escape(decimal or ".")
    grouped = rf"\d{{1,3}}(?P<apart>[{_APART[decimal]}\s'’])(?:\d{{2,3}}(?P=apart))*\d{{3}}"
    return re.compile(rf"[-+]?(?:(?:{grouped}|\d+)(?:{point}\d*)?|{point}\d+)(?:e[-+]?\d+)?", re.IGNORECASE)


_NUMBERS = {decimal: _numbers_with(decimal) for decimal in _APART}
# Translates numbers to the way Python writes them.
_BARE = {
    decimal: str.maketrans({**dict.fromkeys(f"{apart}'’"), **({decimal: "."} if decimal else {})})
    for decimal, apart in _APART.items()
}


@dataclasses.dataclass(frozen=True)
class Reading:
    """How the values of a column are read.

    `decimal` is the decimal sign of numbers in text, or "" if none was seen; `units` is the sign that may stand beside
    them, such as "€", or must, "%"; `form` is the format of dates in text, "iso" for dates that came as such, and
    "clock" or "duration" for numbers that are times.
    """

    kind: str
    decimal: str = ""
    units: str = ""
    form: str = ""

    @property
    def what(self) -> str:
        """The values in words."""
        if self.units == PERCENT:
            return "numbers with %"
        words = {"number": "numbers", "flag": "true or false", "moment": "dates", "text": "text"}
        return {CLOCK: "times of day", "duration": "durations"}.get(
            self.form, words.get(self.kind, self.kind)
        )


@dataclasses.dataclass(frozen=True)
class Column:
    """Values of one kind: float64 with nan (number, flag 0 or 1, moment in seconds since 1970), or text with None."""

    kind: str
    values: np.ndarray
    type: str = ""  # as its library calls it, for messages
    infinite: int = 0  # values that were, and count as missing
    unread: int = 0  # values of another kind, which count as missing
    found: Reading | None = None  # None for numbers that came as such

    @property
    def reading(self) -> Reading:
        """How it was read, and how new rows are to be."""
        return self.found or Reading(self.kind)

    @property
    def missing(self) -> np.ndarray:
        if self.kind in ("text", "other"):
            return np.array([value is None for value in self.values], dtype=bool)
        return np.isnan(self.values)

    def taken(self, rows: np.ndarray) -> Column:
        return dataclasses.replace(self, values=self.values[rows])

    def read_as(self, reading: Reading, texts: Callable[[], Sequence[str | None]]) -> Column:
        """Values that came with a type, as training rows had them; `texts` writes them down."""
        own = self.reading
        if reading.kind == "text" and self.kind != "other":
            return text_column(texts(), reading)
        same = own.form == reading.form and reading.units != PERCENT
        if self.kind == reading.kind and (self.kind == "moment" or same):
            return dataclasses.replace(self, found=reading)
        values = np.full(len(self.values), np.nan)
        if {self.kind, reading.kind} == {"flag", "number"} and same:
            fits = np.isin(self.values, (0.0, 1.0)) | (reading.kind == "number")
            values = np.where(fits, self.values, np.nan)
        lost = self.infinite + int((~self.missing).sum()) - int((~np.isnan(values)).sum())
        held = values if reading.kind != "text" else np.full(len(values), None, dtype=object)
        return Column(reading.kind, held, self.type, unread=lost, found=reading)


def arrow() -> ModuleType:
    with needing("a table of named columns or text"):
        import pyarrow
        import pyarrow.compute
    return pyarrow


def numbers_column(values: np.ndarray, name: str = "", found: Reading | None = None) -> Column:
    """Floats (n,); infinite ones count as missing."""
    infinite = np.isinf(values)
    return Column("number", np.where(infinite, np.nan, values), name, int(infinite.sum()), found=found)


def text_column(values: Unchecked, reading: Reading | None = None) -> Column:
    """Text (n,) with None, read as `reading` says; without it as numbers or moments if nearly all values are."""
    pa = arrow()
    if not isinstance(values, pa.ChunkedArray):
        values = pa.chunked_array([pa.array(values, pa.string())])
    values = values.cast(pa.string())
    numbers = _plain_numbers(values, reading)
    if numbers is not None:
        return numbers
    texts = pa.compute.utf8_trim_whitespace(values)
    gone = pa.compute.is_in(pa.compute.utf8_lower(texts), value_set=pa.array(sorted(MISSING)))
    texts = pa.compute.if_else(gone, pa.scalar(None, pa.string()), texts)
    numbers = _plain_numbers(texts, reading)
    if numbers is not None:
        return numbers
    held = np.array([*texts.to_pylist(), None], dtype=object)[:-1]
    given = [v for v in held if v is not None]
    if reading is None:
        if not given:
            return Column("number", np.full(len(held), np.nan), "string")
        reading = inferred(given)
    if reading.kind == "text":
        return Column("text", held, "string", found=reading)
    one = _reader(reading)
    known: dict[str | None, float] = {None: math.nan, **{each: one(each) for each in dict.fromkeys(given)}}
    read = np.array([known[each] for each in held], dtype=float)
    lost = len(given) - int((~np.isnan(read)).sum())
    column = numbers_column(read, "string", reading)
    return dataclasses.replace(column, kind=reading.kind, unread=lost)


def _plain_numbers(texts: Unchecked, reading: Reading | None) -> Column | None:
    """The same as below for numbers without any signs, without a look at each of them."""
    pa = arrow()
    if reading is not None and (
        reading.kind != "number" or reading.decimal == "," or reading.form or reading.units == PERCENT
    ):
        return None
    if reading is None and texts.null_count == len(texts):
        return None
    try:
        read = pa.compute.cast(texts, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    if reading is None:
        point = pa.compute.any(pa.compute.match_substring(texts, ".")).as_py()
        reading = Reading("number", "." if point else "")
        given = texts.drop_null().to_pylist()
        if _are_codes(given, read[~np.isnan(read)]):
            return None
    return numbers_column(read, "string", reading)


def inferred(given: Sequence[str]) -> Reading:
    """The format of text (n,) without missing values, n >= 1."""
    counts = Counter(given)
    least = _MOSTLY * len(given)

    def enough(fits: Callable[[str], object]) -> bool:
        return sum(count for v, count in counts.items() if fits(v)) >= least

    if all(v.lower() in _TRUTH for v in counts):
        return Reading("flag")
    if enough(lambda v: v[-1].isdigit() or v[-1] in _SIGNS):
        bare = [each for each, _ in map(_split, counts) if _DIGITS.fullmatch(each)]
        reading = Reading("number", _decimal(bare), _unit(counts))
        read = {v: _number(v, reading) for v in counts}
        if enough(lambda v: not math.isnan(read[v])) and not _are_codes(
            list(read), np.array(list(read.values()))
        ):
            return reading
    if enough(_CLOCK.fullmatch):
        return Reading("number", form=CLOCK)
    form = _form_of_dates(given, enough, least)
    return Reading("text") if form is None else Reading("moment", form=form)


def _are_codes(given: Sequence[str], read: np.ndarray) -> bool:
    """Digits that name something: all with leading zeros, or so many that floats cannot tell them apart."""
    if all(_CODE.fullmatch(v) for v in given):
        return True
    long = bool(np.any(np.abs(read) > EXACT)) and all(map(_INTEGER.fullmatch, given))
    return long and len(set(given)) > len(np.unique(read))


def _reader(reading: Reading) -> Callable[[str], float]:
    """Reads one value, nan if it is of another kind."""
    if reading.kind == "flag":
        return lambda text: _FLAGS.get(text.lower(), math.nan)
    if reading.form == CLOCK:
        return _seconds
    if reading.kind == "moment":
        return lambda text: _moment(text, reading.form)
    return lambda text: math.nan if reading.form else _number(text, reading)


def _split(text: str) -> tuple[str, str]:
    """A number in text without its unit, and the unit."""
    if _SIGNS.isdisjoint(text):
        return text, ""
    units = {sign for match in _UNIT.finditer(text) for sign in match.groups()[1:] if sign}
    return _UNIT.sub(lambda match: match.group(1) or "", text), "".join(sorted(units))


def _unit(counts: Counter[str]) -> str:
    """The most frequent unit. Numbers may lack a currency, but 0.5 among percents may be one, or fifty of them."""
    totals = Counter[str]()
    for text, count in counts.items():
        totals[_split(text)[1]] += count
    best = max((unit for unit in totals if unit), key=totals.__getitem__, default="")
    return "" if best == PERCENT and totals[""] > totals[best] else best


def _number(text: str, reading: Reading) -> float:
    text, unit = _split(text)
    if unit != reading.units and (unit or reading.units == PERCENT):
        return math.nan
    if not _NUMBERS[reading.decimal].fullmatch(text):
        return _INFINITE.get(text.lower(), math.nan)
    return float("".join(text.translate(_BARE[reading.decimal]).split()))


def _decimal(given: Sequence[str]) -> str:
    """The decimal sign: a comma that comes last, once, and not always before three digits; else the point."""
    with_comma = [v for v in given if "," in v]
    if not with_comma:
        several = any(v.count(".") > 1 for v in given)
        return "," if several else "." if any("." in v for v in given) else ""
    if any(v.count(",") > 1 or "." in v.partition(",")[2] for v in with_comma):
        return "."
    if any(v.count(".") > 1 for v in given):
        return ","
    return "." if all(re.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}", v) for v in with_comma) else ","


def _seconds(text: str) -> float:
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return math.nan
    hours, minutes, seconds = clock.groups()
    return 3600.0 * int(hours) + 60.0 * int(minutes) + float(seconds or 0.0)


def _moment(text: str, form: str) -> float:
    """Seconds since 1970. ISO dates of any length are understood besides: they cannot be mistaken."""
    try:
        if _ISO.fullmatch(text):
            return since_1970(datetime.datetime.fromisoformat(text))
        return math.nan if form == ISO else since_1970(datetime.datetime.strptime(text, form))
    except ValueError:
        return math.nan


def since_1970(moment: datetime.datetime) -> float:
    """Seconds; a moment without a time zone is taken as UTC."""
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return float((zoned - _EPOCH) // datetime.timedelta(microseconds=1)) / 1e6


def _form_of_dates(
    given: Sequence[str], enough: Callable[[Callable[[str], object]], bool], least: float
) -> str | None:
    """The format that reads most of the text, if it reads nearly all of it."""
    sample = given[0]
    if not re.search(r"\d[-/. ,T]\w|^\d{8}", sample) or len(sample) > 40:
        return None
    pa = arrow()
    column, tried = pa.array(given, pa.string()), []
    for form in (day + clock for day in _DATES for clock in _CLOCKS):
        read = pa.compute.strptime(column, format=form, unit="s", error_is_null=True)
        tried.append((len(read) - read.null_count, form))
    # Arrow takes 30 February for 2 March, and 21 for the year 21: what it finds is read again.
    for count, form in (max(tried, key=lambda each: each[0]), (least, ISO)):
        read = {v: _moment(v, form) for v in set(given)} if count >= least else {}
        if read and enough(lambda v: not math.isnan(read[v])):  # noqa: B023  called at once
            return form
    return None
