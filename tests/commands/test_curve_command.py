"""`nearkernel curve`: learning curves on the command line."""

import json
import os

import numpy as np
import pytest

from support.commands import nearkernel, self_contained

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")


def test_a_table_becomes_a_curve_a_page_and_a_document():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    y = x[:, 0] + np.sin(2 * x[:, 1]) + 0.3 * rng.normal(size=90)
    with open("rows.csv", "w") as file:
        file.write("a,b,c,y\n")
        file.writelines(
            ",".join(f"{v:.6f}" for v in (*row, target)) + "\n" for row, target in zip(x, y, strict=True)
        )
    shown = nearkernel("curve", "rows.csv", "--target", "y", "--depth", 1, "--tune", "--check", 3).stdout
    assert sorted(os.listdir("out")) == ["curve.json", "curve.png", "report.html"]
    with open("out/curve.json", encoding="utf-8") as file:
        found = json.load(file)
    assert found["data"]["rows"] == 90 and found["sizes"][-1] == 90 and found["settings"]["tune"] is True
    assert found["error"][0] > found["error"][-1] > 0.05 and found["measure"] == "unexplained share"
    assert found["real_fits"]["fits"] == 3 and "chosen by leave-one-out" in found["training"]
    near = np.abs(np.array(found["real_fits"]["error"][4:9]) / found["error"][4:9] - 1)
    assert near.max() < 0.5
    sentence = "With twice the rows (180)" if found["twice_the_rows"]["trusted"] else "cannot be predicted"
    assert sentence in " ".join(shown.split())
    with open("out/report.html", encoding="utf-8") as file:
        page = file.read()
    self_contained(page)
    assert "nearkernel curve rows.csv --target y" in page and page.count("<svg ") == 1


def test_classes_have_a_brier_score_and_an_error_rate():
    shown = nearkernel("curve", "iris", "--depth", 1, "--ridge", 0.1, "--max-rows", 100, "--json").stdout
    found = json.loads(shown)
    assert found["measure"] == "Brier score" and 0 <= found["error_rate"] < 0.15
    assert found["notes"][0] == "kept 100 of 150 rows (--max-rows)"


def test_predict_has_the_curve_and_the_regime_too():
    quick = ("--depth", 1, "--max-train", 80)
    shown = nearkernel("predict", "iris", *quick, "--curve").stdout
    with open("out/result.json", encoding="utf-8") as file:
        found = json.load(file)
    curve = found["learning_curve"]
    assert (
        curve["measure"] == "Brier score"
        and curve["sizes"][-1] == 80
        and curve["error"][0] > curve["error"][-1]
    )
    assert (
        "gradient flow for a time of" in curve["training"] and "chosen by leave-one-out" in curve["training"]
    )
    words = " ".join(shown.split())
    assert (
        f"Learning curve of the NTK, {curve['training']}: With" in words and "nearkernel curve" not in words
    )
    twice = curve["twice_the_rows"]
    assert twice["rows"] == 160 and (
        not twice["trusted"] or "With twice the rows (160) the Brier score" in words
    )
    assert found["regime"]["name"] == "lazy" and found["regime"]["width"] == 512
    assert "a network of width 512 would be lazy (richness times targets 0.077)" in words
    with open("out/report.html", encoding="utf-8") as file:
        page = file.read()
    self_contained(page)
    assert "Would more rows help?" in page
    fixed = nearkernel(
        "predict", "iris", *quick, "--algorithm", "ridge", "--ridge", 1, "--curve", "--json"
    ).stdout
    assert json.loads(fixed)["learning_curve"]["training"] == "training to the end with weight decay 1"


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (("--tune", "--ridge", 1), "--tune chooses the value of --ridge or --time"),
        (("--tune", "--algorithm", "gd", "--lr", 0.1), "--tune chooses a ridge or a time"),
        (("--algorithm", "gd", "--lr", 10, "--steps", 3), "diverges: lr = 10"),
        (("--time", 3), "--time belongs to --algorithm flow"),
    ],
)
def test_bad_input_costs_one_line(typed, text):
    result = nearkernel("curve", "iris", "--depth", 1, *typed, code=2)
    assert text in result.stderr and result.stderr.count("\n") == 1
