"""A column that almost determines the target is named; a strong predictor, a small table or an id raises no alarm."""

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from nearkernel._commands.predict.leaks import leaks
from nearkernel._commands.predict.reading.data import load
from nearkernel._commands.predict.reading.prepare import split
from support.commands import nearkernel

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")


def write(columns, name="table.csv"):
    with open(name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return name


def named(columns, target="y"):
    """The columns that are found, and the share of each."""
    data = load(write(columns), target)
    return {leak.column: leak.share for leak in leaks(data, split(data, 0.2, 50_000, 0))}


def prices(n, seed=0):
    rng = np.random.default_rng(seed)
    area = rng.lognormal(4.5, 0.4, n)
    return rng, area, 2500 * area * np.exp(0.15 * rng.normal(size=n))


@pytest.mark.parametrize("n", [50, 400])
@pytest.mark.parametrize(
    "made",
    {
        "a share of it": lambda y, rng: 0.0357 * y,
        "a copy": lambda y, rng: y,
        "rounded": lambda y, rng: np.round(y, -4),
        "its logarithm": lambda y, rng: np.log(y),
        "a falling power": lambda y, rng: 1e12 / y**2,
        "with noise": lambda y, rng: y + 0.05 * y.std() * rng.normal(size=len(y)),
        "in percent of the largest": lambda y, rng: [f"{100 * each:.2f} %" for each in y / y.max()],
        "with gaps": lambda y, rng: ["" if i % 97 == 0 else each for i, each in enumerate(y)],
    }.items(),
    ids=lambda each: each[0],
)
def test_what_is_computed_from_a_number_is_found(made, n):
    rng, area, y = prices(n)
    found = named({"area": area, "fee": made[1](y, rng), "noise": rng.normal(size=n), "y": y})
    assert list(found) == ["fee"] and 0.97 <= found["fee"] <= 1


@pytest.mark.parametrize("rare", [12, 46, 300])
@pytest.mark.parametrize(
    "made",
    {
        "a number": lambda gone, rng: np.where(gone, 0, rng.uniform(1, 50, len(gone))),
        "a date that only these have": lambda gone, rng: [
            f"2024-0{1 + i % 9}-11" if each else "" for i, each in enumerate(gone)
        ],
        "a reason": lambda gone, rng: [
            ["price", "moved", "service"][i % 3] if each else "" for i, each in enumerate(gone)
        ],
        "a flag": lambda gone, rng: [str(bool(each)) for each in gone],
        "an interval": lambda gone, rng: np.where(gone, 5 + 0.1 * rng.random(len(gone)), rng.uniform(6, 9)),
    }.items(),
    ids=lambda each: each[0],
)
def test_what_is_filled_in_after_a_class_is_known_is_found(made, rare):
    rng, n = np.random.default_rng(1), 600
    gone = np.isin(np.arange(n), rng.permutation(n)[:rare])
    found = named(
        {"tenure": rng.normal(size=n) - gone, "after": made[1](gone, rng), "y": np.where(gone, "Yes", "No")}
    )
    assert list(found) == ["after"] and found["after"] >= 0.95


def test_several_classes():
    rng = np.random.default_rng(2)
    y = rng.integers(3, size=300)
    found = named(
        {"grade": 10 * y + rng.normal(size=300), "a": rng.normal(size=300), "y": np.array(list("abc"))[y]}
    )
    assert list(found) == ["grade"]


def test_strong_predictors_are_no_leaks():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=300)
        assert (
            named({"x": x, "z": rng.normal(size=300), "y": x + 0.25 * rng.normal(size=300)}) == {}
        )  # R2 0.94
        label = (x > 0) ^ (rng.random(300) < 0.04)
        assert named({"x": x, "z": rng.normal(size=300), "y": np.where(label, "up", "down")}) == {}
    _, area, y = prices(500)
    assert named({"area": area, "y": y}) == {}
    for name in ("iris", "wine", "breast_cancer", "diabetes"):
        data = load(name)
        assert leaks(data, split(data, 0.2, 50_000, 0)) == ()


def test_small_tables_rare_classes_and_images_raise_no_alarm():
    rng = np.random.default_rng(0)
    few = {"x": np.arange(20.0) + 0.5, "z": rng.normal(size=20), "y": np.arange(20.0) * 2.5}
    assert named(few) == {}
    rare = np.arange(200) < 6
    assert named({"x": rare + 0.1 * rng.normal(size=200), "y": np.where(rare, "a", "b")}) == {}
    for seed in range(20):  # noise of many columns
        rng = np.random.default_rng(seed)
        label = rng.permutation(np.arange(40) < 8)
        columns = {f"c{i}": rng.normal(size=40) for i in range(30)}
        assert named({**columns, "y": np.where(label, "a", "b")}) == {}
    data = load("digits")
    assert leaks(data, split(data, 0.2, 50_000, 0)) == ()


def test_ids_and_copies_of_rows_raise_no_alarm():
    """The nearest row of a copy is its twin: it knows the target, and says nothing about new rows."""
    rng = np.random.default_rng(0)
    x, z, y = rng.normal(size=(3, 60))
    again = np.tile(np.arange(60), 6)
    assert named({"x": x[again], "z": z[again], "y": y[again]}) == {}
    label = np.where(rng.permutation(60) < 15, "rare", "usual")
    more = np.concatenate([np.arange(60), np.repeat(np.flatnonzero(label == "rare"), 3)])  # oversampled
    assert named({"x": x[more], "z": z[more], "y": label[more]}) == {}
    ordered = np.sort(
        rng.normal(size=120)
    )  # rows sorted by the target: their number tells it, but is left out
    assert named({"id": np.arange(1, 121), "x": rng.normal(size=120), "y": ordered}) == {}


def test_an_outlier_in_common_is_not_enough():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 200))
    x[:12], y[:12] = 1e3 + x[:12], 1e3 + y[:12]
    assert named({"x": x, "y": y}) == {}


def test_terminal_report_and_json_ask_whether_the_column_is_known():
    rng, area, y = prices(120)
    write({"area": area, "rooms": rng.integers(1, 6, 120), "fee in €": 0.03 * y, "price": y})
    said = nearkernel("predict", "table.csv", "--target", "price", "--depth", 1).stdout
    line = next(each for each in said.splitlines() if each.startswith("Warning: "))
    assert line.startswith("Warning: fee in € almost determines price: by itself it explains ")
    asked = "Is it known at prediction time? If not, leave it out: --drop 'fee in €'"
    assert asked in said.replace("\n", " ")
    again = "nearkernel predict table.csv --target price --depth 1 --drop 'fee in €'"
    assert f"next: {again}" in said
    page = Path("out/report.html").read_text("utf-8")
    assert '<p class="warning">' in page and "Is it known at prediction time?" in page
    found = json.loads(Path("out/result.json").read_text("utf-8"))
    assert [leak["column"] for leak in found["leaks"]] == ["fee in €"] and asked in found["warnings"][0]
    without = nearkernel(*shlex.split(again)[1:]).stdout
    assert "Warning" not in without
