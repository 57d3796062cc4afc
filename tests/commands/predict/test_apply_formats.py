"""Files are read as the training file was, one row at a time as all at once; no name hides a prediction, and no cell is
a formula."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

import nearkernel as nk
from nearkernel._commands.predict.reading.spreadsheet import as_csv, escaped, unescaped
from nearkernel._commands.predict.reading.tables import read_table
from nearkernel._saved.file import read_model, write_model
from nearkernel.estimators import KernelMachine
from support.cases import few
from support.commands import nearkernel

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")
QUICK = ("--depth", 1)
HEAD = "code;amount;share;day;when;level;flag;y"


def lines(rows=60, seed=0):
    """A German table: decimal commas, days first, codes, levels that look like numbers and dates."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(rows):
        amount, share, day = rng.normal() * 2000, rng.uniform(0, 99), rng.integers(1, 29)
        cells = [
            f"{rng.integers(3):03d}",
            "" if i % 9 == 4 else f"{amount:,.3f}".translate({ord(","): ".", ord("."): ","}),
            f'"{share:.1f} %"'.replace(".", ","),
            f"{day:02d}/{1 + i % 12:02d}/2023",
            f"{rng.integers(24):02d}:30",
            ("1.10", "2020-01-01", "1234567", "abc")[rng.integers(4)],
            ("true", "false")[rng.integers(2)],
            f"{amount / 1000 + (share > 50) + 0.1 * rng.normal():.3f}".replace(".", ","),
        ]
        found.append(";".join(cells))
    return found


def put(name, rows, head=HEAD):
    with open(name, "w", encoding="utf-8-sig") as file:
        file.write("\n".join([head, *rows]))


def rows_of(name):
    with open(name, newline="") as file:
        return list(csv.DictReader(file))


def numbers(name):
    """Predictions and bounds: the last three columns."""
    return np.array([[float(cell) for cell in row.values()][-3:] for row in rows_of(name)])


def test_rows_are_predicted_alone_as_among_others():
    table = lines()
    put("table.csv", table)
    nearkernel("predict", "table.csv", "--target", "y", "--save", "model.nk", *QUICK)
    nearkernel("apply", "model.nk", "table.csv")
    together = numbers("predictions.csv")
    for i in (0, 4, 7):
        put("one.csv", table[i : i + 1])
        result = nearkernel("apply", "model.nk", "one.csv", "--out", "one-prediction.csv", "--strict")
        np.testing.assert_allclose(numbers("one-prediction.csv")[0], together[i], rtol=1e-12)
        # The truth is read as in training, too: 1,500 is one and a half.
        truth = float(table[i].rpartition(";")[2].replace(",", "."))
        assert "Note" not in result.stdout
        missed = float(
            result.stdout.partition("misses y by ")[2].partition(" on average")[0].replace(",", "")
        )
        assert missed == pytest.approx(abs(together[i, 0] - truth), rel=0.01)
        prepare = nk.load("model.nk")[0]
        how = prepare.formats().get
        one, all_rows = (
            read_table(path, None, how=how).frame for path in (Path("one.csv"), Path("table.csv"))
        )
        np.testing.assert_array_equal(prepare.transform(one)[0], prepare.transform(all_rows)[i], strict=True)


def test_columns_in_another_order_with_others_between_and_another_delimiter():
    table = lines()
    put("table.csv", table)
    nearkernel("predict", "table.csv", "--target", "y", "--save", "model.nk", *QUICK)
    nearkernel("apply", "model.nk", "table.csv")
    cells = [row.split(";") for row in table]
    turned = ["\t".join([*row[::-1][1:], "more"]) for row in cells]
    put("turned.tsv", turned, "\t".join([*HEAD.split(";")[::-1][1:], "other"]))
    nearkernel("apply", "model.nk", "turned.tsv", "--out", "turned.csv")
    np.testing.assert_array_equal(numbers("turned.csv"), numbers("predictions.csv"))


def test_values_of_another_format_are_noted():
    put("table.csv", lines())
    nearkernel("predict", "table.csv", "--target", "y", "--save", "model.nk", *QUICK)
    put("new.csv", ["000;1.5;12;2023-02-01;0.5;1.1;yes"], HEAD.rpartition(";")[0])
    said = " ".join(nearkernel("apply", "model.nk", "new.csv").stdout.split())
    for column, what in (
        ("amount", "numbers"),
        ("share", "numbers with %"),
        ("when", "times of day"),
        ("flag", "true or false"),
    ):
        assert f"Note: {column}: 1 of 1 values are not {what} as in the training rows" in said
    assert "level: 1 of 1 values belong to unseen or rare levels" in said and "day:" not in said


def test_files_without_formats_are_applied_with_a_note():
    put("table.csv", lines())
    nearkernel("predict", "table.csv", "--target", "y", "--save", "model.nk", *QUICK)
    model, about = read_model("model.nk")
    del model[0]._readings, about["target_reading"]
    write_model(model, Path("old.nk"), about)
    nearkernel("apply", "model.nk", "table.csv", "--out", "new.csv")
    said = nearkernel("apply", "old.nk", "table.csv", "--out", "old.csv").stdout
    assert "does not say how its columns are written" in " ".join(said.split())
    with open("old.csv") as old, open("new.csv") as new:
        assert old.read() == new.read()


@pytest.mark.parametrize("target", few(("low", "high", "row"), 1))
def test_no_bound_hides_a_prediction(target):
    rng = np.random.default_rng(0)
    with open("table.csv", "w") as file:
        file.write(f"a,{target}\n" + "\n".join(f"{a},{2 * a + 0.1 * b}" for a, b in rng.normal(size=(60, 2))))
    nearkernel("predict", "table.csv", "--target", target, "--save", "model.nk", *QUICK)
    nearkernel("apply", "model.nk", "table.csv")
    beside = {"low": ["low (2)", "high"], "high": ["low", "high (2)"]}.get(target, ["low", "high"])
    assert list(rows_of("predictions.csv")[0]) == [*([] if target == "row" else ["row"]), target, *beside]
    mean, low, high = numbers("predictions.csv").T
    assert np.all(low < mean) and np.all(mean < high)
    assert {"row", "true", "Auto", "Auto_low", "Auto_high"} <= set(rows_of("out/predictions.csv")[0])


def test_no_probability_hides_a_prediction():
    rng = np.random.default_rng(0)
    with open("table.csv", "w") as file:
        file.write("x,p(a)\n" + "\n".join(f"{a},{'ab'[int(a > 0)]}" for a in rng.normal(size=60)))
    nearkernel("predict", "table.csv", "--target", "p(a)", "--save", "model.nk", *QUICK)
    said = nearkernel("apply", "model.nk", "table.csv").stdout
    rows = rows_of("predictions.csv")
    assert list(rows[0]) == ["row", "p(a)", "p(a) (2)", "p(b)"] and {row["p(a)"] for row in rows} == {
        "a",
        "b",
    }
    assert "The model errs on" in said


@pytest.mark.parametrize(
    "cell",
    ("=1+1", "+SUM(A1)", "-2+3", "@x", "'=1", "''@x", "\t=1", "plain", "a=b", "'quoted", "-", "--", "=", ""),
)
def test_no_cell_is_a_formula_and_all_are_read_back(cell):
    assert unescaped(escaped(cell)) == cell
    assert escaped(cell)[:1] not in ("=", "+", "-", "@", "\t")


def test_numbers_are_no_formulas():
    for cell in ("-1", "+1.5", "-1e-3", "-12 %", -1.5, None):
        assert escaped(cell) == cell
    assert as_csv({"-y": np.array([-1.5, 2.0])}) == "'-y\n-1.5\n2.0\n"


def test_formulas_in_names_and_classes_are_escaped_and_understood():
    rng = np.random.default_rng(0)
    labels = ("=cmd()", "@b")
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["=a", "+kind", "-y"])
    for a in rng.normal(size=60):
        writer.writerow([a, ("-u", "=v")[rng.integers(2)], labels[int(a > 0)]])
    with open("table.csv", "w", newline="") as file:
        file.write(text.getvalue())
    nearkernel("predict", "table.csv", "--target", "-y", "--save", "model.nk", *QUICK)
    nearkernel("apply", "model.nk", "table.csv")
    for name in ("predictions.csv", "out/predictions.csv"):
        with open(name, newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not any(cell[:1] in tuple("=+@") or cell.startswith("-y") for cell in cells)
    rows = rows_of("predictions.csv")
    assert list(rows[0]) == ["row", "'-y", "p(=cmd())", "p(@b)"] and {row["'-y"] for row in rows} == {
        "'=cmd()",
        "'@b",
    }
    # The escaped table is the same table.
    with open("table.csv", newline="") as file:
        cells = list(csv.reader(file))
    with open("escaped.csv", "w", newline="") as file:
        csv.writer(file).writerows([[escaped(cell) for cell in row] for row in cells])
    nearkernel("apply", "model.nk", "escaped.csv", "--out", "again.csv")
    assert rows_of("again.csv") == rows
    found = read_table(Path("predictions.csv"), None).frame
    assert list(found) == ["row", "-y", "p(=cmd())", "p(@b)"] and set(found["-y"].values) == set(labels)


def test_a_model_without_a_preparation_takes_plain_numbers_only():
    x = np.random.default_rng(0).normal(size=(20, 2))
    KernelMachine(nk.kernels.RBF(1.0)).fit(x, x[:, 0]).save("machine.nk")
    put("new.csv", ["1;2", "1.5;-2e-1"], "a;b")
    nearkernel("apply", "machine.nk", "new.csv")
    put("new.csv", ["1,500;2", "1,5;3"], "a;b")
    said = nearkernel("apply", "machine.nk", "new.csv", code=2).stderr
    assert "this model takes numbers, but the column 'a' does not contain numbers" in said


def test_a_quote_without_an_end_costs_one_line():
    put("table.csv", ["1;2"] * 40_000, '"a;b')
    nk.estimators.NTKRegressor().fit(np.eye(2), [0.0, 1.0]).save("model.nk")
    said = nearkernel("apply", "model.nk", "table.csv", code=2).stderr
    assert "table.csv could not be read as csv: " in said and said.count("\n") == 1
