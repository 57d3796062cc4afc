"""True drivers are said to matter, noise is not: with few rows and rare classes, too."""

import json
from pathlib import Path

import numpy as np
import pytest

from nearkernel._commands.predict.auto import chosen
from nearkernel._commands.predict.importance import _over_strata, _spread
from nearkernel._commands.predict.reading.data import LabeledData, load
from nearkernel._commands.predict.reading.prepare import split
from nearkernel.estimators.tables.frames import Column
from support.commands import nearkernel

NOISE = 6


def table(kind, n, seed):
    """Two drivers, `a` and `b`, and noise."""
    rng = np.random.default_rng(seed)
    columns = {f"noise{i}": rng.normal(size=n) for i in range(NOISE)}
    columns |= {"a": rng.normal(size=n), "b": rng.integers(0, 4, n).astype(float)}
    strength = columns["a"] + 0.7 * columns["b"]
    strength -= strength.mean()
    if kind == "numbers":
        y, classes = strength + rng.normal(size=n), ()
    elif kind == "classes":
        y, classes = (strength + 0.7 * rng.logistic(size=n) > 0).astype(int), ("no", "yes")
    else:  # about one in fifteen
        y, classes = (1.3 * strength - 3.2 + rng.logistic(size=n) > 0).astype(int), ("no", "yes")
    frame = {name: Column("number", values) for name, values in columns.items()}
    x = np.stack(list(columns.values()), axis=1)
    return LabeledData("made", x, y, tuple(columns), "y", classes, None, frame)


def importance(data):
    return chosen(data, split(data, 0.2, 50_000, 0), False, 0).importance


@pytest.mark.parametrize("kind, n", [("numbers", 80), ("classes", 200), ("rare", 400)])
def test_drivers_matter_and_noise_does_not(kind, n):
    found = importance(table(kind, n, 0))
    assert {each.column for each in found if each.matters} == {"a", "b"}
    assert [each.column for each in found[:2]] in (["a", "b"], ["b", "a"])
    assert all(each.cost.sem > 0 for each in found) and len(found) == NOISE + 2


@pytest.mark.slow
@pytest.mark.parametrize("kind, n", [("numbers", 60), ("numbers", 200), ("classes", 200), ("rare", 400)])
def test_how_often_noise_is_said_to_matter(kind, n):
    """At most 5 % of tables, by the rule; 3 of 24 have a chance of 3 %. Noise has a mean cost of 0."""
    false, true, sigmas = 0, 0, []
    for seed in range(24):
        found = importance(table(kind, n, seed))
        noise = [each for each in found if each.column.startswith("noise")]
        false += any(each.matters for each in noise)
        true += sum(each.matters for each in found) - sum(each.matters for each in noise)
        sigmas += [each.cost.value / each.cost.sem for each in noise]
    assert false <= 3 and true >= 0.85 * 48
    assert abs(np.mean(sigmas)) < 4 * np.std(sigmas) / np.sqrt(len(sigmas))
    assert np.std(sigmas) < 1.7  # sqrt(2) by the argument that the rule rests on


def test_rare_strata_are_tried_whole_and_weighed_by_their_share():
    rng = np.random.default_rng(0)
    strata = np.array([0] * 900 + [1] * 80 + [2] * 20)
    chosen = _spread(strata, 150, rng)
    assert np.bincount(strata[chosen]).tolist() == [65, 65, 20]
    assert len(_spread(strata, 10_000, rng)) == 1000
    cost = 1.0 * strata + 0.1 * rng.normal(size=1000)
    whole, some = _over_strata(cost, strata, np.arange(1000)), _over_strata(cost, strata, chosen)
    assert whole.value == pytest.approx(cost.mean(), abs=1e-12)
    assert abs(some.value - whole.value) < 4 * some.sem < 0.1


def test_images_and_tiny_tables_have_none():
    assert importance(table("numbers", 16, 0)) == ()
    data = load("digits")
    few = LabeledData(
        "digits", data.x[:60], data.y[:60], data.features, "digit", data.classes, data.image_shape
    )
    assert importance(few) == ()


@pytest.mark.merge
@pytest.mark.usefixtures("inside_an_empty_folder")
def test_what_does_not_matter_is_not_listed():
    rng = np.random.default_rng(1)
    lines = [f"{a},{b},{c},{2 * a + 0.5 * d}" for a, b, c, d in rng.normal(size=(90, 4))]
    Path("table.csv").write_text("area,color,mood,y\n" + "\n".join(lines), "utf-8")
    said = nearkernel("predict", "table.csv", "--target", "y", "--depth", 1).stdout
    line = next(each for each in said.splitlines() if each.startswith("What matters"))
    assert line.startswith("What matters (by how much R² falls without it): area (") and " ± " in line
    assert "color" not in line and "mood" not in line
    page = Path("out/report.html").read_text("utf-8")
    assert "Not beyond chance: " in page and "± one standard error" in page
    found = {
        each["column"]: each for each in json.loads(Path("out/result.json").read_text("utf-8"))["columns"]
    }
    assert [found[name]["matters"] for name in ("area", "color", "mood")] == [True, False, False]
    assert found["area"]["importance"] > 5 * found["area"]["standard_error"] > 0
    lines = [f"{a},{b},{c}" for a, b, c in rng.normal(size=(60, 3))]
    Path("noise.csv").write_text("a,b,y\n" + "\n".join(lines), "utf-8")
    said = nearkernel("predict", "noise.csv", "--target", "y", "--depth", 1).stdout
    assert "without it): no column beyond chance." in said
