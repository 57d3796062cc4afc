"""Tables of any library and any kind become numbers: the same for training rows and new ones, and nothing is hidden."""

import collections
import datetime

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import nearkernel as nk
from nearkernel.estimators import AutoRegressor, PrepareTable
from nearkernel.estimators.tables.columns import Category, Moment, Number
from nearkernel.estimators.tables.frames import frame_of

N = 60
RNG = np.random.default_rng(0)


def columns():
    day = datetime.date(2020, 1, 1)
    return {
        "id": [7 * i + i % 3 for i in range(N)],
        "area": [None if i == 3 else float(i % 11) for i in range(N)],
        "sold": [day + datetime.timedelta(days=5 * i) for i in range(N)],
        "kind": ["abc"[i % 3] for i in range(N)],
        "odd": ["common"] * (N - 1) + ["rare"],
        "note": [f"note {i}" for i in range(N)],
        "constant": [1.5] * N,
        "empty": [None] * N,
        "copy": [None if i == 3 else float(i % 11) for i in range(N)],
        "new": [i % 4 == 0 for i in range(N)],
        "euro": [f"{i}.{i % 10}00,5 €" for i in range(1, N + 1)],
        "german": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2021" for i in range(N)],
    }


def plan(prepared, name):
    return next(each for each in prepared.columns_ if each.name == name)


def test_every_kind_of_column_is_used_or_left_out_with_a_reason():
    prepared = PrepareTable().fit(columns())
    said = {remark.column: (remark.found, remark.done) for remark in prepared.remarks_}
    assert said["id"] == ("a different number in each row, like an id", "left out")
    assert said["area"] == ("1 of 60 values are missing", "filled with the median and flagged")
    assert said["sold"] == ("dates", "made 5 columns")
    assert said["kind"] == ("3 levels", "one-hot encoded")
    assert said["note"] == ("text such as 'note 0' (60 distinct values)", "left out")
    assert said["constant"] == ("always 1.5", "left out")
    assert said["empty"] == ("all values are missing", "left out")
    assert said["copy"] == ("the same as area", "left out")
    assert "new" not in said and "euro" not in said
    assert [each.name for each in prepared.columns_] == [
        "area",
        "sold",
        "kind",
        "odd",
        "new",
        "euro",
        "german",
    ]
    x = prepared.transform(columns())
    assert x.shape == (N, len(prepared.get_feature_names_out())) and np.isfinite(x).all()
    euro = list(prepared.get_feature_names_out()).index("euro")
    np.testing.assert_array_equal(x[:3, euro], [1100.5, 2200.5, 3300.5])
    assert str(prepared.remarks_[0]) == "id: a different number in each row, like an id, left out"


def test_missing_values_are_filled_with_what_training_rows_say():
    prepared = PrepareTable().fit({"a": [1.0, 2.0, 9.0, None], "b": [True, True, False, None]})
    assert plan(prepared, "a") == Number("a", 2.0, True) and plan(prepared, "b") == Number("b", 1.0, True)
    new = prepared.transform({"a": [None, 5.0], "b": [None, False]})
    np.testing.assert_array_equal(new, [[2, 1, 1, 1], [5, 0, 0, 0]])
    unflagged = PrepareTable().fit({"a": [1.0, 2.0, 9.0]})
    np.testing.assert_array_equal(unflagged.transform({"a": [None]}), [[2.0]])
    assert unflagged.surprises({"a": [None, 1.0]}) == ["a: 1 of 2 values are missing"]


def test_infinite_values_are_missing_ones():
    prepared = PrepareTable().fit(np.array([[1.0], [np.inf], [3.0], [np.nan]]))
    assert str(prepared.remarks_[0]) == "x0: 1 of 4 values are infinite, taken as missing"
    np.testing.assert_array_equal(prepared.transform([[-np.inf]]), [[2.0, 1.0]])


def test_levels_that_are_rare_or_unseen_share_a_column():
    levels = ["a"] * 50 + ["b"] * 40 + ["c", "d", None]
    prepared = PrepareTable().fit({"k": levels})
    assert plan(prepared, "k") == Category("k", ("a", "b", "(other)", "(missing)"))
    assert list(prepared.get_feature_names_out()) == ["k=a", "k=b", "k=(other)", "k=(missing)"]
    np.testing.assert_array_equal(
        prepared.transform({"k": ["b", "never", None]}), [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    )
    assert prepared.surprises({"k": ["b", "never", None]}) == [
        "k: 1 of 3 values belong to unseen or rare levels"
    ]
    known = PrepareTable().fit({"k": ["a", "b"] * 10})
    np.testing.assert_array_equal(known.transform({"k": ["never", None]}), np.zeros((2, 2)))


def test_dates_become_days_and_circles():
    moments = [datetime.datetime(2024, 1, 1 + i, 6 * (i % 4)) for i in range(28)]
    prepared = PrepareTable().fit({"t": moments})
    assert plan(prepared, "t").cycles == ("week", "day")
    assert plan(prepared, "t").first == moments[0].replace(tzinfo=datetime.UTC).timestamp()
    x = prepared.transform({"t": [datetime.datetime(2024, 1, 8, 6)]})
    np.testing.assert_allclose(x[0, 0], 7.25)
    np.testing.assert_allclose(x[0, 3:], [1.0, 0.0], atol=1e-12)  # a quarter of the day
    assert isinstance(
        plan(PrepareTable().fit({"t": ["2024-01-05 10:30"] * 3 + ["2024-03-01 11:00"]}), "t"), Moment
    )


@pytest.mark.parametrize(
    "text, value",
    [
        ("1,5", 1.5),
        ("1.234,5", 1234.5),
        ("1,234", 1234.0),
        ("1,234.5", 1234.5),
        ("12 %", 12.0),
        ("$1,200", 1200.0),
        ("1e-3", 0.001),
        ("1 234,5", 1234.5),
        ("-7", -7.0),
    ],
)
def test_numbers_in_text(text, value):
    column = frame_of({"a": [text, None, "?"]})["a"]
    assert column.kind == "number" and column.values[0] == value and np.isnan(column.values[1:]).all()


def test_text_that_is_no_number_stays_text():
    assert frame_of({"a": ["001", "002", "010"]})["a"].kind == "text"  # codes
    assert frame_of({"a": ["12", "a"]})["a"].kind == "text"
    mostly = frame_of({"a": [str(i) for i in range(99)] + ["oops"]})["a"]
    assert mostly.kind == "number" and mostly.unread == 1
    prepared = PrepareTable().fit({"a": mostly, "b": mostly})
    assert "a: 1 of 100 values are not numbers, taken as missing" in map(str, prepared.remarks_)


def test_row_numbers_are_ids_and_years_are_not():
    count, random = np.arange(40.0), np.random.default_rng(0).permutation(1000)[:40].astype(float)
    kept = PrepareTable().fit(
        {"n": count, "year": count + 1980, "user_id": random, "value": random + 1, "paid": random + 2}
    )
    assert [each.name for each in kept.columns_] == ["year", "value", "paid"]


class ArrowStream:
    """A table of another library that offers its columns the Arrow way, as pandas and polars do."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def frames():
    table = pa.table(columns())
    yield "dict", columns()
    yield "Arrow", table
    yield "stream", ArrowStream(table)
    dictionary = table.set_column(3, "kind", table.column("kind").dictionary_encode())
    yield "categories", dictionary
    yield "views", table.set_column(3, "kind", table.column("kind").cast(pa.string_view()))


@pytest.mark.parametrize("frame", [pytest.param(frame, id=name) for name, frame in frames()])
def test_tables_of_all_libraries_give_the_same_numbers(frame):
    np.testing.assert_array_equal(
        PrepareTable().fit_transform(frame), PrepareTable().fit_transform(columns()), strict=True
    )


@pytest.mark.parametrize("library", ("pandas", "polars"))
def test_frames_of_pandas_and_polars(library):
    module = pytest.importorskip(library)
    frame = module.DataFrame(columns())
    np.testing.assert_array_equal(
        PrepareTable().fit_transform(frame), PrepareTable().fit_transform(columns())
    )
    if library == "polars":
        with pytest.raises(
            ValueError, match=r"`X` could not be read as a table: it is lazy: pass X.collect\(\)"
        ):
            PrepareTable().fit(frame.lazy())
        return
    frame["kind"] = frame["kind"].astype("category")
    frame.index = RNG.permutation(N)  # as rows are after a split: no column
    np.testing.assert_array_equal(
        PrepareTable().fit_transform(frame), PrepareTable().fit_transform(columns())
    )
    frame["mixed"] = [1, "x", 2.5] * (N // 3)
    assert "mixed=x" in PrepareTable().fit(frame).get_feature_names_out()


class OtherFrame:
    """A frame that Arrow does not take, read by its columns."""

    def __init__(self, table):
        self.columns, self.iloc = list(table), self
        self.values = list(table.values())

    def __getitem__(self, where):
        return np.array(self.values[where[1]], dtype=object)


class Lazy:
    def collect(self):
        return self


def test_numbers_and_text_side_by_side_are_levels():
    table = {"mixed": [1, "x", None, 2.5] * 5, "y": list(range(20))}
    for frame in (table, OtherFrame(table)):
        names = list(PrepareTable().fit(frame).get_feature_names_out())
        assert names == ["mixed=1", "mixed=2.5", "mixed=x", "mixed=(missing)"]
    with pytest.raises(ValueError, match=r"it is lazy: pass X\.collect"):
        PrepareTable().fit(Lazy())
    series = ArrowStream(pa.chunked_array([[1, 2]]))
    series.iloc = None
    with pytest.raises(ValueError, match="`X` could not be read as a table: it has no columns: pass a table"):
        PrepareTable().fit(series)
    twice = OtherFrame(table)
    twice.columns = ["a", "a"]
    with pytest.raises(
        ValueError, match="`X` could not be read as a table: more than one column is called 'a'"
    ):
        PrepareTable().fit(twice)


def test_the_index_of_a_pandas_frame_is_no_column():
    """As pandas writes it: a column that the schema calls an index."""
    table = pa.table({**columns(), "__index_level_0__": RNG.permutation(N)})
    metadata = {b"pandas": b'{"index_columns": ["__index_level_0__"], "columns": []}'}
    frame = ArrowStream(table.replace_schema_metadata(metadata))
    np.testing.assert_array_equal(
        PrepareTable().fit_transform(frame), PrepareTable().fit_transform(columns())
    )


def test_a_pipeline_is_saved_with_its_preparation(tmp_path):
    frame, y = columns(), RNG.normal(size=N)
    model = make_pipeline(PrepareTable(), AutoRegressor()).fit(frame, y)
    nk.save(model, tmp_path / "model.nk")
    again = nk.load(tmp_path / "model.nk")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame), strict=True)
    assert again[0].remarks_ == model[0].remarks_ and again[0].columns_ == model[0].columns_


def test_scikit_learns_own_checks_pass():
    count = collections.Counter(
        outcome["status"] for outcome in check_estimator(PrepareTable(), on_skip=None)
    )
    assert set(count) <= {"passed", "skipped"} and count["passed"] >= 45 and count["skipped"] <= 1


def test_new_rows_must_have_the_columns():
    prepared = PrepareTable().fit(columns())
    new = columns()
    del new["id"], new["note"]  # which were left out, and are not asked for
    prepared.transform({**new, "other": [0] * N})
    del new["area"]
    with pytest.raises(ValueError, match="the new rows lack the column 'area' of the training rows"):
        prepared.transform(new)
    with pytest.raises(ValueError, match="X has 3 features, but PrepareTable is expecting 12 features"):
        prepared.transform(np.zeros((4, 3)))


@pytest.mark.parametrize(
    "table, error, match",
    [
        (np.zeros(3), ValueError, r"`X` must be a table or an array \(n, d\) with rows and columns"),
        (np.zeros((0, 2)), ValueError, r"`X` has 0 sample\(s\)"),
        (
            {"a": [1, 2], "b": [1]},
            ValueError,
            "`X` could not be read as a table: its columns differ in length",
        ),
        ({"a": [[1, 2], [3, 4]]}, ValueError, "each column must have one value per row"),
        (np.zeros((2, 2), complex), ValueError, "Complex data not supported"),
        (scipy.sparse.eye_array(3), TypeError, "`X`: sparse data are not supported"),
        (np.zeros((2, 2), "V4"), ValueError, "`X` must hold numbers, text or dates; got "),
    ],
)
def test_what_is_no_table_is_refused(table, error, match):
    with pytest.raises(error, match=match):
        PrepareTable().fit(table)


def test_nothing_to_learn_from_gives_zeros():
    prepared = PrepareTable().fit({"a": [1.0, 1.0], "t": [{"x": 1}, {"x": 2}]})
    np.testing.assert_array_equal(prepared.transform({"a": [1.0], "t": [None]}), [[0.0]])
    assert "t: holds struct<x: int64>, left out" in map(str, prepared.remarks_)
