"""The command line as a user meets it: tables, files, help, and one line for every mistake."""

import csv
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from support.commands import nearkernel, self_contained

FILES = ["predictions.csv", "report.html", "result.json"]


pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")


def fails(*args, match, code=2):
    """One line on stderr, nothing on stdout, nothing written."""
    before = sorted(os.listdir())
    result = nearkernel(*args, code=code)
    assert re.fullmatch(r"(error|interrupted): [^\n]*\n", result.stderr), result.stderr
    assert re.search(match, result.stderr), result.stderr
    assert result.stdout == "" and sorted(os.listdir()) == before


def write_csv(rows=60, name="data.csv"):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=rows)
    lines = [f"{a},{b},{'red' if a > 0 else 'blue'},{c}" for (a, b), c in zip(x, y, strict=True)]
    with open(name, "w") as file:
        file.write("\n".join(["a,b,color,y", *lines]))


@pytest.mark.parametrize("rows", [500, pytest.param(5000, marks=pytest.mark.slow)])
def test_digits_the_main_job(rows):
    result = nearkernel("predict", "digits", "--out", "found", "--max-train", rows)
    assert sorted(os.listdir("found")) == FILES
    for word in (
        "Auto",
        "NNGP",
        "NTK",
        "Linear",
        "Majority",
        "test error",
        "AUC",
        "log-loss",
        "calibration",
        "seconds",
    ):
        assert word in result.stdout
    with open("found/result.json") as file:
        figures = json.load(file)["figures"]
    error = {name: figure["error"]["value"] for name, figure in figures.items()}
    assert error["NNGP"] < 0.06 and error["NTK"] < 0.06 < error["Linear"] < 0.15
    assert error["Auto"] < 0.06 and error["Majority"] > 0.8 and figures["Auto"]["auc"] > 0.99
    assert all(figure["log_loss"]["value"] > 0 for figure in figures.values())


def test_regression_writes_figures_predictions_and_settings():
    nearkernel("predict", "diabetes", "--seed", 3)
    with open("out/result.json") as file:
        found = json.load(file)
    assert found["settings"]["seed"] == 3 and found["data"]["task"] == "regression"
    assert set(found["versions"]) >= {"nearkernel", "jax", "numpy", "scipy", "python"}
    assert found["network"] == {
        "depth": 3,
        "activation": "relu",
        "weight_var": 2.0,
        "bias_var": 0.1,
        "algorithm": found["network"]["algorithm"],
        "training": "gradient flow to the end",
        "width": "infinite",
        "finite": None,
        "kind": "mlp",
    }
    with open("out/predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:6] == ["row", "true", "Auto", "Auto_std", "Auto_low", "Auto_high"]
    assert list(rows[0])[6:12] == ["NNGP", "NNGP_std", "NTK", "NTK_std", "Linear", "Linear_std"]
    assert len(rows) == found["data"]["test_rows"] == 88
    missed = np.array([float(row["NTK"]) - float(row["true"]) for row in rows])
    assert np.sqrt(np.mean(missed**2)) == pytest.approx(found["figures"]["NTK"]["rmse"]["value"], rel=1e-12)
    assert found["figures"]["Linear"]["r2"] > 0.3


def test_stopping_early_is_the_forecast_at_that_time():
    nearkernel("predict", "diabetes", "--time", 0.01, "--out", "early")
    nearkernel("predict", "diabetes", "--out", "late")
    with open("early/result.json") as file:
        early = json.load(file)
    with open("late/result.json") as file:
        late = json.load(file)
    # Both learn from the same rows, and neither looks at test rows: leave-one-out is the same, and says what pays.
    assert early["along_training"] == late["along_training"]
    curve = late["along_training"]
    at, error = np.log(curve["at"]), np.array(curve["error"])
    assert np.interp(np.log(0.01), at, error) < 0.98 * error[-1]
    assert early["figures"]["NTK"]["rmse"]["value"] < late["figures"]["NTK"]["rmse"]["value"]
    assert any("would do better if training stopped early" in note for note in late["notes"])


@pytest.mark.parametrize(
    "options, words",
    [
        (
            ["--algorithm", "gd", "--lr", "1e-4", "--steps", "50"],
            "gradient descent for 50 steps, learning rate 0.0001",
        ),
        (["--algorithm", "ridge", "--ridge", "0.1"], "training to the end with weight decay 0.1"),
        pytest.param(
            ["--algorithm", "gd", "--lr", "1e-4"],
            "gradient descent to the end, learning rate 0.0001",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["--depth", "1", "--activation", "erf", "--bias-var", "0"],
            "1 hidden erf layer of infinite width",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_other_networks_and_trainings(options, words):
    assert words in nearkernel("predict", "iris", *options).stdout
    with open("out/report.html") as file:
        assert words.split(" of ")[0] in file.read()


def test_a_csv_file_of_mixed_columns():
    write_csv()
    result = nearkernel("predict", "data.csv", "--target", "y", "--activation", "erf", "--depth", 1)
    assert "regression" in result.stdout and "Note: one-hot encoded: color (2 levels)." in result.stdout
    with open("out/result.json") as file:
        assert json.load(file)["figures"]["NNGP"]["r2"] > 0.8
    nearkernel("predict", "data.csv", "--target", "color", "--drop", "y")
    with open("out/result.json") as file:
        assert json.load(file)["data"]["classes"] == ["blue", "red"]


def test_convolutions_on_images():
    draw = np.random.default_rng(0).normal
    images = draw(size=(40, 4, 4, 2))
    np.savez("images.npz", x=images, y=np.where(images.mean(axis=(1, 2, 3)) > 0, "bright", "dark"))
    result = nearkernel("predict", "images.npz", "--network", "cnn-flatten", "--depth", 1)
    assert "1 convolutional relu layer of infinite width" in result.stdout
    with open("out/result.json") as file:
        found = json.load(file)
    assert found["data"]["classes"] == ["bright", "dark"] and found["settings"]["network"] == "cnn-flatten"
    with open("out/report.html") as file:
        assert "network-kind" not in file.read()  # flags are shown as they are typed
    fails("predict", "iris", "--network", "cnn", match=r"--network cnn needs images: .*; iris has 4 columns")


def test_json_is_what_is_written_and_nothing_else():
    result = nearkernel("predict", "wine", "--json")
    with open("out/result.json") as file:
        assert result.stdout == file.read()


def test_the_same_seed_gives_the_same_predictions():
    predictions = []
    for seed in (0, 0, 1):
        nearkernel("predict", "iris", "--seed", seed)
        with open("out/predictions.csv") as file:
            predictions.append(file.read())
    assert predictions[0] == predictions[1] != predictions[2]


@pytest.mark.parametrize("data, pictures", [("digits", 3 + 2), ("diabetes", 3 + 2), ("iris", 3 + 2)])
def test_the_report_holds_everything_it_shows(data, pictures):
    nearkernel("predict", data, "--max-train", 200)
    with open("out/report.html", encoding="utf-8") as file:
        page = file.read()
    assert page.count("<svg ") == pictures
    self_contained(page)
    assert f"nearkernel predict {data} --max-train 200" in page
    assert page.count("data:image/png") == (12 if data == "digits" else 0)


def test_text_of_the_data_cannot_break_the_report():
    write_csv()
    with open("data.csv") as file:
        text = file.read().replace("color", "<script>alert(1)</script>").replace("red", "<b>&")
    with open("data.csv", "w") as file:
        file.write(text)
    nearkernel("predict", "data.csv", "--target", "<script>alert(1)</script>", "--drop", "y")
    with open("out/report.html") as file:
        page = file.read()
    assert "<script" not in page and "<b>&<" not in page


def test_a_large_file_is_cut_and_says_so():
    write_csv(rows=500)
    result = nearkernel("predict", "data.csv", "--target", "y", "--max-train", 40)
    assert "Note: kept 40 training and 10 test rows of 500 (--max-train)." in result.stdout


@pytest.mark.parametrize("args", [["--help"], ["predict", "--help"], ["predict", "-h"]])
def test_help_shows_an_example(args):
    assert "nearkernel predict digits" in nearkernel(*args).stdout


def test_version():
    assert re.fullmatch(r"nearkernel \d+\.\d+\.\d+\n", nearkernel("--version").stdout)


@pytest.mark.parametrize(
    "args, match",
    [
        (["predict"], r"Missing argument 'data'. See --help"),
        (["predcit", "digits"], r"No such command 'predcit'. Did you mean 'predict'\? See --help"),
        (["completion", "tcsh"], r"'shell': 'tcsh' is not one of 'bash', 'zsh', 'fish'. See --help"),
        (["predict", "digits", "--dpeth", "3"], r"No such option: --dpeth .*--depth"),
        (["predict", "digits", "--depth", "0"], r"--depth 0: .*greater than or equal to 1"),
        (["predict", "digits", "--depth=two"], r"--depth two: .*valid integer"),
        (["predict", "digits", "--task", "guess"], r"--task guess: .*'auto', 'regression', 'classification'"),
        (["predict", "digits", "--algorithm", "adam"], r"--algorithm adam: .*'flow', 'gd', 'ridge'"),
        (["predict", "digits", "--max-train", "1"], r"--max-train 1: .*greater than or equal to 2"),
        (["predict", "digits", "--test-fraction", "1"], r"--test-fraction 1: .*less than or equal to 0.99"),
        (["predict", "digits", "--seed", "-1"], r"--seed -1: .*greater than or equal to 0"),
        (["predict", "digits", "--weight-var", "0"], r"--weight-var 0: give a number above 0"),
        (["predict", "digits", "--weight-var", "-1"], r"--weight-var -1: .*greater than or equal to 0"),
        (["predict", "digits", "--bias-var", "inf"], r"--bias-var inf: give a finite number"),
        (
            ["predict", "digits", "--activation", "rleu"],
            r"--activation 'rleu' is unknown; .* Did you mean 'relu'\?",
        ),
        (["predict", "digits", "--algorithm", "gd"], r"--algorithm gd needs a learning rate: give --lr"),
        (["predict", "digits", "--algorithm", "gd", "--lr", "0"], r"--lr 0: give a number above 0"),
        (["predict", "digits", "--lr", "0.1"], r"--lr belongs to --algorithm gd, not flow"),
        (["predict", "digits", "--steps", "10"], r"--steps belongs to --algorithm gd, not flow"),
        (["predict", "digits", "--ridge", "1"], r"--ridge belongs to --algorithm ridge, not flow"),
        (
            ["predict", "digits", "--width", "7"],
            r"--width 7 belongs to a network of finite width: give --order or",
        ),
        (
            ["predict", "digits", "--algorithm", "ridge", "--time", "1"],
            r"--time belongs to --algorithm flow, not ridge",
        ),
        (["predict", "digit"], r"no data set 'digit': .* Did you mean 'digits'\?"),
        (["predict", "absent.csv", "--target", "y"], r"absent.csv: no such file"),
        (["predict", "digits", "--out", __file__], r"--out .*test_cli.py: .*is a file, not a folder"),
        (
            ["predict", "digits", "--max-train", "2"],
            r"--max-train 2 leaves 2 training and 0 test rows of 1797",
        ),
    ],
)
def test_a_mistake_costs_one_line(args, match):
    fails(*args, match=match)


def test_a_learning_rate_beyond_the_limit_is_refused_with_the_limit():
    fails("predict", "iris", "--algorithm", "gd", "--lr", "10", match=r"--lr 10: .*2/lambda_max")


def test_a_kernel_beyond_working_accuracy_is_refused():
    args = ["predict", "iris", "--activation", "monomial(3)", "--depth", "4"]
    fails(*args, match=r"the NNGP kernel of these rows is singular .* smaller --depth or --weight-var")


def test_a_file_without_the_target_is_refused_and_old_results_stay():
    write_csv()
    nearkernel("predict", "data.csv", "--target", "y")
    with open("out/result.json") as file:
        old = file.read()
    fails(
        "predict",
        "data.csv",
        "--target",
        "z",
        match=r"--target z: data.csv has no such column; it has 'a', 'b'",
    )
    with open("out/result.json") as file:
        assert file.read() == old


def test_ctrl_c_says_so_and_writes_nothing(monkeypatch):
    from nearkernel._commands.predict import command

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    fails("predict", "iris", match="interrupted: nothing was written", code=130)


def test_the_unexpected_is_one_line_too_unless_debugging(monkeypatch):
    from nearkernel._commands.predict import command

    def broken(*args):
        raise KeyError("surprise")

    monkeypatch.setattr(command, "run", broken)
    fails("predict", "iris", match="unexpected KeyError.'surprise'.; --debug shows where", code=1)
    assert "Traceback" in nearkernel("predict", "iris", "--debug", code=1).stderr
    assert "Traceback" in nearkernel("predict", "absent.csv", "--debug", code=2).stderr


def test_the_installed_command_runs_as_a_process_of_its_own():
    done = subprocess.run(
        [sys.executable, "-m", "nearkernel", "predict", "iris"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "NTK" in done.stdout and sorted(os.listdir("out")) == FILES
    done = subprocess.run(
        [sys.executable, "-m", "nearkernel", "predict", "irs"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
