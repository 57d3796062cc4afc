"""`nearkernel advise` as a user meets it, and the numbers behind it."""

import json
import os
import re

import jax
import numpy as np
import pytest
import scipy.stats

import nearkernel as nk
from commands import nearkernel, self_contained
from drawn import Drawn
from helpers import points
from nearkernel._advise import blocks, flow
from nearkernel._advise.advice import bad_draw
from nearkernel._advise.blocks import BLOCKS, Point
from nearkernel._advise.starts import DEFAULTS, how_to_type

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
    for words in ("PyTorch  torch.nn.init.normal_", "Flax     nn.Dense(48", "Keras    keras.layers.Dense(48"):
        assert words in result.stdout
    assert "Depth over width is 0.125" in result.stdout and "of all draws" in result.stdout
    assert max(map(len, result.stdout.split("Change of size")[1].splitlines())) <= 80
    starts = found["initializations"]
    assert list(starts) == ["critical", "PyTorch", "Flax", "Keras"]
    assert starts["critical"]["verdict"] == "fine" and starts["PyTorch"]["verdict"] == "vanishes"
    for start in starts.values():
        for name in ("signal", "gradient"):
            theory, measured, error = (
                start[name][key] for key in ("predicted", "measured", "standard_error")
            )
            assert abs(measured - theory) < 4 * error + 0.15 * theory  # infinite width against width 48
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
    assert found["fluctuations"]["exact"] and found["fluctuations"]["depth_over_width"] == 0.125
    assert found["learning_rates"]["rows"] == 112 and found["learning_rates"]["condition"] == "inf"
    assert found["data"].startswith("iris: 112 rows of 4 features")
    # Half of a squared signal is lost in every layer at weight_var 1: five layers lie between first and last.
    flax = found["initializations"]["Flax"]["gradient"]["predicted"]
    assert flax == pytest.approx(2**-2.5)


def test_predicted_signals_are_those_of_propagation():
    flax = DEFAULTS[1]
    found = flow.predicted("tanh", BLOCKS["plain"], flax, 5, 100, 30, 1.7)
    net = nk.MLP(30, (100,) * 4, 1, "tanh", weight_var=1.0)
    layers = nk.propagate(net, np.sqrt(1.7) * np.ones((1, 30)))
    np.testing.assert_allclose(found.signal, [float(layer.kernel[0, 0]) for layer in layers], rtol=1e-9)


@pytest.mark.parametrize("block", ["residual", "prenorm", "normalized"])
def test_residual_and_normalized_networks(block):
    """Variances to give, theory and drawn networks, learning rates: those of the library's own networks."""
    found = json.loads(nearkernel("advise", "--block", block, *SHAPE, "--json").stdout)
    point, numbers = found["critical"], found["critical"]["block"]
    assert point["universality"] == block and numbers["blocks"] == 5
    starts = found["initializations"]
    assert starts["critical"]["verdict"] == "fine"
    for start in starts.values():
        for name in ("signal", "gradient"):
            theory, measured, error = (
                start[name][key] for key in ("predicted", "measured", "standard_error")
            )
            assert abs(measured - theory) < 4 * error + 0.15 * theory
    gradient = starts["critical"]["gradient"]["predicted"] ** 2
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


def test_normalized_layers_of_smooth_activations_need_biases():
    point = blocks.block_point(BLOCKS["normalized"], "tanh", 11)
    assert point.bias_var > 0.05 and point.block["chi_perp"] == pytest.approx(1.0, abs=1e-6)
    assert point.block["gradient_growth"] == pytest.approx(1.0, abs=1e-3)


def test_words_of_blocks():
    result = nearkernel("advise", "--block", "prenorm", *SHAPE)
    assert "a first layer and 5 residual blocks z + W s(LayerNorm(z)) of width 48" in result.stdout
    assert "squared gradients grow by 3.5 in 5 blocks, by a power of their number" in result.stdout
    assert "Inputs of correlation 0.5 leave the last block with" in result.stdout
    assert "(measured on 32 networks)" in result.stdout
    message = "--tolerance is for --block plain: the order 1/width of prenorm networks is not known"
    assert message in nearkernel(
        "advise", "--block", "prenorm", "--activation", "tanh", "--tolerance", 0.1, "--data", "iris", code=2
    ).stderr.replace("\n", " ")


def test_numbers_are_drawn_with_the_laws_of_the_frameworks():
    with jax.enable_x64(True):
        draws = {
            name: np.asarray(flow._standard(law, jax.random.key(0), (200_000,)), np.float64)
            for name, law in flow._LAWS.items()
        }
    for name, law in (
        ("uniform", scipy.stats.uniform(-np.sqrt(3), 2 * np.sqrt(3))),
        ("normal", scipy.stats.norm()),
        ("truncated_normal", scipy.stats.truncnorm(-2, 2, scale=1 / 0.8796256610)),
    ):
        assert scipy.stats.kstest(draws[name], law.cdf).pvalue > 1e-3, name
        assert draws[name].var() == pytest.approx(1.0, abs=0.01)


def test_the_single_rate_is_that_of_drawn_networks():
    """One rate for all parameters of a network in standard scaling: 2 / lambda_max of the mean loss, within 20 %."""
    from nearkernel._advise.advice import _rates
    from nearkernel._advise.options import Inputs

    x = points(30, 5)
    net = nk.MLP(5, (300, 300), 1, "relu", 1.8, 0.1, "standard")
    rates = _rates(net, Inputs(x, 5, "", ()), 1.0, 300, Point(net.activation, 1.8, 0.1, 1.0, "", ""))
    drawn = Drawn(net, x, 20)  # NTK scaling has the same signals
    enters = [np.broadcast_to(x, (20, 30, 5)), *(np.maximum(z, 0) for z in drawn.z[:-1])]
    signals = [signal[:, :, 0] for signal in drawn.signals]
    kernel = sum(
        (s @ s.swapaxes(1, 2)) * (e @ e.swapaxes(1, 2) + 1) for s, e in zip(signals, enters, strict=True)
    )
    largest = np.linalg.eigvalsh(kernel)[:, -1].mean()
    assert 2 * 30 / largest == pytest.approx(rates.single, rel=0.2)
    assert rates.hidden_weights == pytest.approx(rates.stable * 1.8 / 300)


def test_bad_draws_of_relu_are_counted_right():
    net = nk.MLP(20, (40,) * 10, 1, "relu", weight_var=2.0)
    g = nk.statistics.input_gradient(net).sample(100_000, jax.random.key(0))
    share = np.mean((g < 2 / 4) | (g > 2 * 4))
    assert bad_draw(net, 0.0) == pytest.approx(share, abs=4 * np.sqrt(share / 100_000))


@pytest.mark.slow
def test_what_is_typed_in_flax_has_the_critical_variances():
    flax = pytest.importorskip("flax.linen")
    layer = eval(how_to_type(1.98305826, 0.17292239, 2000)["Flax"], {"nn": flax})
    params = layer.init(jax.random.key(0), np.zeros((1, 300)))["params"]
    assert float(params["kernel"].var()) * 300 == pytest.approx(1.98305826, rel=0.01)
    assert float(params["bias"].var()) == pytest.approx(0.17292239, rel=0.1)
    layer = eval(how_to_type(2.0, 0.0, 10)["Flax"], {"nn": flax})
    assert float(np.abs(layer.init(jax.random.key(0), np.zeros((1, 3)))["params"]["bias"]).max()) == 0.0


@pytest.mark.parametrize("bias_var", [0.0, 0.2])
def test_what_is_typed_is_python(bias_var):
    for code in how_to_type(2.0, bias_var, 10).values():
        compile(code, "typed", "exec")


def test_verdicts_allow_powers_of_the_depth():
    def ended(gradient, signal=1.0, depth=30):
        ones, zeros = np.ones(depth), np.zeros(depth)
        ones[-1], gradients = signal**2, np.full(depth, gradient**2)
        return flow.verdict(flow.Flow(ones, gradients, zeros, zeros))

    assert [ended(1e-3), ended(1e3), ended(0.05), ended(1.0)] == ["vanishes", "explodes", "fine", "fine"]
    assert [ended(1.0, 1e-3), ended(1.0, 1e3)] == ["signal vanishes", "signal explodes"]


@pytest.mark.parametrize(
    "args, match",
    [
        (["--activation", "softplus"], r"--activation softplus: no critical point: .* Try tanh, gelu"),
        (["--activation", "gleu"], r"--activation 'gleu' is unknown; .* Did you mean 'gelu'\?"),
        (["--depth", "0"], r"--depth 0: .*greater than or equal to 1"),
        (["--width", "0"], r"--width 0: .*greater than or equal to 1"),
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
    assert f"Within 0.1 from width {found['width_within']} on." in result.stdout
    assert len(found["losses"]) == len(found["losses_when_wide"]) == 2
    assert found["best_depth"] == 1 + np.argmin(found["losses"])
    assert f"Of depths 1 to 2 the best at this width is {found['best_depth']}" in result.stdout
    assert "the next may not be small" in result.stdout


@pytest.mark.parametrize(
    "args, message",
    [
        (["--activation", "tanh"], "--tolerance needs --data"),
        (["--data", "iris"], "at the kink of relu the order 1/width is not known"),
    ],
)
def test_a_tolerance_needs_data_and_a_smooth_activation(args, message):
    assert message in nearkernel("advise", *SHAPE, "--tolerance", 0.1, *args, code=2).stderr.replace(
        "\n", " "
    )
