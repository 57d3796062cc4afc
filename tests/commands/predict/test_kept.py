"""Rows of predictions can be found again in the file: by the number in a spreadsheet, by ids, by kept columns."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.pipeline import make_pipeline

import nearkernel as nk
from nearkernel._commands.predict.reading.data import load
from nearkernel._commands.predict.reading.kept import as_written, ids
from nearkernel._commands.predict.reading.tables import read_table
from support.commands import nearkernel

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")
HEAD = "customer;zip;area;note;y"


def lines(n=40, seed=0):
    """Ids with leading zeros, text that is prose, decimal commas; y = 3 area."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        area = rng.normal()
        yield f'{7 * i:05d};{10000 + i % 4};{area:.3f};"a remark, number {i}; of some length";{3 * area:.3f}'.replace(
            ".", ","
        )


def rows_of(name):
    with open(name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def model():
    body = list(lines())
    body[3] = body[3].rpartition(";")[0] + ";"  # no target
    body.insert(10, "")  # an empty row, which a spreadsheet counts
    Path("table.csv").write_text("\n".join([HEAD, *body, "", ""]), "utf-8")
    nearkernel("predict", "table.csv", "--target", "y", "--save", "model.nk", "--depth", 1)
    return [HEAD, *body]


def test_row_numbers_are_those_of_the_spreadsheet(model):
    for row in rows_of("out/predictions.csv"):
        cells = model[int(row["row"]) - 1].split(";")
        assert float(cells[-1].replace(",", ".")) == float(row["true"])
    nearkernel("apply", "model.nk", "table.csv")
    applied = rows_of("predictions.csv")
    assert [int(row["row"]) for row in applied] == [*range(2, 12), *range(13, 43)]
    for row in applied:
        assert row["customer"] == model[int(row["row"]) - 1].partition(";")[0]


def test_ids_are_kept_as_written_and_other_columns_on_request(model):
    assert "customer" in nk.load("model.nk")[0].names_in_ or load("table.csv", "y").ids == ("customer",)
    new = [HEAD.rpartition(";")[0], *(line.rpartition(";")[0] for line in lines(3, 1))]
    Path("new.csv").write_text("\n".join(new), "utf-8")
    said = nearkernel("apply", "model.nk", "new.csv").stdout
    assert "3 rows predicted: row, customer, y, low, high" in said
    rows = rows_of("predictions.csv")
    assert [row["customer"] for row in rows] == ["00000", "00007", "00014"]
    nearkernel("apply", "model.nk", "new.csv", "--keep", "note", "--keep", "area", "--keep", "customer")
    rows = rows_of("predictions.csv")
    assert list(rows[0]) == ["row", "customer", "note", "area", "y", "low", "high"]
    assert rows[1]["note"] == "a remark, number 1; of some length" and rows[1]["area"] == new[2].split(";")[2]


def test_a_kept_column_makes_way_for_the_predictions(model):
    nearkernel("apply", "model.nk", "table.csv", "--keep", "y")
    rows = rows_of("predictions.csv")
    assert list(rows[0]) == ["row", "customer", "y (given)", "y", "low", "high"]
    known = [row for row in rows if row["y (given)"]]
    assert len(known) == 39
    given = [float(row["y (given)"].replace(",", ".")) for row in known]
    assert np.corrcoef(given, [float(row["y"]) for row in known])[0, 1] > 0.95


def test_a_column_that_is_not_there_costs_one_line(model):
    for options, match in (
        (
            ("table.csv", "--keep", "custmer"),
            "--keep custmer: table.csv has no such column; it has 'customer', 'zip'",
        ),
        (("data.npz", "--keep", "customer"), "--keep customer is for tables; data.npz holds arrays."),
    ):
        np.savez("data.npz", x=np.zeros((3, 2)))
        name = "model.nk"
        if options[0] == "data.npz":
            x = np.random.default_rng(0).normal(size=(20, 2))
            nk.estimators.KernelMachine(nk.kernels.RBF(1.0)).fit(x, x[:, 0]).save("machine.nk")
            name = "machine.nk"
        result = nearkernel("apply", name, *options, "--out", "no.csv", code=2)
        assert result.stderr.startswith("error: ") and match in result.stderr, result.stderr
        assert result.stderr.count("\n") == 1 and not Path("no.csv").exists()


def test_a_model_of_python_keeps_ids_too():
    rng = np.random.default_rng(0)
    table = {"id": [f"H{i:04d}" for i in range(60)], "area": rng.normal(size=60).tolist()}
    model = make_pipeline(nk.estimators.PrepareTable(), nk.estimators.AutoRegressor()).fit(
        table, table["area"]
    )
    nk.save(model, "model.nk")
    Path("new.csv").write_text("id,area\nH9,1.5\nH8,0.5\n", "utf-8")
    nearkernel("apply", "model.nk", "new.csv")
    assert [(row["row"], row["id"]) for row in rows_of("predictions.csv")] == [("2", "H9"), ("3", "H8")]


def test_sheets_are_counted_as_a_spreadsheet_shows_them():
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for line in (["id", "a"], [1, 2.5], [None, None], [3, None]):
        book.active.append(line)
    book.save("book.xlsx")
    sheet = as_written(Path("book.xlsx"))
    assert (sheet.names, sheet.rows.tolist(), sheet.cells(1)) == (["id", "a"], [2, 4], [2.5, ""])


def test_parquet_is_counted_as_a_spreadsheet_would():
    parquet.write_table(pa.table({"id": ["x", None], "a": [1, 2]}), "table.parquet")
    sheet = as_written(Path("table.parquet"))
    assert (sheet.names, sheet.rows.tolist(), sheet.cells(0)) == (["id", "a"], [2, 3], ["x", ""])


def test_which_columns_name_rows():
    n = 30
    columns = {
        "code": [f"K-{i}" for i in range(n)],
        "kind": ["ab"[i % 2] for i in range(n)],
        "prose": [f"this house has {i} windows and a door" for i in range(n)],
        "number": [1000 - 3 * i for i in range(n)],
        "counted": [5 * i for i in range(n)],
        "measured": [0.5 * i for i in range(n)],
    }
    with open("table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    frame = read_table(Path("table.csv"), None).frame
    assert ids(frame, ["kind", "counted", "measured"]) == ["code", "number", "counted"]
    assert ids(frame, ["kind", "number", "counted", "measured"]) == ["code", "counted"]
