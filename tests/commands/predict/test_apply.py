"""A model is kept, applied to new rows, and gives to the last bit what it gave before."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.estimators import KernelMachine
from support.commands import nearkernel

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")
QUICK = ("--depth", 1)


def write(name, rows, target=True, seed=0, header="id;area;kind;day;y"):
    """A table with ids, missing values, decimal commas and dates."""
    rng = np.random.default_rng(seed)
    lines = [header if target else header.rpartition(";")[0]]
    for i in range(rows):
        area, kind, day = rng.normal(), "abc"[rng.integers(3)], rng.integers(1, 29)
        y = np.sin(area) + (kind == "a") + 0.1 * rng.normal()
        cells = [
            f"u{i:04d}",
            "" if i % 9 == 4 else f"{area:.4f}".replace(".", ","),
            kind,
            f"2024-02-{day:02d}",
        ]
        lines.append(";".join([*cells, *([f"{y:.4f}".replace(".", ",")] if target else [])]))
    with open(name, "w") as file:
        file.write("\n".join(lines))


def rows_of(name):
    with open(name, newline="") as file:
        return list(csv.DictReader(file))


def fails(*args, match):
    before = sorted(os.listdir())
    result = nearkernel(*args, code=2)
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1, result.stderr
    assert match in result.stderr, result.stderr
    assert sorted(os.listdir()) == before


@pytest.fixture
def model():
    write("table.csv", 60)
    nearkernel("predict", "table.csv", "--target", "y", "--save", "model.nk", *QUICK)


def test_predictions_of_the_file_are_those_of_the_report(model):
    written = rows_of("out/predictions.csv")
    result = nearkernel("apply", "model.nk", "table.csv")
    applied = rows_of("predictions.csv")
    assert list(applied[0]) == ["row", "id", "y", "low", "high"] and len(applied) == 60
    by_row = {each["row"]: each for each in applied}
    for row in written:
        found = by_row[row["row"]]
        for ours, theirs in (("y", "Auto"), ("low", "Auto_low"), ("high", "Auto_high")):
            assert float(found[ours]) == pytest.approx(float(row[theirs]), rel=1e-12)
    assert (
        "60 rows predicted: row, id, y, low, high" in result.stdout
        and "The model misses y by" in result.stdout
    )
    # In Python, and to the last bit.
    pipeline = nk.load("model.nk")
    assert [name for name, _ in pipeline.steps] == ["prepare", "model"]
    nk.save(pipeline, "again.nk")
    nearkernel("apply", "again.nk", "table.csv", "--out", "again.csv")
    with open("predictions.csv") as one, open("again.csv") as other:
        assert (
            one.read().partition("\n")[2] == other.read().partition("\n")[2]
        )  # nk.save knows no name of a target


def test_new_rows_without_the_target_and_with_surprises(model):
    write("new.csv", 12, target=False, seed=1)
    with open("new.csv") as file:
        text = file.read()
    with open("new.csv", "w") as file:
        file.write(text.replace(";a;", ";never;"))
    result = nearkernel("apply", "model.nk", "new.csv", "--coverage", 0.5, "--json")
    found = json.loads(result.stdout)
    assert found["rows"] == 12 and found["score"] == ""
    assert any("to unseen or rare levels" in note for note in found["notes"])
    narrow = rows_of("predictions.csv")
    nearkernel("apply", "model.nk", "new.csv", "--coverage", 0.95)
    wide = rows_of("predictions.csv")
    assert all(
        float(w["low"]) < float(n["low"]) < float(n["high"]) < float(w["high"])
        for w, n in zip(wide, narrow, strict=True)
    )
    fails("apply", "model.nk", "new.csv", "--strict", "--out", "no.csv", match="--strict: new.csv: kind: ")


def test_missing_columns_cost_one_line(model):
    with open("new.csv", "w") as file:
        file.write("kind;other\na;1\nb;2\n")
    fails(
        "apply",
        "model.nk",
        "new.csv",
        match="new.csv: the new rows lack the columns 'area', 'day' of the training",
    )


def test_classes_get_a_probability_each():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    labels = np.where(x[:, 0] > 0.5, "high", np.where(x[:, 0] < -0.5, "low", "mid"))
    np.savez("data.npz", x=x, y=labels)
    nearkernel("predict", "data.npz", "--save", "model.nk", "--balanced", *QUICK)
    np.savez("new.npz", x=x)
    nearkernel("apply", "model.nk", "new.npz")
    rows = rows_of("predictions.csv")
    assert list(rows[0]) == ["row", "y", "p(high)", "p(low)", "p(mid)"]
    assert [row["row"] for row in rows] == [str(i) for i in range(80)]  # of an array, from 0
    assert all(abs(sum(float(row[key]) for key in list(row)[2:]) - 1) < 1e-12 for row in rows)
    assert np.mean([row["y"] == label for row, label in zip(rows, labels, strict=True)]) > 0.9


def test_a_model_of_python_is_applied_to_columns_in_their_order():
    x = np.random.default_rng(0).normal(size=(20, 2))
    KernelMachine(nk.kernels.RBF(1.0)).fit(x, x[:, 0]).save("machine.nk")
    with open("new.csv", "w") as file:
        file.write("a,b\n" + "\n".join(f"{a!r},{b!r}" for a, b in x.tolist()))
    nearkernel("apply", "machine.nk", "new.csv")
    found = [float(row["prediction"]) for row in rows_of("predictions.csv")]
    np.testing.assert_allclose(found, x[:, 0], atol=1e-6)
    with open("new.csv", "w") as file:
        file.write("a,b,c\n1,2,3\n4,5,6\n")
    fails("apply", "machine.nk", "new.csv", match="new.csv has 3 columns; the model takes 2")
    with open("new.csv", "w") as file:
        file.write("a,b\n1,red\n4,blue\n")
    fails("apply", "machine.nk", "new.csv", match="this model takes numbers, but the column 'b' does not")


def test_bad_paths_cost_one_line(model):
    fails("apply", "absent.nk", "table.csv", match="absent.nk: no such file")
    fails("apply", "out", "table.csv", match="out is a folder")
    fails("apply", "model.nk", "absent.csv", match="absent.csv: no such file")
    fails(
        "apply",
        "model.nk",
        "digits",
        match="no data set 'digits': give a .csv, .tsv, .xlsx, .npz or .parquet file",
    )
    fails("apply", "table.csv", "table.csv", match="table.csv is not a model file")
    fails(
        "apply",
        "model.nk",
        "table.csv",
        "--out",
        "no/p.csv",
        match="--out no/p.csv: the folder no does not exist",
    )
    fails("apply", "model.nk", "table.csv", "--out", "out", match="--out out is a folder: name a file")
    np.savez("bad.npz", x=np.zeros(3))
    fails("apply", "model.nk", "bad.npz", match="array 'x' of bad.npz must hold numbers (n, d)")
    fails(
        "predict",
        "table.csv",
        "--target",
        "y",
        "--save",
        "no/m.nk",
        match="--save no/m.nk: the folder no does not",
    )
    fails(
        "predict", "table.csv", "--target", "y", "--save", "out", match="--save out is a folder: name a file"
    )
    nk.estimators.PrepareTable().fit({"a": [1, 2]}).save("prepare.nk")
    fails("apply", "prepare.nk", "table.csv", match="prepare.nk contains PrepareTable, which cannot predict")


def test_a_report_says_what_to_do_next_and_that_nothing_beats_the_baseline():
    rng = np.random.default_rng(3)
    with open("noise.csv", "w") as file:
        file.write("a,b,y\n" + "\n".join(f"{a},{b},{c}" for a, b, c in rng.normal(size=(80, 3))))
    said = nearkernel("predict", "noise.csv", "--target", "y", *QUICK).stdout
    assert "Nothing here beats the mean beyond chance: these columns say little about y." in said
    keep = "nearkernel predict noise.csv --target y --depth 1 --save model.nk"
    assert (
        f"next: {keep}" in said and "next: nearkernel curve noise.csv --target y --tune --out curve" in said
    )
    with open("out/report.html") as file:
        page = file.read()
    assert "What to do next" in page and keep in page
    with open("out/result.json") as file:
        found = json.load(file)
    assert found["verdict"].startswith("Nothing here beats") and len(found["columns"]) == 2
    assert set(found["figures"]) == {"Auto", "NNGP", "NTK", "Linear", "Boosting", "Mean"}


def test_several_targets_each_from_the_other_columns():
    rng = np.random.default_rng(4)
    with open("two.csv", "w") as file:
        lines = (
            f"{a},{b},{2 * a + 0.1 * c},{'up' if b > 0 else 'down'}" for a, b, c in rng.normal(size=(60, 3))
        )
        file.write("a,b,sales in t,trend\n" + "\n".join(lines))
    targets = ("--target", "sales in t", "--target", "trend")
    said = nearkernel("predict", "two.csv", *targets, "--save", "model.nk", "--json", *QUICK).stdout
    found = json.loads(said)
    assert list(found) == ["sales in t", "trend"]
    assert [each["data"]["task"] for each in found.values()] == ["regression", "classification"]
    assert [{column["column"] for column in each["columns"]} for each in found.values()] == [{"a", "b"}] * 2
    for name in ("sales_in_t", "trend"):
        assert sorted(os.listdir(f"out/{name}")) == ["predictions.csv", "report.html", "result.json"]
    nearkernel("apply", "model-trend.nk", "two.csv")
    nearkernel("apply", "model-sales_in_t.nk", "two.csv")
    fails(
        "predict",
        "two.csv",
        *targets,
        "--target",
        "nothing",
        "--out",
        "no",
        match="--target nothing: two.csv has no",
    )


def test_strictness_and_numbers_for_people():
    write("table.csv", 60)
    fails(
        "predict",
        "table.csv",
        "--target",
        "y",
        "--strict",
        match="--strict: table.csv has 2 problems: id: text",
    )
    with open("money.csv", "w") as file:
        draws = np.random.default_rng(0).lognormal(size=(80, 2))
        file.write("a,price\n" + "\n".join(f"{a},{1e6 * a * b**0.1:.0f}" for a, b in draws))
    said = nearkernel("predict", "money.csv", "--target", "price", *QUICK).stdout
    assert "Auto misses price by" in said and "on average" in said and ",000" in said


def test_a_missing_file_is_said_before_anything_heavy_is_imported():
    program = (
        "import sys\nfrom nearkernel.cli import app\n"
        "try:\n    app(['predict', 'absent.csv', '--target', 'y'])\n"
        "except SystemExit as end:\n    assert end.code == 2\n"
        "assert not {'jax', 'sklearn', 'scipy', 'pyarrow'} & set(sys.modules)"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stderr == "error: absent.csv: no such file.\n", done.stderr
