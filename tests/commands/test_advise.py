"""`nearkernel advise` as a user meets it, and the numbers behind it."""

import json
import os
import re

import numpy as np
import pytest

import nearkernel as nk
from nearkernel._commands.advise import blocks
from nearkernel._commands.advise.blocks import BLOCKS, Point
from nearkernel._commands.advise.reporting import words
from support.cases import few
from support.commands import nearkernel, self_contained


def flat(text):
    return re.sub(r"\s+", " ", text)


FILES = ["advice.json", "advice.png", "report.html"]
SHAPE = ["--depth", "6", "--width", "48"]


pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")


def test_gelu_the_main_job():
    result = nearkernel("advise", "--activation", "gelu", *SHAPE)
    assert sorted(os.listdir("out")) == FILES
    with open("out/advice.json") as file:
        found = json.load(file)
    assert found["critical"]["weight_var"] == pytest.approx(1.98305825744, abs=1e-8)
    assert found["critical"]["bias_var"] == pytest.approx(0.17292239076, abs=1e-8)
    assert found["critical"]["universality"] == "half-stable"
    for printed in (
        "PyTorch: init_(model)",
        "Flax: params = init_(params",
        "Keras: init_(model)",
        "torch.nn.init.orthogonal_(p, gain=(1.9830583 *",
        "jax.nn.initializers.orthogonal((1.9830583 *",
        "keras.initializers.Orthogonal((1.9830583 *",
        "Orthogonal weights keep more: a small change survives in",
    ):
        assert printed in result.stdout
    assert "/ depth" not in result.stdout and "a variance of 1.2 K* is 1.2 K* after 6 layers" in flat(
        result.stdout
    )
    assert "Depth over width is 0.125" in result.stdout and "of all draws" in result.stdout
    assert (
        max(map(len, result.stdout.split("by initialization")[1].split("Measured on")[0].splitlines())) <= 80
    )
    starts = found["initializations"]
    assert list(starts) == ["advised", "normal", "He", "PyTorch", "Flax", "Keras"]
    assert starts["advised"]["weights"] == "orthogonal" and starts["normal"]["weights"] == "normal"
    assert starts["advised"]["directions"]["predicted"] > 1.5 * starts["normal"]["directions"]["predicted"]
    assert (
        found["change_nothing"] == []
        and starts["advised"]["verdict"] == "fine"
        and starts["PyTorch"]["verdict"] == "vanishes"
    )
    for start in starts.values():
        for name in ("signal", "gradient"):
            theory, measured, error = (
                start[name][key] for key in ("predicted", "measured", "standard_error")
            )
            assert abs(measured - theory) < 4 * error + 0.2 * theory  # infinite width against width 48
        assert start["gradient"]["predicted_mean_squares"][0] == 1.0 and start["networks"] == 32
    with open("out/advice.png", "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    with open("out/report.html", encoding="utf-8") as file:
        page = file.read()
    self_contained(page)
    assert page.count("<svg ") == 1 and "nearkernel advise --activation gelu --depth 6 --width 48" in page
    assert "biases of variance 0.1729" in page and "Depth over width is 0.125" in page and "vanishes" in page


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "tanh", "relu"])
def test_twenty_layers_of_512_do_what_is_predicted(activation):
    result = nearkernel("advise", "--activation", activation, "--depth", 20, "--width", 512, "--json")
    for start in json.loads(result.stdout)["initializations"].values():
        for name in ("signal", "gradient"):
            theory, measured, error = (
                start[name][key] for key in ("predicted", "measured", "standard_error")
            )
            assert abs(measured - theory) < 4 * error + 0.05 * theory


def test_relu_with_data_as_json():
    result = nearkernel("advise", *SHAPE, "--data", "iris", "--json", "--out", "found")
    found = json.loads(result.stdout)
    with open("found/advice.json") as file:
        assert result.stdout == file.read()
    assert found["critical"]["weight_var"] == 2.0 and found["critical"]["input_scale"] == 1.0
    assert not found["fluctuations"]["exact"] and found["fluctuations"]["depth_over_width"] == 0.125
    assert found["fluctuations"]["networks"] == 32  # the law of relu networks is that of normal weights
    assert found["learning_rates"]["rows"] == 112 and found["learning_rates"]["condition"] == "inf"
    assert found["data"].startswith("iris: 112 rows of 4 features")
    # Half of a squared signal is lost in every layer at weight_var 1: five layers lie between first and last.
    flax = found["initializations"]["Flax"]["gradient"]["predicted"]
    assert flax == pytest.approx(2**-2.5)


@pytest.mark.parametrize("block", few(["residual", "prenorm", "normalized"], 1))
def test_residual_and_normalized_networks(block):
    """Variances to give, theory and drawn networks, learning rates: those of the library's own networks."""
    found = json.loads(nearkernel("advise", "--block", block, *SHAPE, "--json").stdout)
    point, numbers = found["critical"], found["critical"]["block"]
    assert point["universality"] == block and numbers["blocks"] == 5
    starts = found["initializations"]
    assert starts["advised"]["verdict"] == "fine"
    for start in starts.values():
        for name in ("signal", "gradient"):
            theory, measured, error = (
                start[name][key] for key in ("predicted", "measured", "standard_error")
            )
            assert abs(measured - theory) < 4 * error + 0.15 * theory
    gradient = starts["advised"]["gradient"]["predicted"] ** 2
    if block == "residual":  # (1 + C_W/2)^5 = e
        assert point["weight_var"] == pytest.approx(2 * (np.exp(0.2) - 1)) and gradient == pytest.approx(np.e)
        assert "about 2.21 / blocks" in point["message"]
        assert starts["Keras"]["gradient"]["predicted"] == pytest.approx(1.5**2.5)
    elif block == "prenorm":  # K_5 / K_0
        assert point["weight_var"] == 1.0 and gradient == pytest.approx(3.5)
    else:
        assert (
            gradient == pytest.approx(0.5) and numbers["depth_scale"] == "inf"
        )  # the first block sees K = 1
        gradient = 2 * gradient
    assert gradient == pytest.approx(numbers["gradient_growth"], rel=1e-6)
    net = blocks.network(
        BLOCKS[block], Point(nk.activations.get("relu"), *variances(point), np.nan, "", ""), 48, 48, 6
    )
    rates = nk.statistics.learning_rates(net, np.ones((1, 48)))
    assert found["learning_rates"]["stable"] == pytest.approx(rates.stable)
    assert found["fluctuations"]["networks"] == 32 and 0 < found["fluctuations"]["variance"] < 0.7
    with open("out/report.html", encoding="utf-8") as file:
        assert "<svg " in file.read()


def variances(point):
    return point["weight_var"], point["bias_var"]


def test_words_of_blocks():
    result = nearkernel("advise", "--block", "prenorm", *SHAPE)
    assert "a first layer and 5 residual blocks z + W s(LayerNorm(z)) of width 48" in result.stdout
    text = flat(result.stdout)
    assert "Gradients change by a factor of 1.87 in 5 blocks." in text  # as in the table below it
    assert re.search(r"advised 1\.9 1\.9 ±\d+% 1\.9", text) and "squared gradient" not in text
    assert "Inputs with correlation 0.5 have correlation" in text and "(measured on 32 networks)" in text
    assert "here sqrt(5) = 2.24: row He/sqrt(L)" in text and "critical" not in text
    assert "Gradients off by more than a factor of 2: less than 3.1 % of all draws." in text
    message = "--tolerance is for --block plain: the order 1/width of prenorm networks is not known"
    assert message in nearkernel(
        "advise", "--block", "prenorm", "--activation", "tanh", "--tolerance", 0.1, "--data", "iris", code=2
    ).stderr.replace("\n", " ")


@pytest.mark.slow
def test_a_tuned_rate_is_carried_over():
    """Factors of muP, and powers of the width as predicted: within 4 standard errors and 0.15 for narrow networks."""
    result = nearkernel("advise", "--activation", "tanh", "--depth", 2, "--width", 96, "--tuned-width", 24)
    with open("out/advice.json") as file:
        found = json.load(file)["maximal_update"]
    net = nk.MLP(96, (96, 96), 1, "tanh", bias_var=0.1, parametrization="mup", base_width=24)
    for optimizer in ("sgd", "adam"):
        first, hidden, last = (entry["weight"] for entry in net.lr_factors(optimizer))
        assert list(found[optimizer].values()) == [first, hidden, last]
        assert net.lr_factors(optimizer)[0]["bias"] == found[optimizer]["first layer, biases, norms"]
    assert list(found["initial"].values()) == [1, 1, 0.25] and found["ratio"] == 4
    for move in found["moves"]:
        assert abs(move["measured"] - move["predicted"]) < 4 * move["error"] + 0.15, move
        assert move["scaling"] == "standard" or move["predicted"] == 0
    text = re.sub(r"\s+", " ", result.stdout)
    assert "A learning rate tuned at width 24, carried over to width 96 (muP, r = 4)" in text
    assert (
        "PyTorch: optimizer = torch.optim.Adam(mup_(model, base, lr))" in text
        and "Adam, a first guess" in text
    )
    with open("out/report.html", encoding="utf-8") as file:
        page = file.read()
    self_contained(page)
    assert "def mup_(model, base, lr, adam=True):" in page and "Coordinate check" in page


@pytest.mark.slow
@pytest.mark.parametrize("block", ["residual", "prenorm", "normalized", "transformer"])
def test_blocks_carry_a_tuned_rate_over(block):
    shape = ["--depth", 4, "--width", 96, "--tuned-width", 48, "--block", block, "--json"]
    for move in json.loads(nearkernel("advise", *shape).stdout)["maximal_update"]["moves"]:
        assert abs(move["measured"] - move["predicted"]) < 4 * move["error"] + 0.2, move


def test_a_transformer():
    """What is printed, growth over blocks, and the same numbers as of single networks."""
    shape = ["--block", "transformer", "--activation", "gelu", "--depth", 5, "--width", 64, "--tokens", 16]
    text = flat(nearkernel("advise", *shape).stdout)
    assert "a first layer and 4 pre-norm transformer blocks of width 64, for 16 tokens" in text
    assert "Correlation of two of 16 tokens after the last block, independent before the first" in text
    assert "Transformer: weight_var = 1; any other does as well" in text and "init_(" not in text
    assert "PyTorch, Flax, Keras: change nothing." in text and "critical" not in text
    assert "sqrt(8) = 2.83: row GPT-2" in text
    assert "Tokens with correlation 0 have correlation 0." in text
    with open("out/advice.json") as file:
        found = json.load(file)
    assert list(found["initializations"]) == ["advised", "GPT-2", "PyTorch", "Flax", "Keras"]
    assert found["change_nothing"] == ["PyTorch", "Flax", "Keras"] and found["how_to_type"] == {}
    numbers, starts = found["critical"]["block"], found["initializations"]
    assert numbers["tokens"] == 16 and numbers["blocks"] == 4
    critical = starts["advised"]
    assert critical["gradient"]["predicted"] ** 2 == pytest.approx(numbers["gradient_growth"])
    assert critical["correlation_of_tokens"]["predicted"][-1] == pytest.approx(numbers["correlation_to"])
    for start in starts.values():
        assert start["verdict"] == "fine"
        for name in ("signal", "gradient"):
            theory, measured, error = (
                start[name][key] for key in ("predicted", "measured", "standard_error")
            )
            assert abs(measured - theory) < 4 * error + 0.1 * theory  # infinite width against width 64
    with open("out/report.html", encoding="utf-8") as file:
        page = file.read()
    self_contained(page)
    assert (
        "Initialize 4 transformer blocks of gelu as PyTorch, Flax, Keras do by default" in page
        and "Correlation of two of 16 tokens" in page
    )


@pytest.mark.parametrize(
    "args, match",
    [
        (["--activation", "softplus"], r"--activation softplus: no critical point: .* Try tanh, gelu"),
        (["--activation", "gleu"], r"--activation 'gleu' is unknown; .* Did you mean 'gelu'\?"),
        (["--depth", "0"], r"--depth 0: .*greater than or equal to 1"),
        (["--width", "0"], r"--width 0: .*greater than or equal to 1"),
        (["--tuned-width", "0"], r"--tuned-width 0: .*greater than or equal to 1"),
        (["--train", "adam"], r"--train needs --data, the rows on which networks are trained"),
        (["--train", "sgd", "--data", "iris"], r"--train sgd: .*'gd', 'adam'"),
        (["--seeds", "7"], r"--seeds 7 is for --train: give --train gd or --train adam, too"),
        (["--seeds", "1", "--train", "adam", "--data", "iris"], r"--seeds 1: .*greater than or equal to 2"),
        (["--framework", "jax"], r"--framework jax: .*'torch', 'flax', 'keras'"),
        (["--tokens", "4"], r"--tokens is for --block transformer; got --block plain"),
        (
            ["--block", "transformer", "--data", "iris"],
            r"--data has rows, --block transformer needs sequences: give --tokens",
        ),
        (
            ["--block", "transformer", "--data", "iris", "--tokens", 3],
            r"--tokens 3: rows of 4 features cannot be cut into 3 equal parts; choose a divisor of 4",
        ),
        (["--target", "y"], r"--target belongs to --data: give the file"),
        (["--drop", "y"], r"--drop belongs to --data: give the file"),
        (["--data", "absent.csv", "--target", "y"], r"absent.csv: no such file"),
        (["--data", "irsi"], r"no data set 'irsi': .* Did you mean 'iris'\?"),
        (["--out", __file__], r"--out .*test_advise.py: .*is a file, not a folder"),
    ],
)
def test_a_mistake_costs_one_line(args, match):
    result = nearkernel("advise", *args, code=2)
    assert re.fullmatch(r"error: [^\n]*\n", result.stderr) and re.search(match, result.stderr), result.stderr
    assert result.stdout == "" and os.listdir() == []


@pytest.mark.parametrize(
    "framework, name", few([("torch", "PyTorch"), ("flax", "Flax"), ("keras", "Keras")], 1)
)
def test_code_of_one_framework(framework, name):
    shape = ["--activation", "relu", "--depth", 4, "--width", 16, "--framework", framework]
    text = nearkernel("advise", *shape).stdout
    calls = [each for each in words.CALLS if f"  {each}: {words.CALLS[each]}" in text]
    assert calls == [name]
    assert "This is He's initialization with orthogonal weights." in flat(text)
    with open("out/report.html", encoding="utf-8") as file:
        assert file.read().count("def init_(") == 1
    with open("out/advice.json") as file:
        assert list(json.load(file)["how_to_type"]) == [name]


def test_a_default_that_is_as_good_is_left_alone():
    """One tanh layer after the first: normal weights of variance 1/fan-in are what Flax draws anyway."""
    text = flat(nearkernel("advise", "--activation", "tanh", "--depth", 2, "--width", 32).stdout)
    assert "Flax, Keras: change nothing." in text and "PyTorch: init_(model)" in text
    assert "Flax: params = init_(params" not in text and "Keras: init_(model)" not in text


def test_help_shows_an_example():
    assert "nearkernel advise --activation gelu" in nearkernel("advise", "--help").stdout


@pytest.mark.slow
def test_which_width_is_enough_for_trained_networks():
    rng = np.random.default_rng(5)
    table = np.column_stack([rng.normal(size=(6, 2)), rng.normal(size=6)])
    np.savetxt("few.csv", table, delimiter=",", header="a,b,y", comments="")
    narrow = ["--activation", "tanh", "--depth", 2, "--width", 12, "--data", "few.csv", "--target", "y"]
    result = nearkernel("advise", *narrow, "--tolerance", 0.1)
    with open("out/advice.json") as file:
        found = json.load(file)["finite_width"]
    assert found["train_rows"] == 3 and found["new_rows"] == 1
    assert found["distance"] == max(found["mean_shift"], found["variance_shift"])
    assert found["width_within"] == np.ceil(12 * found["distance"] / 0.1)
    assert found["mean_shift"] == pytest.approx(
        abs(sum(part["mean"] for part in found["contributions"].values()))
    )
    assert f"Within 0.1 at width {found['width_within']} and above." in result.stdout
    assert len(found["losses"]) == len(found["losses_when_wide"]) == 2
    assert found["best_depth"] == 1 + np.argmin(found["losses"])
    assert f"Of depths 1 to 2 the best at this width is {found['best_depth']}" in result.stdout
    assert "the next order may not be small" in result.stdout


@pytest.mark.slow
def test_which_width_is_enough_for_relu_networks():
    shape = ["--activation", "relu", "--depth", 2, "--width", 300, "--data", "diabetes"]
    result = nearkernel("advise", *shape, "--tolerance", 0.1)
    with open("out/advice.json") as file:
        found = json.load(file)["finite_width"]
    assert found["train_rows"] == 16 and found["new_rows"] == 4
    assert found["distance"] == max(found["mean_shift"], found["variance_shift"])
    assert found["width_within"] == np.ceil(300 * (found["distance"] / 0.1) ** 2)
    assert 0 < found["error"] < 0.05 and found["movement"] > 0
    assert f"Within 0.1 at width {found['width_within']} and above." in result.stdout
    assert "this falls as width^(-1/2)" in result.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    "args, message",
    [
        (["--activation", "tanh"], "--tolerance needs --data"),
        (["--data", "iris", "--activation", "selu"], "and the relu family; got --activation selu."),
    ],
)
def test_a_tolerance_needs_data_and_a_known_activation(args, message):
    assert message in nearkernel("advise", *SHAPE, "--tolerance", 0.1, *args, code=2).stderr.replace(
        "\n", " "
    )
