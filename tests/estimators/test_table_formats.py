"""New rows are read in the format of the training rows; what does not fit it is missing, and `surprises` says so."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

import nearkernel as nk
from nearkernel._saved.file import read_model, write_model
from nearkernel.estimators import PrepareTable

B = np.random.default_rng(0).normal(size=40)
DAYS = [f"{1 + i % 28:02d}/02/2020" for i in range(40)]


def fitted(values):
    return PrepareTable().fit({"a": values, "b": B})


def encoded(prepared, *values):
    """What becomes of new values of the column a."""
    rows = len(values)
    return prepared.transform({"a": list(values), "b": [0.0] * rows})[:, :-1]


def told(prepared, *values):
    return prepared.surprises({"a": list(values), "b": [0.0] * len(values)})


@pytest.mark.parametrize(
    "training, new, value",
    [
        (["1,5", "2,25", "3,125", "1,500"] * 10, "1,500", 1.5),
        (["1,234", "2,345.5"] * 20, "1,500", 1500.0),
        (["1.5", "2.25"] * 20, "1,500", 1500.0),
        (["1,5", "2,25"] * 20, "1.500", 1500.0),
        (["1,5", "2,25"] * 20, 1.5, 1.5),
        (["1.234.567", "2"] * 20, "1.500", 1500.0),
        (["1 234,5", "2,5"] * 20, "1\u202f500", 1500.0),
        (["$1,200", "$3"] * 20, "5", 5.0),
        (["-$1.5", "$3.25"] * 20, "-$2.5", -2.5),
        (["12 %", "13.5 %"] * 20, "5%", 5.0),
        (["7", "10"] * 20, "007", 7.0),
        (["1e-3", "2"] * 20, "1e3", 1000.0),
        (["10:30", "11:45"] * 20, "00:01", 60.0),
        (["10:30", "11:45"] * 20, datetime.time(0, 1), 60.0),
        ([True, False] * 20, "TRUE", 1.0),
        (["true", "false"] * 20, True, 1.0),
        (["true", "false"] * 20, "1", 1.0),
        ([1, 0, 5, 7] * 10, True, 1.0),
        ([decimal.Decimal("1.10"), decimal.Decimal("2.2")] * 20, "1.10", 1.1),
    ],
)
def test_numbers_are_read_as_in_training(training, new, value):
    prepared = fitted(training)
    assert encoded(prepared, new).tolist() == [[value]] and told(prepared, new) == []


@pytest.mark.parametrize(
    "training, new, what",
    [
        ([1.5, 2.5] * 20, "abc", "numbers"),
        ([1.5, 2.5] * 20, "1,5", "numbers"),
        (["15", "225"] * 20, "1,500", "numbers"),
        (["1.5", "2.25"] * 20, "1,5", "numbers"),
        (["1,5", "2,25"] * 20, "1.5", "numbers"),
        (["12", "13"] * 20, "12 %", "numbers"),
        (["$12", "$13"] * 20, "€5", "numbers"),
        (["12 %", "13 %"] * 20, "0.12", "numbers with %"),
        (["12 %", "13 %"] * 20, 0.12, "numbers with %"),
        ([1.5, 2.5] * 20, datetime.date(2020, 1, 1), "numbers"),
        ([1.5, 2.5] * 20, {"x": 1}, "numbers"),
        ([1.5, 2.5] * 20, datetime.time(1), "numbers"),
        (["10:30", "11:45"] * 20, 0.5, "times of day"),
        ([datetime.timedelta(1), datetime.timedelta(2)] * 20, 3600.0, "durations"),
        ([True, False] * 20, 2, "true or false"),
        ([True, False] * 20, "yes", "true or false"),
        (DAYS, 43831, "dates"),
        (DAYS, "43831", "dates"),
        (DAYS, "30/02/2020", "dates"),
        (DAYS, "01/02/20", "dates"),
        (DAYS, "02/28/2020", "dates"),
        ([datetime.date(2020, 1, 1 + i % 9) for i in range(40)], 43831.0, "dates"),
        ([datetime.date(2020, 1, 1 + i % 9) for i in range(40)], "01/02/2020", "dates"),
        (["x", "y"] * 20, {"x": 1}, "text"),
    ],
)
def test_values_of_another_kind_or_format_are_missing_with_a_word(training, new, what):
    prepared = fitted(training)
    np.testing.assert_array_equal(encoded(prepared, new), encoded(prepared, None))
    assert told(prepared, new) == [
        f"a: 1 of 1 values are not {what} as in the training rows, taken as missing"
    ]
    assert told(prepared, None) == ["a: 1 of 1 values are missing"]


@pytest.mark.parametrize(
    "level, new",
    [
        ("1234567", "1234567"),
        ("1234567", 1234567),
        ("1.10", "1.10"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01", datetime.date(2020, 1, 1)),
        ("true", "true"),
        ("007", " 007 "),
        ("3", 3.0),
        (3.0, "3"),
        ("1,5", "1,5"),
    ],
)
def test_levels_are_as_they_were_written(level, new):
    prepared = fitted([level, "abc"] * 20)
    assert encoded(prepared, new).sum() == 1.0 and told(prepared, new) == []
    np.testing.assert_array_equal(encoded(prepared, new), encoded(prepared, level))


def test_days_first_stay_first():
    prepared = fitted(DAYS)
    np.testing.assert_array_equal(
        encoded(prepared, "03/02/2020"), encoded(prepared, datetime.date(2020, 2, 3))
    )
    for iso in (
        "2020-02-03",
        "2020-02-03T00:00:00",
        "2020-02-03 01:00:00+01:00",
        datetime.datetime(2020, 2, 3),
    ):
        np.testing.assert_array_equal(encoded(prepared, iso), encoded(prepared, "03/02/2020"))


def test_dates_that_do_not_exist_are_no_dates():
    assert set(fitted(["30.02.2021", "01.03.2021"] * 20).get_feature_names_out()) >= {"a=30.02.2021"}
    assert set(fitted(["01.02.21", "03.04.21"] * 20).get_feature_names_out()) >= {"a=01.02.21"}


def test_integers_beyond_the_floats_are_names():
    for first in (2**53, 2**62, 2**70, 10**400):
        values = [first + 2 * i % 5 for i in range(40)]
        assert len(fitted(values).get_feature_names_out()) == 6
        assert len(PrepareTable().fit([[each] for each in values]).get_feature_names_out()) == 5
    assert len(fitted(np.array([2**62 + i % 5 for i in range(40)])).get_feature_names_out()) == 6
    codes = fitted([f"{i % 2 + 7:03d}" for i in range(40)])
    assert told(codes, 7) == ["a: 1 of 1 values belong to unseen or rare levels"]


def test_amounts_in_two_currencies_are_no_numbers():
    assert len(fitted(["$5", "€5"] * 20).get_feature_names_out()) == 3
    for few, many in (("€5", "$"), ("5 %", ""), ("5", " %")):
        values = [f"{i % 7}{many}" if many == " %" else f"{many}{i % 7}" for i in range(39)]
        assert "a: 1 of 40 values are not numbers" in str(fitted([*values, few]).remarks_[0])


def test_values_called_as_a_column_of_the_encoding_have_no_second_one():
    prepared = fitted(["(other)"] * 5 + ["x"] * 20 + ["y"] * 13 + ["z", "(missing)"])
    assert list(prepared.get_feature_names_out()) == ["a=x", "a=y", "a=(other)", "a=(missing)", "b"]
    assert encoded(prepared, "(other)", "new", None).tolist() == [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert (
        fitted(["(other)", "(other)", "u", "v"] + [f"w{i}" for i in range(12)] * 3)
        .columns_[0]
        .levels.count("(other)")
        == 1
    )


@pytest.mark.parametrize(
    "values",
    (
        np.array([1e6, 1, 2, 3] * 10),
        np.array([10**6, 1, 2, 3] * 10),
        np.array([True, False, True, True] * 10),
        np.array(["2020-01-01", "2020-01-02", "2020-02-01", "2020-03-01"] * 10, "M8[ns]"),
        np.array(["q", "u", "v", "w"] * 10),
        np.array(["q", 1, "v", 2.5] * 10, dtype=object),
    ),
    ids=lambda values: str(values.dtype),
)
def test_masked_values_are_missing(values):
    gone = np.arange(40) % 4 == 0
    masked = np.ma.array(values, mask=gone)
    plain = [None if out else value for out, value in zip(gone, values.astype(object), strict=True)]
    if values.dtype.kind == "M":
        plain = [
            None if out else value for out, value in zip(gone, values.astype("M8[us]").tolist(), strict=True)
        ]
    expected = fitted(plain)
    np.testing.assert_array_equal(
        PrepareTable().fit_transform({"a": masked, "b": B}), expected.transform({"a": plain, "b": B})
    )
    records = np.ma.array(
        list(zip(values.astype("M8[us]") if values.dtype.kind == "M" else values, B, strict=True)),
        mask=list(zip(gone, gone & False, strict=True)),
        dtype=[("a", values.dtype), ("b", float)],
    )
    np.testing.assert_array_equal(
        PrepareTable().fit_transform(records), expected.transform({"a": plain, "b": B})
    )
    assert encoded(expected, np.ma.masked).tolist() == encoded(expected, None).tolist()


def test_a_masked_array_of_rows_is_refused():
    with pytest.raises(ValueError, match="`X` is a masked array with 1 masked value"):
        PrepareTable().fit(np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[1, 0], [0, 0]]))


@pytest.mark.parametrize(
    "table",
    (
        {1: B, "1": B**2},
        {None: B, "None": B**2},
        pa.Table.from_arrays([pa.array(B), pa.array(B**2)], names=["1", "1"]),
        pa.RecordBatch.from_arrays([pa.array(B), pa.array(B**2)], names=["1", "1"]),
    ),
    ids=("dict", "None", "Table", "RecordBatch"),
)
def test_two_columns_of_one_name_are_refused(table):
    match = (
        "`X` could not be read as a table: more than one column is called '.*': rename or remove the others"
    )
    with pytest.raises(ValueError, match=match):
        PrepareTable().fit(table)
    with pytest.raises(ValueError, match=match):
        PrepareTable().fit({"1": B, "None": B**2}).transform(table)


def test_records_are_a_table():
    records = np.array([(1.0, "x"), (3.0, "y"), (5.0, "x")], dtype=[("q", float), ("w", "U3")])
    prepared = PrepareTable().fit(records)
    assert list(prepared.get_feature_names_out()) == ["q", "w=x", "w=y"]
    new = np.array([("y", 9.0)], dtype=[("w", "U3"), ("q", float)])
    assert prepared.transform(new).tolist() == [[9.0, 0.0, 1.0]]


def test_rows_in_a_list_keep_their_types():
    prepared = PrepareTable().fit([[1, "1,5"], [2.5, "2,25"], [None, "3"]])
    assert prepared.transform([[7, "1,500"]]).tolist() == [[7.0, 0.0, 1.5]]


def test_complex_numbers_are_refused_in_any_table():
    with pytest.raises(ValueError, match="Complex data not supported"):
        fitted(B + 1j)
    with pytest.raises(ValueError, match="Complex data not supported"):
        fitted([1j, "x"] * 20)


def test_no_rows_and_no_columns():
    prepared = PrepareTable().fit({"a": ["x", "y"] * 20, "d": DAYS, "b": B})
    assert prepared.transform({"a": [], "d": [], "b": []}).shape == (0, len(prepared.get_feature_names_out()))
    nothing = PrepareTable().fit({"a": [1.0, 1.0]})
    assert nothing.transform({}).shape == (0, 1) and nothing.transform({"z": [1, 2]}).shape == (2, 1)


def test_columns_that_were_not_there_are_not_read():
    prepared = fitted([1.5, 2.5] * 20)
    assert prepared.transform({"c": [1j], "b": [0.0], "a": [7.0]}).tolist() == [[7.0, 0.0]]


def test_model_files_without_formats_are_read_and_say_so(tmp_path):
    """As files were written before formats were kept: then the new rows decide, except that levels are text."""
    frame = {"a": ["1,5", "2,25"] * 20, "k": ["1234567", "abc"] * 20, "d": DAYS, "b": B}
    prepared = PrepareTable().fit(frame)
    del prepared._readings
    write_model(prepared, tmp_path / "old.nk")
    old, _ = read_model(tmp_path / "old.nk")
    np.testing.assert_array_equal(old.transform(frame), PrepareTable().fit_transform(frame))
    row = {"a": ["1,5"], "k": ["1234567"], "d": ["28/02/2020"], "b": [0.0]}
    np.testing.assert_array_equal(old.transform(row), PrepareTable().fit(frame).transform(row))
    assert old.surprises(row) == [
        "the model file does not say how its columns are written, so new rows are read by themselves: fit and save the "
        "model again"
    ]
    wrong = {"a": ["2020-01-01"], "k": [1234567], "d": [43831], "b": ["abc"]}
    assert len(old.surprises(wrong)) == 4 and np.isfinite(old.transform(wrong)).all()
    nk.save(PrepareTable().fit(frame), tmp_path / "new.nk")
    assert nk.load(tmp_path / "new.nk").surprises(row) == []
