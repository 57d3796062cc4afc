"""Numbers at axes and in tables are written for people."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from nearkernel._commands.predict import scores
from nearkernel._commands.predict.reading.columns import COLUMNS, for_people
from nearkernel._commands.predict.reporting import pictures
from nearkernel._commands.predict.reporting.answers import Answer
from nearkernel._commands.predict.reporting.pictures import _power_of_ten, short
from nearkernel._commands.predict.scores import Score
from support.commands import nearkernel


@pytest.mark.parametrize(
    "value, text",
    [
        (250_000.0, "250k"), (1.4e6, "1.4M"), (-3e9, "-3G"), (9500.0, "9500"), (0.25, "0.25"), (0.0, "0"),
        (1e15, "1e+15"),
    ],
)  # fmt: skip
def test_numbers_at_axes_are_short(value, text):
    assert short(value) == text


def test_powers_of_ten_and_large_losses():
    assert _power_of_ten(1e-3) == "10⁻³" and _power_of_ten(1e12) == "10¹²"
    show = {column.key: column.show for column in COLUMNS["classification"]}["log_loss"]
    assert show(Score(0.1234, 0.01)) == "0.123" and show(Score(197.056, 5.0)) == "197" and show(None) == "-"
    assert for_people(1_683_912.0) == "1,680,000"


def answer(name, n=40):
    mean = np.linspace(0, 1, n)
    intervals = scores.gaussian_intervals(mean, np.full(n, 0.3))
    log_probs = np.log(np.stack([0.5 + 0.4 * mean, 0.5 - 0.4 * mean], axis=1))
    return Answer(name, mean[:, None], None, 0.0, {}, log_probs, {}, np.zeros(n, dtype=int), intervals)


@pytest.mark.parametrize("paint", [pictures.coverage, pictures.reliability])
def test_legends_lie_outside_of_the_curves(paint):
    figure = Figure(figsize=(4.6, 3.7), layout="constrained")
    paint(figure, [answer(name) for name in pictures.SHOWN], np.zeros(40, dtype=int))
    figure.draw_without_rendering()
    (legend,), (axes,) = figure.legends, figure.axes
    assert not legend.get_window_extent().overlaps(axes.get_window_extent()) and axes.get_legend() is None


@pytest.mark.usefixtures("inside_an_empty_folder")
def test_intervals_have_one_meaning_in_a_report():
    """Those in the table, in the pictures and in predictions.csv are the same; what has none has an empty cell."""
    rng = np.random.default_rng(0)
    area, noise = rng.lognormal(size=(2, 200))
    lines = [f"{a},{b},{1000 * a * b**0.2}" for a, b in zip(area, noise, strict=True)]
    Path("table.csv").write_text("area,other,price\n" + "\n".join(lines), "utf-8")
    nearkernel("predict", "table.csv", "--target", "price", "--depth", 1)
    found = json.loads(Path("out/result.json").read_text("utf-8"))["figures"]
    with open("out/predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    inside = [float(row["Auto_low"]) <= float(row["true"]) <= float(row["Auto_high"]) for row in rows]
    assert np.mean(inside) == found["Auto"]["coverage"]
    assert {row["Boosting_std"] for row in rows} == {""} and found["Boosting"]["coverage"] is None
    assert all(float(row["Mean_std"]) > 0 for row in rows)
    page = Path("out/report.html").read_text("utf-8")
    assert "with its 90\u00a0% interval" in page and "standard deviation." not in page
    assert "Calibration of intervals" in page and re.search("quantiles of leave-one-out errors", page)


def test_the_last_interval_of_a_picture_is_that_of_the_table():
    rng = np.random.default_rng(0)
    mean, truth = np.zeros(500), rng.normal(size=500)
    intervals = scores.gaussian_intervals(mean, np.full(500, 1.0))
    drawn = scores.coverage(intervals, truth)
    assert scores.LEVELS[-1] == pytest.approx(0.9) and len(drawn) == len(scores.LEVELS)
    assert scores.of_regression(mean, np.ones(500), truth, intervals)["coverage"] == drawn[-1]
    assert scores.gaussian_intervals(mean, np.zeros(500)) is None
