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
from nearkernel._advise import blocks, flow, maximal, train, transformer
from nearkernel._advise.advice import bad_draw
from nearkernel._advise.blocks import BLOCKS, Point
from nearkernel._advise.starts import DEFAULTS, critical_start
from nearkernel._advise.typed import how_to_type

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
    for words in (
        "PyTorch: init_(model)",
        "Flax: params = init_(params",
        "Keras: init_(model)",
        "1.9830583 / fan_in",
    ):
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
    """As many as keep the growth of squared gradients at e; few layers need none."""
    point = blocks.block_point(BLOCKS["normalized"], "tanh", 11)
    assert point.bias_var > 0.02 and point.block["chi_perp"] == pytest.approx(np.exp(0.1), abs=1e-6)
    assert point.block["gradient_growth"] == pytest.approx(np.e, rel=1e-3)
    few = blocks.block_point(BLOCKS["normalized"], "tanh", 4)
    assert few.bias_var == 0 and 1 < few.block["gradient_growth"] < np.e


def test_words_of_blocks():
    result = nearkernel("advise", "--block", "prenorm", *SHAPE)
    assert "a first layer and 5 residual blocks z + W s(LayerNorm(z)) of width 48" in result.stdout
    assert (
        "squared gradients grow by a factor of 3.5 in 5 blocks, as a power of their number" in result.stdout
    )
    assert "Inputs with correlation 0.5 have correlation" in result.stdout
    assert "(measured on 32 networks)" in result.stdout
    message = "--tolerance is for --block plain: the order 1/width of prenorm networks is not known"
    assert message in nearkernel(
        "advise", "--block", "prenorm", "--activation", "tanh", "--tolerance", 0.1, "--data", "iris", code=2
    ).stderr.replace("\n", " ")


def test_numbers_are_drawn_with_the_laws_of_the_frameworks():
    with jax.enable_x64(True):
        draws = {
            name: np.asarray(flow.standard(law, jax.random.key(0), (200_000,)), np.float64)
            for name, law in flow.LAWS.items()
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


def typed(name, *settings, **names):
    """The function `init_` of a framework."""
    exec(how_to_type(*settings)[name], names)
    return names["init_"]


def has_variance(values, variance, count=6.0):
    """Draws of a Gaussian, by the standard error of their variance."""
    values = np.asarray(values, np.float64).ravel()
    if variance == 0:
        return bool((values == 0).all())
    return abs((values**2).mean() / variance - 1) < count * np.sqrt(2 / values.size)


def as_torch(torch):
    """A multilayer perceptron, and a small transformer with embeddings, norms and a convolution."""
    mlp = torch.nn.Sequential(
        torch.nn.Linear(30, 200), torch.nn.ReLU(), torch.nn.Linear(200, 300, bias=False), torch.nn.ReLU(),
        torch.nn.Linear(300, 7),
    )  # fmt: skip

    class Conv1D(torch.nn.Module):
        """As GPT-2 of Hugging Face has it: inputs first."""

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(32, 96))

    layer = torch.nn.TransformerEncoderLayer(32, 4, 96, batch_first=True, norm_first=True)
    transformer = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(20, 32),
            "encoder": torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            "patches": torch.nn.Conv2d(3, 16, 5),
            "gpt": Conv1D(),
            "places": torch.nn.ParameterDict(
                {"pos_embed": torch.ones(1, 5, 32), "cls_token": torch.ones(1, 1, 32)}
            ),
            "norm": torch.nn.LayerNorm(32),
            "head": torch.nn.Linear(32, 20),
        }
    )
    return mlp, transformer


@pytest.mark.parametrize("bias_var", [0.0, 0.17])
def test_init_of_pytorch_gives_every_parameter_its_variance(bias_var):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    init_ = typed("PyTorch", 1.98, bias_var, 3, torch=torch)
    for model in as_torch(torch):
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        init_(model)
        for name, p in model.named_parameters():
            if "norm" in name or "embed" in name or "token" in name:
                assert torch.equal(p, before[name]), name
            elif p.ndim == 1:
                assert has_variance(p.detach(), bias_var), name
            else:  # rows of in_proj are queries, keys and values of one fan-in
                fan_in = 3 * 25 if p.ndim == 4 else 32 if name == "gpt.weight" else p.shape[1]
                assert has_variance(p.detach(), 1.98 / fan_in), name


def test_init_of_residual_blocks_leaves_both_ends_at_one():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    mlp, _ = as_torch(torch)
    typed("PyTorch", 0.04, 0.0, 2, True, torch=torch)(mlp)
    weights = [p.detach() for p in mlp.parameters() if p.ndim > 1]
    assert all(has_variance(w, c / w.shape[1]) for w, c in zip(weights, (1.0, 0.04, 1.0), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("bias_var", [0.0, 0.17])
def test_init_of_flax_gives_every_parameter_its_variance(bias_var):
    nn = pytest.importorskip("flax.linen")

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(20, 32)(tokens)
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
            return nn.Dense(20)(nn.gelu(nn.Dense(96, use_bias=False)(nn.LayerNorm()(x))))

    params = Model().init(jax.random.key(0), np.zeros((1, 5), int))["params"]
    new = typed("Flax", 1.98, bias_var, 3, jax=jax)(params, jax.random.key(1))
    assert jax.tree.map(np.shape, new) == jax.tree.map(np.shape, params)
    for path, p in jax.tree_util.tree_leaves_with_path(new):
        names = [key.key for key in path]
        if names[-1] == "kernel":
            fan_in = 96 if p.shape == (96, 20) else 32  # names follow the order of construction
            assert has_variance(p, 1.98 / fan_in), names
        elif "LayerNorm" not in names[0] and names[-1] == "bias":
            assert has_variance(p, bias_var), names
        else:
            old = params[names[0]][names[1]]
            assert np.array_equal(p, old), names
    ends = typed("Flax", 0.04, 0.0, 1, True, jax=jax)(params, jax.random.key(1))
    assert has_variance(ends["Dense_1"]["kernel"], 1 / 32) and has_variance(ends["Dense_0"]["kernel"], 1 / 96)
    assert has_variance(ends["MultiHeadDotProductAttention_0"]["out"]["kernel"], 0.04 / 32)


@pytest.mark.slow
def test_init_of_keras_gives_every_parameter_its_variance():
    keras = pytest.importorskip("keras")
    import math

    x = inputs = keras.Input((5,))
    x = keras.layers.Embedding(20, 32)(x)
    x = x + keras.layers.MultiHeadAttention(4, 8)(keras.layers.LayerNormalization()(x), x)
    x = keras.layers.Dense(20)(keras.layers.Dense(96, use_bias=False)(x))
    model = keras.Model(inputs, x)
    typed("Keras", 1.98, 0.17, 3, keras=keras, math=math)(model)
    for v in model.trainable_variables:
        values = np.asarray(keras.ops.convert_to_numpy(v))
        if v.name == "kernel":
            fan_in = 96 if v.shape[0] == 96 else 32
            assert has_variance(values, 1.98 / fan_in), v.path
        elif v.name == "bias":
            assert has_variance(values, 0.17), v.path


@pytest.mark.parametrize("settings", [(2.0, 0.0, 3), (2.0, 0.2, 3), (0.1, 0.0, 3, True)])
def test_what_is_typed_is_python(settings):
    for code in how_to_type(*settings).values():
        compile(code, "typed", "exec")
        assert max(map(len, code.splitlines())) <= 104


def test_short_runs_are_those_of_the_library():
    """The same network, drawn once: losses after gradient descent and Adam are those of `nk.simulate`."""
    x, y = points(6, 4), np.sin(points(6, 2))
    params = train.drawn(DEFAULTS[0], jax.random.key(3), 4, 8, 3, 2)
    net = nk.MLP(4, (8, 8, 8), 2, "tanh", parametrization="standard")
    hidden = [{name: each[i] for name, each in params["hidden"].items()} for i in range(2)]
    theta = [params["first"], *hidden, params["last"]]
    for optimizer, rate in (("gd", 0.3), ("adam", 3e-3)):
        with jax.enable_x64(True):
            found = train._losses(net.activation, (False, False), optimizer, params, x, y, np.array([rate]))
        algorithm = nk.GradientDescent(rate / 6, steps=100) if optimizer == "gd" else nk.Adam(rate, 100)
        run = nk.simulate(net, theta, x, y, algorithm, nk.Record(every=100))
        losses = np.asarray(run.history["loss"])[[0, -1]] / 6  # of the sum over rows
        np.testing.assert_allclose(np.asarray(found)[0], losses, rtol=2e-4)
        assert losses[1] < 0.9 * losses[0]


def test_a_trained_transformer_is_that_of_the_library():
    """Queries and keys that share their weights, as `nk.layers.Attention` has them: outputs of one network."""
    block, s, tokens, width, depth = BLOCKS["transformer"], "gelu", 3, 8, 3
    net = blocks.network(block, transformer.point(s, depth, tokens), 4, width, depth, tokens)
    x = points(5, 12).reshape(5, tokens, 4)
    params = train.drawn(critical_start(1.0, 0.0), jax.random.key(3), 4, width, depth, 1, tokens)
    with jax.enable_x64(True):
        params = jax.tree.map(lambda a: np.asarray(a, float), params)
        hidden = params["hidden"] = params["hidden"] | {"key": params["hidden"]["query"]}
        heads = {name: hidden[name]["weight"][:, :, None] for name in ("query", "value")}
        attention = {**heads, "output": hidden["output"]["weight"], "bias": hidden["output"]["bias"]}
        theta = [params["first"], [[attention], [hidden["before"], hidden["after"]]], params["last"]]
        found = train.outputs(nk.activations.get(s), (True, True), params, x)
        np.testing.assert_allclose(found, net(theta, x), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("optimizer", ["gd", "adam"])
def test_training_from_the_advised_initialization_does_not_lose(block, optimizer):
    shape = ["--activation", "gelu", "--depth", "16", "--width", "96", "--block", block]
    rows = 64 if block == "transformer" else 128
    if block == "transformer":
        shape += ["--tokens", "8"]
    result = nearkernel("advise", *shape, "--data", "digits", "--train", optimizer)
    with open("out/advice.json") as file:
        found = json.load(file)["training"]
    runs = {run["name"]: run for run in found["runs"]}
    assert list(runs) == ["critical", "PyTorch", "Flax", "Keras"] and found["width"] == 64
    after = {name: float(run["after"]) for name, run in runs.items()}  # "inf" where all rates diverge
    assert after["critical"] < 0.95 * runs["critical"]["before"]
    assert after["critical"] <= 3 * min(after.values())  # normalized networks learn from any of them
    if block == "plain":
        assert after["critical"] < 0.8 * after["PyTorch"]
    way = "gradient descent" if optimizer == "gd" else "Adam"
    assert f"100 steps of {way} on {rows} rows, from each initialization" in result.stdout
    assert ("At width 96 muP keeps this rate" in result.stdout.replace("\n", " ")) == (optimizer == "adam")
    with open("out/report.html", encoding="utf-8") as file:
        assert f"100 steps of {way} on {rows} rows" in file.read()


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
    assert "PyTorch: optimizer = torch.optim.Adam(mup_(model, base, lr))" in text and "not for Adam" in text
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


@pytest.mark.parametrize(
    "activation, tokens, start",
    [("relu", 7, critical_start(1.0, 0.0)), ("tanh", 3, critical_start(1.4, 0.1)), ("gelu", 5, DEFAULTS[0])],
)
def test_tokens_and_gradients_of_transformers_are_those_predicted(activation, tokens, start):
    """Within 4 standard errors and 3 % for scores that are not yet small at width 256."""
    shape = (activation, tokens, start, 5, 256, 300, 1.0)
    theory, found = transformer.predicted(*shape), transformer.measured(*shape, 5)
    for name in ("signal", "gradient"):
        value, error = getattr(found, name), getattr(found, f"{name}_error")
        np.testing.assert_array_less(np.abs(value / getattr(theory, name) - 1), 4 * error + 0.03)
    np.testing.assert_array_less(np.abs(found.alike - theory.alike), 4 * found.alike_error + 0.02)
    assert found.networks == 8 and found.width == 256


def test_the_default_of_attention_in_pytorch_is_what_is_drawn():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(256, 4)
    values, outputs = DEFAULTS[0].attention(256)
    for p, variance in ((attention.in_proj_weight, values), (attention.out_proj.weight, outputs)):
        assert has_variance(p.detach(), variance / 256)
    assert has_variance(attention.in_proj_bias.detach(), 0.0) and DEFAULTS[1].attention(256) == (1.0, 1.0)


def test_attention_between_very_many_independent_tokens_adds_nothing_at_first():
    found = transformer.predicted("relu", 10**9, critical_start(1.0, 0.0), 2, 1, 1, 1.0)
    assert found.signal[1] == pytest.approx(1.5) and found.gradient[1] == pytest.approx(1.5)


def test_between_equal_tokens_a_transformer_is_a_network_without_positions():
    """What learning rates are computed from: values, then outputs, in place of attention."""
    point = transformer.point("tanh", 3, 2)
    sequences, vectors = (blocks.network(BLOCKS["transformer"], point, 6, 16, 3, tokens) for tokens in (5, 0))
    x = points(4, 6)
    copies = np.repeat(x[:, None], 5, axis=1)
    for kernel in (nk.kernels.NNGP, nk.kernels.NTK):
        np.testing.assert_allclose(kernel(sequences)(copies), kernel(vectors)(x), rtol=1e-8)


def test_a_transformer():
    """What is printed, growth over blocks, and the same numbers as of single networks."""
    shape = ["--block", "transformer", "--activation", "gelu", "--depth", 5, "--width", 64, "--tokens", 16]
    text = re.sub(r"\s+", " ", nearkernel("advise", *shape).stdout)
    assert "a first layer and 4 pre-norm transformer blocks of width 64, for 16 tokens" in text
    assert "Correlation of two of 16 tokens after the last block, independent before the first" in text
    assert "Transformer: weight_var = 1; squared gradients grow by" in text and "Conv1D" in text
    assert "Tokens with correlation 0 have correlation 0." in text
    with open("out/advice.json") as file:
        found = json.load(file)
    assert list(found["initializations"]) == ["critical", "PyTorch", "Flax", "Keras"]
    numbers, starts = found["critical"]["block"], found["initializations"]
    assert numbers["tokens"] == 16 and numbers["blocks"] == 4
    critical = starts["critical"]
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
    assert "Initialize 4 transformer blocks of gelu" in page and "Correlation of two of 16 tokens" in page


def carried(name, **names):
    """The function of a framework that sets factors."""
    exec(maximal.CODE[name], names)
    return names["mup" if name == "Flax" else "mup_"]


def expected_of_mup(width, adam):
    """(learning rates, factor of the initial output weights) of inputs, hidden weights and outputs, from width 8."""
    net = nk.MLP(5, (width, width), 2, bias_var=0.1, parametrization="mup", base_width=8)
    return net.lr_factors("adam" if adam else "sgd"), (8 / width) ** 0.5


@pytest.mark.parametrize("adam", [True, False])
def test_code_of_pytorch_sets_rates_and_outputs(adam):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    def model(n):
        layers = [torch.nn.Linear(5, n), torch.nn.ReLU(), torch.nn.LayerNorm(n), torch.nn.Linear(n, n)]
        return torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(n, 2))

    net, base = model(32), model(8)
    before = [p.detach().clone() for p in net.parameters()]
    groups = carried("PyTorch", torch=torch)(net, base, 0.1, adam)
    (torch.optim.Adam if adam else torch.optim.SGD)(groups, lr=1.0)
    rates, last = expected_of_mup(32, adam)
    found = [group["lr"] / 0.1 for group in groups]
    weights = [rates[0]["weight"], rates[1]["weight"], rates[2]["weight"]]
    assert [found[k] for k in (0, 4, 6)] == pytest.approx(weights)
    biases = [rates[0]["bias"], rates[1]["bias"], rates[2]["bias"]]
    assert [found[k] for k in (1, 5, 7)] == pytest.approx(biases)
    assert found[2:4] == pytest.approx([biases[0]] * 2)  # gain and shift of the norm
    for k, (old, p) in enumerate(zip(before, net.parameters(), strict=True)):
        np.testing.assert_allclose(p.detach(), old * (last if k == 6 else 1.0), rtol=1e-6)
    tokens = [torch.nn.Sequential(torch.nn.Embedding(9, n), torch.nn.Linear(n, 9)) for n in (32, 8)]
    embedding, output, bias = (group["lr"] for group in carried("PyTorch", torch=torch)(*tokens, 1.0, adam))
    assert (embedding, output, bias) == ((1.0, 0.25, 1.0) if adam else (4.0, 0.25, 1.0))


@pytest.mark.parametrize("adam", [True, False])
def test_code_of_pytorch_knows_transformers(adam):
    """Packed weights of attention are hidden layers; positions that are bare parameters are embeddings."""
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self, n, heads):
            super().__init__()
            self.pos_embedding = torch.nn.Parameter(torch.ones(1, 7, n))
            self.layer = torch.nn.TransformerEncoderLayer(n, heads, 2 * n, norm_first=True)
            self.head = torch.nn.Linear(n, 3)

    net, base = Model(32, 8), Model(8, 2)
    names = [name for module in net.modules() for name, _ in module.named_parameters(recurse=False)]
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    rates = [group["lr"] for group in carried("PyTorch", torch=torch)(net, base, 1.0, adam)]
    hidden, narrow = (0.25, 1.0) if adam else (1.0, 4.0)
    assert rates[names.index("pos_embedding")] == narrow and rates[names.index("in_proj_weight")] == hidden
    assert rates[names.index("in_proj_bias")] == narrow and rates[-2:] == [0.25, 1.0]
    for name, p in net.named_parameters():
        np.testing.assert_allclose(p.detach(), before[name] * (0.5 if name == "head.weight" else 1.0))


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize("heads", [(8, 2), (2, 2)])
def test_code_of_flax_knows_attention(adam, heads):
    """Whether there are more heads or wider ones, their matrices are hidden layers and their biases are biases."""
    nn, optax = pytest.importorskip("flax.linen"), pytest.importorskip("optax")
    attention = [
        nn.MultiHeadDotProductAttention(h, qkv_features=n) for h, n in zip(heads, (32, 8), strict=True)
    ]
    params, base = (
        each.init(jax.random.key(0), np.zeros((1, 5, n)))["params"]
        for each, n in zip(attention, (32, 8), strict=True)
    )
    new, optimizer = carried("Flax", jax=jax, optax=optax)(params, base, 1.0, adam)
    moved = optimizer.update(jax.tree.map(np.ones_like, params), optimizer.init(new), new)[0]
    for path, step in jax.tree_util.tree_leaves_with_path(moved):
        hidden = path[-1].key == "kernel"
        rate = (0.25 if hidden else 1.0) if adam else (1.0 if hidden else 4.0)
        np.testing.assert_allclose(-np.asarray(step), rate, rtol=1e-4)
    for one, other in zip(jax.tree.leaves(new), jax.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("adam", [True, False])
def test_code_of_flax_sets_rates_and_outputs(adam):
    nn, optax = pytest.importorskip("flax.linen"), pytest.importorskip("optax")

    class Model(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.relu(nn.Dense(self.width)(x))
            return nn.Dense(2)(x)

    params, base = (Model(n).init(jax.random.key(n), np.zeros((1, 5)))["params"] for n in (32, 8))
    new, optimizer = carried("Flax", jax=jax, optax=optax)(params, base, 0.1, adam)
    rates, last = expected_of_mup(32, adam)
    moved = optimizer.update(jax.tree.map(np.ones_like, params), optimizer.init(new), new)[0]
    for k in range(3):
        for here, there in (("kernel", "weight"), ("bias", "bias")):
            step = -np.asarray(moved[f"Dense_{k}"][here]) / 0.1
            np.testing.assert_allclose(step, rates[k][there], rtol=1e-4)
            factor = last if (k, here) == (2, "kernel") else 1.0
            np.testing.assert_allclose(
                new[f"Dense_{k}"][here], factor * params[f"Dense_{k}"][here], rtol=1e-6
            )


@pytest.mark.slow
@pytest.mark.parametrize("adam", [True, False])
def test_code_of_keras_sets_rates_and_outputs(adam):
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    import math

    def model(n):
        dense = keras.layers.Dense
        return keras.Sequential([keras.Input((5,)), dense(n, "relu"), dense(n, "relu"), dense(2)])

    net, base = model(32), model(8)
    before = [np.array(v) for v in net.trainable_variables]
    optimizer = carried("Keras", keras=keras, math=math)(net, base, 0.1, adam)
    rates, last = expected_of_mup(32, adam)
    start = [np.array(v) for v in net.trainable_variables]
    optimizer.apply([keras.ops.ones_like(v) for v in net.trainable_variables], net.trainable_variables)
    for k, v in enumerate(net.trainable_variables):
        np.testing.assert_allclose(start[k], before[k] * (last if k == 4 else 1.0), rtol=1e-6)
        rate = rates[k // 2]["bias" if k % 2 else "weight"]
        np.testing.assert_allclose((start[k] - np.array(v)) / 0.1, rate, rtol=1e-3, atol=1e-5)


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
        (["--tuned-width", "0"], r"--tuned-width 0: .*greater than or equal to 1"),
        (["--train", "adam"], r"--train needs --data, the rows on which networks are trained"),
        (["--train", "sgd", "--data", "iris"], r"--train sgd: .*'gd', 'adam'"),
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
