"""Reading data: what is accepted, how it is encoded, and one clear line for everything else."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from nearkernel._commands.predict.reading.data import EMBEDDED, load

ROWS = "\n".join(f"{i},{i * i % 7}.5,{'xyz'[i % 3]},{i % 2}" for i in range(12))
TABLE = "a,b,color,label\n" + ROWS + "\n"


@pytest.fixture
def csv(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def npz(tmp_path):
    def write(**arrays):
        path = tmp_path / "data.npz"
        np.savez(path, **arrays)
        return str(path)

    return write


def refuses(*args, match, **kwargs):
    with pytest.raises(ValueError, match=match) as caught:
        load(*args, **kwargs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_load_with_their_own_task(name):
    data = load(name)
    assert data.x.ndim == 2 and data.x.dtype == np.float64 and data.y.shape == (len(data.x),)
    assert len(data.features) == data.x.shape[1]
    assert data.task == ("regression" if name == "diabetes" else "classification")
    assert name != "digits" or (len(data.classes) == 10 and data.image_shape == (8, 8))


def test_digits_can_be_a_regression_but_names_cannot():
    assert load("digits", task="regression").task == "regression"
    refuses("iris", task="regression", match=r"--task regression: the classes of iris are names \(setosa, ")


def test_a_table_is_numbers_and_few_words_become_columns(csv):
    data = load(csv(TABLE), target="label")
    assert data.features == ("a", "b", "color=x", "color=y", "color=z")
    np.testing.assert_array_equal(data.x[1], [1, 1.5, 0, 1, 0])
    assert data.classes == ("0", "1") and data.y[:3].tolist() == [0, 1, 0]
    assert data.notes == ("one-hot encoded: color (3 levels)",)
    assert load(csv(TABLE), target="label", drop=["color", "b"]).features == ("a",)


@pytest.mark.parametrize(
    "target, task, classes",
    [
        ("label", "auto", ("0", "1")),
        ("label", "regression", ()),
        ("color", "auto", ("x", "y", "z")),
        ("b", "auto", ()),
        ("b", "classification", ("0.5", "1.5", "2.5", "4.5")),
    ],
)
def test_the_task_follows_from_the_target_unless_said(csv, target, task, classes):
    assert load(csv(TABLE), target=target, task=task).classes == classes


def test_delimiter_byte_order_mark_and_pandas_row_numbers_are_understood(csv):
    plain = load(csv(TABLE), target="label")
    semicolons = load(csv("\ufeff" + TABLE.replace(",", ";"), "semicolons.csv"), target="label")
    np.testing.assert_array_equal(plain.x, semicolons.x)
    numbered = "\n".join([",a,b"] + [f"{i},{i % 5},{i / 2}" for i in range(9)])
    data = load(csv(numbered, "numbered.csv"), target="b")
    assert data.features == ("a",)
    assert data.notes == ("left out: a column without a name (row numbers)",)


def test_whole_numbers_that_become_fractions_late_in_a_large_file_are_read(csv):
    rows = [f"{i},{i % 3}" for i in range(200_000)]
    rows[-1] = "0.5,1"
    assert load(csv("a,y\n" + "\n".join(rows)), target="y").x[-1, 0] == 0.5


def test_parquet_with_categories_booleans_and_decimals(tmp_path):
    table = pa.table(
        {
            "c": pa.array(["u", "v"] * 4).dictionary_encode(),
            "d": pa.array(range(8)).cast(pa.decimal128(30, 2)),
            "t": [True, False] * 4,
        }
    )
    parquet.write_table(table, tmp_path / "data.parquet")
    data = load(str(tmp_path / "data.parquet"), target="t")
    assert data.features == ("c=u", "c=v", "d") and data.classes == ("False", "True")
    np.testing.assert_array_equal(data.x[3], [0, 1, 3])


def test_npz_arrays_and_images(npz):
    x, y = np.arange(24.0).reshape(6, 2, 2), np.linspace(0, 1, 6)
    data = load(npz(x=x, y=y, other=np.arange(6) % 2))
    assert data.x.shape == (6, 4) and data.image_shape == (2, 2) and data.task == "regression"
    assert load(npz(x=x, y=y, other=np.arange(6) % 2), target="other").classes == ("0", "1")


def test_a_wrong_name_or_file_is_refused(csv, tmp_path):
    refuses("digit", match="no data set 'digit': give one of digits, .* file. Did you mean 'digits'\\?")
    refuses(csv("", "data.txt"), match="data.txt' is not a known file type: give one of")
    refuses("absent.csv", match="absent.csv: no such file")
    (tmp_path / "folder.csv").mkdir()
    refuses(str(tmp_path / "folder.csv"), match="is a folder")
    refuses("digits", target="label", match="--target label is for files; digits is a built-in data set")
    refuses("digits", drop=["a"], match="--drop a is for files; digits is a built-in data set")


def test_wrong_columns_are_refused(csv):
    refuses(csv(TABLE), match="needs --target COLUMN")
    refuses(
        csv(TABLE),
        target="lable",
        match="--target lable: data.csv has no such column; it has 'a', 'b', 'color', 'label'. Did you mean 'label'",
    )
    refuses(csv(TABLE), target="label", drop=["A"], match="--drop A: data.csv has no such column")
    refuses(csv(TABLE), target="label", drop=["label"], match="--drop label is also the --target")
    refuses(
        csv(TABLE),
        target="a",
        drop=["b", "color", "label"],
        match="no feature column besides the target 'a'",
    )
    refuses(
        csv("a,y,y\n" + "1,2,3\n" * 5), target="y", match="--target y: data.csv has more than one such column"
    )
    many = ",".join(f"c{i}" for i in range(20)) + "\n" + (",".join("1" * 20) + "\n") * 5
    refuses(csv(many), target="q", match="'c11' and 8 more")


def test_broken_files_are_refused(csv, tmp_path):
    refuses(csv(""), target="y", match="data.csv is empty")
    refuses(csv("a,y\n"), target="y", match="data.csv has one line only")
    refuses(
        csv("1.5,2,3\n4,5,6\n"), target="y", match="has no header .its first line is '1.5,2,3'.: add a line"
    )
    refuses(
        csv("a,y\n1,2\n1,2,3\n"),
        target="y",
        match="could not be read as csv: .*Row #3: Expected 2 columns, got 3",
    )
    refuses(csv("not parquet", "data.parquet"), target="y", match="could not be read as parquet")
    parquet.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "none.parquet")
    refuses(str(tmp_path / "none.parquet"), target="a", match=r"none.parquet has no rows\.")
    refuses(csv("not npz", "data.npz"), match="data.npz is not an .npz archive")


def test_missing_and_infinite_values_are_filled_and_counted_by_column(csv):
    data = load(csv("a,b,y\n1,,1.5\nNA,2,2.5\n,2,3.5\n3,4,5.5\n"), target="y")
    assert [str(remark) for remark in data.troubles()] == [
        "a: 2 of 4 values are missing, filled with the median and flagged",
        "b: 1 of 4 values are missing, filled with the median and flagged",
    ]
    assert data.features == ("a", "a (missing)", "b", "b (missing)")
    np.testing.assert_array_equal(data.x, [[1, 0, 2, 1], [2, 1, 2, 0], [2, 1, 2, 0], [3, 0, 4, 0]])
    data = load(csv("a,y\n1,1.5\ninf,2.5\n3,3.5\n4,4.5\n"), target="y")
    assert "a: 1 of 4 values are infinite, taken as missing" in map(str, data.troubles())


def test_all_problems_are_listed_at_once_and_strictness_refuses_them(csv):
    rows = [f"{i * i},,k,{i % 3}.5,p{i},{'' if i == 5 else i % 2}" for i in range(30)]
    table = csv("id,empty,constant,b,name,y\n" + "\n".join(rows))
    data = load(table, target="y")
    assert data.features == ("b",) and len(data.y) == 29
    assert [remark.done for remark in data.troubles()] == ["those rows are left out", *["left out"] * 4]
    refuses(
        table,
        target="y",
        strict=True,
        match=r"--strict: data.csv has 5 problems: y: the target is missing in 1 of 30 rows, .*; id: .*; empty: .*; "
        r"constant: always 'k', left out; name: text such as 'p0' \(29 distinct values\), left out\.",
    )
    assert load(csv(TABLE), target="label", strict=True).notes


def test_missing_values_of_parquet_may_be_nan(tmp_path):
    parquet.write_table(
        pa.table({"a": [1.0, float("nan"), 2.0, None], "y": [0, 1, 0, 1]}), tmp_path / "d.parquet"
    )
    assert load(str(tmp_path / "d.parquet"), target="y").troubles()[0].found == "2 of 4 values are missing"


def test_names_are_left_out_and_dates_become_numbers(csv):
    names = "name,y\n" + "\n".join(f"person {i},{i}" for i in range(30))
    refuses(
        csv(names),
        target="y",
        match=r"no column is left to predict from \(name: text such as 'person 0' \(30 dist",
    )
    dates = "day,y\n" + "\n".join(f"2024-01-{i:02d},{i}.5" for i in range(1, 30))
    data = load(csv(dates), target="y")
    assert data.features == ("day days", "day week sin", "day week cos")
    np.testing.assert_array_equal(data.x[:, 0], np.arange(29))
    refuses(
        csv(dates), target="day", match="column 'day' of data.csv holds dates: neither numbers nor labels"
    )


def test_columns_of_one_name_and_decimal_commas_and_tabs(csv):
    data = load(csv("a;a;y\n" + "\n".join(f"{i},5;{i % 4};{i % 2}" for i in range(8))), target="y")
    assert data.features == ("a", "a (2)") and data.x[3].tolist() == [3.5, 3.0]
    assert str(data.troubles()[0]) == "a: more than one column of this name, the other is called 'a (2)'"
    assert load(csv("a\ty\n" + "1.5\t0\n2\t1\n" * 3, "data.tsv"), target="y").x[0, 0] == 1.5


def test_too_little_to_learn_from_is_refused(csv):
    refuses(csv("a,y\n1,2\n"), target="y", match="data.csv has 1 row: at least 4 are needed")
    refuses(
        csv("a,y\n" + "1,2\n2,2\n" * 3), target="y", match="column 'y' of data.csv has one class only, '2'"
    )
    refuses(
        csv("a,y\n" + "1,2\n2,2\n" * 3), target="y", task="regression", match="is always 2: there is nothing"
    )
    refuses(
        csv("a,y\n" + "1,2\n1,3\n" * 3),
        target="y",
        match=r"no column is left to predict from \(a: always 1, left out\)",
    )


def test_targets_that_do_not_fit_the_task_are_refused(csv):
    refuses(
        csv(TABLE),
        target="color",
        task="regression",
        match="--task regression: column 'color' .* such as 'x'",
    )
    refuses(
        csv(TABLE),
        target="a",
        task="classification",
        match="12 distinct values in 12 rows.* --task regression",
    )
    words = "a,y\n" + "\n".join(f"{i},w{i}" for i in range(8))
    refuses(
        csv(words), target="y", match="8 distinct values in 8 rows, too many classes: choose another --target"
    )


def test_wrong_arrays_are_refused(npz):
    x, y = np.ones((6, 2)), np.arange(6.0)
    refuses(npz(a=x, y=y), match="data.npz has no array 'x'; it has 'a', 'y'")
    refuses(npz(x=x, y=y), target="z", match="--target z: data.npz has no array 'z'")
    refuses(
        npz(x=y, y=y),
        match=r"array 'x' of data.npz must hold numbers \(n, d\), or images .*; got float64 \(6,\)",
    )
    refuses(npz(x=x.astype(str), y=y), match="array 'x' of data.npz must hold numbers")
    refuses(npz(x=x, y=y[:3]), match=r"array 'y' of data.npz must have shape \(6,\) as 'x' has; got \(3,\)")
    refuses(
        npz(x=x, y=np.array([0, 1, np.nan, 3, 4, np.inf])),
        match="array 'y' of data.npz has 2 NaN or infinite",
    )
    refuses(npz(x=x, y=np.array([{}] * 6, dtype=object)), match="data.npz holds Python objects")
    refuses(npz(x=x, y=y), drop=["a"], match="--drop a is for tables; data.npz holds arrays")
