"""A row is encoded by itself: alone, among others, and after the model was saved, to the last bit."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearkernel as nk
from nearkernel.estimators import PrepareTable

DAY = datetime.datetime(2020, 1, 1)
MISSING = (None, "", "NA", " ? ", "null")


def _number(rng, style):
    value = rng.normal() * 10.0 ** rng.integers(-2, 7)
    if style == "typed":
        return value
    whole, fraction = f"{abs(value):,.3f}".split(".")
    sign = "-" if value < 0 else ""
    return {
        "plain": f"{value:.{rng.integers(1, 5)}f}",
        "integer": f"{value:.0f}",
        "english": f"{sign}{whole}.{fraction[: rng.integers(1, 4)]}",
        "german": f"{sign}{whole.replace(',', '.')},{fraction[: rng.integers(1, 4)]}",
        "french": f"{sign}{whole.replace(',', ' ')},{fraction} €",
        "swiss": f"{sign}{whole.replace(',', chr(39))}.{fraction}",
        "thousands": f"{sign}{whole}",
        "dollars": f"{sign}${whole}.{fraction[:2]}",
        "percent": f"{value:.1f} %",
        "scientific": f"{value:.3e}",
    }[style]


def _cell(rng, style):
    """One value of a column of this style."""
    if style.startswith("%"):
        moment = DAY + datetime.timedelta(days=int(rng.integers(1500)), seconds=int(rng.integers(86400)))
        return moment.strftime(style)
    moment = DAY + datetime.timedelta(seconds=int(rng.integers(10**8)), microseconds=int(rng.integers(10**6)))
    return {
        "iso": lambda: moment.isoformat(),
        "zone": lambda: f"{moment:%Y-%m-%dT%H:%M:%S}+02:00",
        "datetime": lambda: moment,
        "date": lambda: moment.date(),
        "time": lambda: moment.time(),
        "clock": lambda: f"{moment:%H:%M}",
        "flag": lambda: bool(rng.integers(2)),
        "words": lambda: ("true", "False", "TRUE")[rng.integers(3)],
        "integers": lambda: int(rng.integers(-5, 10**9)),
        "ids": lambda: 2**62 + int(rng.integers(4)),
        "long": lambda: 2**70 + int(rng.integers(4)),
        "levels": lambda: ("a", " b", "1.10", "2020-01-01", "1234567", "true", "1,5", "007", "c ")[
            rng.integers(9)
        ],
        "codes": lambda: ("007", "010", "00")[rng.integers(3)],
        "mixed": lambda: (1, "x", 2.5, 3.0, "7", True)[rng.integers(6)],
        "days": lambda: moment if rng.random() < 0.5 else f"{moment:%Y-%m-%d %H:%M:%S}",
        "mostly": lambda: "oops" if rng.random() < 0.02 else f"{rng.normal():.2f}",
        "side": lambda: rng.normal() if rng.random() < 0.5 else f"{rng.normal():.2f}".replace(".", ","),
    }[style]()


NUMBERS = ("typed", "plain", "integer", "english", "german", "french", "swiss", "thousands", "dollars", "percent",
           "scientific")  # fmt: skip
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%Y-%m-%d %H:%M:%S", "%d %b %Y")
OTHERS = ("iso", "zone", "datetime", "date", "time", "clock", "flag", "words", "integers", "ids", "long", "levels",
          "codes", "mixed", "days", "mostly", "side")  # fmt: skip
STYLES = (*NUMBERS, *DATES, *OTHERS)


def column(rng, style, rows, gaps):
    values = [_number(rng, style) if style in NUMBERS else _cell(rng, style) for _ in range(rows)]
    text = any(isinstance(value, str) for value in values)
    for i in np.flatnonzero(rng.random(rows) < gaps):
        values[i] = MISSING[rng.integers(len(MISSING))] if text else None
    return values


def same_alone(prepared, frame, make=dict):
    """Encodes the rows of a dict of columns at once and one by one."""
    rows = len(next(iter(frame.values())))
    together = prepared.transform(make(frame))
    alone = [
        prepared.transform(make({name: values[i : i + 1] for name, values in frame.items()}))
        for i in range(rows)
    ]
    np.testing.assert_array_equal(np.concatenate(alone), together, strict=True)
    return together


@pytest.mark.parametrize("style", STYLES)
def test_a_row_is_encoded_alone_as_among_others(style, tmp_path):
    rng = np.random.default_rng(STYLES.index(style))
    for gaps in (0.0, 0.2):
        frame = {"a": column(rng, style, 40, gaps), "b": rng.normal(size=40).tolist()}
        prepared = PrepareTable().fit(frame)
        assert [plan.name for plan in prepared.columns_] == ["a", "b"], prepared.remarks_
        trained = same_alone(prepared, frame)
        np.testing.assert_array_equal(prepared.transform(frame), PrepareTable().fit_transform(frame))
        prepared.save(tmp_path / "prepared.nk")
        again = nk.load(tmp_path / "prepared.nk")
        np.testing.assert_array_equal(same_alone(again, frame), trained)
        new = {"a": column(rng, style, 12, gaps), "b": rng.normal(size=12).tolist()}
        same_alone(again, new)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(STYLES), min_size=2, max_size=2), st.integers(0, 2**32 - 1))
def test_new_rows_of_any_style_are_read_by_the_format_of_training_rows(styles, seed):
    """Also where they are of another kind than the training rows: then every value is read, or missing with a word."""
    rng = np.random.default_rng(seed)
    fitted, new = ({"a": column(rng, style, 30, 0.1), "b": list(range(30))} for style in styles)
    prepared = PrepareTable().fit(fitted)
    found = same_alone(prepared, new)
    assert np.isfinite(found).all()
    prepared.surprises(new)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(STYLES), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_rows_of_a_list_are_encoded_as_columns_of_a_dict(styles, seed):
    rng = np.random.default_rng(seed)
    columns = [column(rng, style, 20, 0.1) for style in styles]
    rows = [list(row) for row in zip(*columns, strict=True)]
    named = {f"x{i}": values for i, values in enumerate(columns)}
    prepared = PrepareTable().fit(rows)
    found = prepared.transform(rows)
    np.testing.assert_array_equal(np.concatenate([prepared.transform([row]) for row in rows]), found)
    np.testing.assert_array_equal(PrepareTable().fit_transform(named), found)


def test_true_in_a_row_of_numbers_stays_true():
    prepared = PrepareTable().fit([[True, 1.5], ["x", 2.5], [1, 3.5]] * 9)
    assert (
        prepared.transform([[True, 1.5]]).tolist()
        == prepared.transform([[True, 1.5], ["x", 2.5]])[:1].tolist()
    )


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.text(alphabet="0123456789.,-+e €%'inftrue:/T ", max_size=12), min_size=1, max_size=12))
def test_any_text_is_read_alone_as_among_others(texts):
    frame = {"a": texts, "b": list(range(len(texts)))}
    same_alone(PrepareTable().fit(frame), frame)
    same_alone(PrepareTable().fit({"a": ["1,5", "2,25"] * 9, "b": list(range(18))}), frame)
    same_alone(PrepareTable().fit({"a": ["1.5", "2"] * 9, "b": list(range(18))}), frame)
    same_alone(PrepareTable().fit({"a": ["01/02/2020", "25/02/2020"] * 9, "b": list(range(18))}), frame)
    same_alone(PrepareTable().fit({"a": texts, "b": list(range(len(texts)))}), frame, pa.table)
