"""`nearkernel ladder` and `nearkernel predict --order --train`: finite networks on the command line."""

import csv
import dataclasses
import json
import os

import numpy as np
import pytest

import nearkernel as nk
from support.commands import nearkernel

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")


def table(rows=24):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    y = np.sin(x[:, 0]) + 0.3 * x[:, 1]
    lines = [f"{a},{b},{c}" for (a, b), c in zip(x, y, strict=True)]
    with open("table.csv", "w") as file:
        file.write("\n".join(["a,b,y", *lines]))


SMALL = ("--points", 8, "--test-points", 6, "--dim", 3, "--depth", 1, "--width", 32, "--tol", 1e-2)


def test_the_ladder_is_climbed_drawn_and_written():
    result = nearkernel("ladder", *SMALL, "--alphas", "256,64,128", "--widths", "")
    assert sorted(os.listdir("out")) == ["ladder.json", "ladder.png", "ladder.svg", "report.html"]
    with open("out/ladder.json") as file:
        found = json.load(file)
    assert [rung["alpha"] for rung in found["rungs"]] == [64, 128, 256]
    # The powers hold for alpha -> infinity; at 64 to 256 the next order moves them by 0.02, 0.03 and 0.05.
    np.testing.assert_allclose(found["slopes"]["alpha"], [-1, -2, -3], atol=0.07)
    assert found["slopes"]["width"] is None and set(found["versions"]) >= {"jax", "nearkernel"}
    assert "Slopes over alpha" in result.stdout and "ladder.png" in result.stdout
    with open("out/ladder.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


def test_the_panel_over_richness_shows_every_network():
    from matplotlib.figure import Figure

    from nearkernel._commands.ladder.picture import draw
    from nearkernel.forecasts.theory_ladder import Rung, Settings, cases

    settings = Settings(alphas=(0.25, 4.0), widths=(64, 1024), rich=True)
    rungs = [
        Rung(*case, (0.3, 0.2, 0.1), 0.2, (0.1,) * 3, 1.0, 9, 0.1, "converged", True, 0.01 * (k + 1), "rich")
        for k, case in enumerate(cases(settings))
    ]
    figure = Figure()
    draw(figure, rungs, settings)
    *_, panel = figure.axes
    assert len(figure.axes) == 3 and panel.get_xlabel() == "richness 1/(α √width)"
    assert panel.get_xscale() == panel.get_yscale() == "log" and len(panel.lines) == 4
    limit = next(line for line in panel.lines if line.get_label() == "rich limit")
    expected = sorted((1 / (rung.alpha * rung.width**0.5), rung.rich) for rung in rungs)
    np.testing.assert_allclose(limit.get_xydata(), expected)
    without = Figure()
    draw(without, rungs, dataclasses.replace(settings, rich=False))
    assert len(without.axes) == 2


@pytest.mark.parametrize(
    ("typed", "line"),
    (
        (
            ("--activation", "relu"),
            "error: --activation relu: its slope jumps, and orders 1 and 2 would miss neurons",
        ),
        (("--activation", "tanj"), "error: --activation 'tanj' is unknown"),
        (
            ("--alphas", "1,two"),
            "error: --alphas 1,two: give numbers above 0, separated by commas; got 'two'.",
        ),
        (("--widths", "64,2.5"), "error: --widths 64,2.5: give integers above 0"),
        (("--alphas", "", "--widths", ""), "error: --alphas and --widths are both empty"),
        (("--tol", "0"), "error: --tol 0.0: give a number above 0."),
    ),
)
def test_bad_rungs_cost_one_line(typed, line):
    result = nearkernel("ladder", *typed, code=2)
    assert result.stderr.startswith(line) and result.stderr.count("\n") == 1
    assert not os.path.exists("out")


def test_a_finite_network_is_predicted_order_by_order_and_trained():
    table()
    network = ("--activation", "tanh", "--depth", 1, "--width", 64)
    training = ("--algorithm", "gd", "--lr", 0.01, "--steps", 30)
    result = nearkernel("predict", "table.csv", "--target", "y", *network, *training, "--order", 1, "--train")
    with open("out/result.json") as file:
        found = json.load(file)
    finite = found["finite_network"]
    assert list(finite) == ["order 0", "order 1", "trained"]
    assert 0 < finite["order 1"]["distance_from_trained"] < finite["order 0"]["distance_from_trained"] < 0.2
    assert found["network"]["finite"] == {"order": 1, "train": True, "width": 64, "seed": 0}
    assert "from trained" in result.stdout and "only the last row was trained" in result.stdout
    with open("out/predictions.csv", newline="") as file:
        assert "finite trained" in next(csv.reader(file))
    with open("out/report.html") as file:
        page = file.read()
    assert "actually trained" in page and "Only the last row of the table was trained." in page


@pytest.fixture
def real_training_diverges(monkeypatch):
    """Steps of real training are larger than theory knows: the loss rises, and stays finite."""
    train = nk.simulate

    def too_fast(model, params, x, y, algorithm, *others, **settings):
        faster = dataclasses.replace(algorithm, lr=200 * algorithm.lr)
        return train(model, params, x, y, faster, *others, **settings)

    monkeypatch.setattr(nk, "simulate", too_fast)
    monkeypatch.setattr("nearkernel.forecasts.theory_ladder.simulate", too_fast)


def test_training_that_diverges_is_an_error_not_an_answer(real_training_diverges):
    table()
    network = ("--activation", "tanh", "--depth", 1, "--width", 16)
    training = ("--algorithm", "gd", "--lr", 0.01, "--steps", 10)
    typed = ("predict", "table.csv", "--target", "y", *network, *training, "--train")
    result = nearkernel(*typed, code=2)
    assert "error: --train: training diverged: the loss rose from" in result.stderr
    assert "by step 10; give a smaller --lr." in result.stderr
    result = nearkernel("ladder", *SMALL, "--alphas", "16", "--widths", "", "--max-steps", 10, code=2)
    assert "error: alpha 16, width 32, seed 0: training diverged: the loss rose from" in result.stderr
    assert not os.path.exists("out")


def test_the_ladder_says_which_networks_were_not_trained_to_the_end():
    result = nearkernel("ladder", *SMALL, "--alphas", "16", "--widths", "", "--max-steps", 5)
    line = " ".join(result.stdout.split())
    assert "Training of 1 of 1 networks stopped at --max-steps, before --tol was reached" in line
    with open("out/ladder.json") as file:
        rung = json.load(file)["rungs"][0]
    assert not rung["converged"] and rung["status"] == "not converged after 5 steps"


def test_what_a_finite_network_cannot_do_costs_one_line():
    result = nearkernel("predict", "digits", "--order", 1, code=2)
    assert "at most 600 rows: give --max-train 600." in result.stderr
    table()
    result = nearkernel(
        "predict",
        "table.csv",
        "--target",
        "y",
        "--train",
        "--algorithm",
        "ridge",
        "--activation",
        "erf",
        code=2,
    )
    assert result.stderr.startswith("error: --train cannot be combined with --algorithm ridge")
    result = nearkernel("predict", "table.csv", "--target", "y", "--order", 3, code=2)
    assert "--order 3" in result.stderr
