"""Signals, gradients and directions through the layers, of all initializations: predicted and measured."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.stats

import nearkernel as nk
from nearkernel._commands.advise import blocks, flow, isometry, transformer
from nearkernel._commands.advise.advice import adam_move, advised, bad_draw, plan
from nearkernel._commands.advise.blocks import BLOCKS, Point
from nearkernel._commands.advise.inputs import inputs_of
from nearkernel._commands.advise.options import Options
from nearkernel._commands.advise.starts import DEFAULTS, HE, Start, advised_starts, usual_starts
from support.cases import few
from support.helpers import points
from support.references.drawn import Drawn


def start_of(weight_var, bias_var, law="normal"):
    return Start("one", lambda *_: (weight_var, bias_var), law, "")


def test_predicted_signals_are_those_of_propagation():
    flax = DEFAULTS[1]
    found = flow.predicted("tanh", BLOCKS["plain"], flax, 5, 100, 30, 1.7)
    net = nk.MLP(30, (100,) * 4, 1, "tanh", weight_var=1.0)
    layers = nk.propagate(net, np.sqrt(1.7) * np.ones((1, 30)))
    np.testing.assert_allclose(found.signal, [float(layer.kernel[0, 0]) for layer in layers], rtol=1e-9)


def test_normalized_layers_of_smooth_activations_need_biases():
    """As many as keep the growth of squared gradients at e; few layers need none."""
    point = blocks.block_point(BLOCKS["normalized"], "tanh", 11)
    assert point.bias_var > 0.02 and point.block["chi_perp"] == pytest.approx(np.exp(0.1), abs=1e-6)
    assert point.block["gradient_growth"] == pytest.approx(np.e, rel=1e-3)
    few = blocks.block_point(BLOCKS["normalized"], "tanh", 4)
    assert few.bias_var == 0 and 1 < few.block["gradient_growth"] < np.e


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
    from nearkernel._commands.advise.advice import _rates
    from nearkernel._commands.advise.inputs import Inputs

    x = points(30, 5)
    net = nk.MLP(5, (300, 300), 1, "relu", 1.8, 0.1, "standard")
    options = Options("relu", 2, 300)
    rates = _rates(net, Inputs(x, 5, "", ()), 1.0, options, Point(net.activation, 1.8, 0.1, 1.0, "", ""))
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
    g = nk.theory.input_gradient(net).sample(100_000, jax.random.key(0))
    share = np.mean((g < 2 / 4) | (g > 2 * 4))
    assert bad_draw(net, 0.0) == pytest.approx(share, abs=4 * np.sqrt(share / 100_000))


@pytest.mark.parametrize(
    "activation, tokens, start",
    few([("relu", 7, start_of(1.0, 0.0)), ("tanh", 3, start_of(1.4, 0.1)), ("gelu", 5, DEFAULTS[0])], 1),
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


def test_attention_between_very_many_independent_tokens_adds_nothing_at_first():
    found = transformer.predicted("relu", 10**9, start_of(1.0, 0.0), 2, 1, 1, 1.0)
    assert found.signal[1] == pytest.approx(1.5) and found.gradient[1] == pytest.approx(1.5)


@pytest.mark.merge
def test_between_equal_tokens_a_transformer_is_a_network_without_positions():
    """What learning rates are computed from: values, then outputs, in place of attention."""
    point = transformer.point("tanh", 3, 2)
    sequences, vectors = (blocks.network(BLOCKS["transformer"], point, 6, 16, 3, tokens) for tokens in (5, 0))
    x = points(4, 6)
    copies = np.repeat(x[:, None], 5, axis=1)
    for kernel in (nk.kernels.NNGP, nk.kernels.NTK):
        np.testing.assert_allclose(kernel(sequences)(copies), kernel(vectors)(x), rtol=1e-8)


def test_verdicts_allow_powers_of_the_depth():
    def ended(gradient, signal=1.0, depth=30):
        ones, zeros = np.ones(depth), np.zeros(depth)
        ones[-1], gradients = signal**2, np.full(depth, gradient**2)
        return flow.verdict(flow.Flow(ones, gradients, zeros, zeros))

    assert [ended(1e-3), ended(1e3), ended(0.05), ended(1.0)] == ["vanishes", "explodes", "fine", "fine"]
    assert [ended(1.0, 1e-3), ended(1.0, 1e3)] == ["signal vanishes", "signal explodes"]


def test_orthogonal_matrices_are_orthogonal_and_have_the_variance():
    rng = np.random.default_rng(0)
    for fan_in, fan_out in ((30, 30), (12, 50), (50, 12)):
        w = flow.orthogonal_weights(rng, 20, fan_in, fan_out)
        gram = w @ w.swapaxes(1, 2) if fan_in < fan_out else w.swapaxes(1, 2) @ w
        scale = max(fan_in, fan_out) / fan_in
        np.testing.assert_allclose(
            gram, np.broadcast_to(scale * np.eye(min(fan_in, fan_out)), gram.shape), atol=1e-12
        )
        assert (w**2).mean() == pytest.approx(1 / fan_in)
        assert abs(w.mean()) < 5 * w.std() / w.size**0.5  # no sign is preferred


@pytest.mark.parametrize("fan_in", [20, 8, 60])
def test_two_vectors_are_turned_as_by_an_orthogonal_matrix(fan_in):
    """Second and fourth moments and products of what comes out, against matrices that are drawn whole."""
    vectors = points(2, fan_in)
    keys = jax.random.split(jax.random.key(1), 20_000)
    with jax.enable_x64(True):
        fast = np.asarray(jax.vmap(lambda key: flow._turned(key, vectors, 20))(keys)) / fan_in**0.5
    whole = vectors @ flow.orthogonal_weights(np.random.default_rng(0), 4_000, fan_in, 20)
    for function in (
        lambda z: z[:, 0, 0] ** 2, lambda z: z[:, 0, 0] ** 4, lambda z: z[:, 0, 1] * z[:, 1, 1],
        lambda z: (z[:, 0] ** 2).sum(axis=1) ** 2, lambda z: (z[:, 0] * z[:, 1]).sum(axis=1),
    ):  # fmt: skip
        one, other = function(fast), function(whole)
        error = np.hypot(one.std() / len(one) ** 0.5, other.std() / len(other) ** 0.5)
        assert abs(one.mean() - other.mean()) < 4.5 * error + 1e-12


@pytest.mark.parametrize("law", ["orthogonal", "normal"])
@pytest.mark.parametrize(
    "activation, block, size", [("relu", "plain", 1.0), ("tanh", "plain", 0.3), ("tanh", "normalized", 1.0)]
)
def test_as_many_directions_survive_as_predicted(activation, block, size, law):
    """Within 4 standard errors and a tenth, for networks of width 128; tanh can be near an isometry."""
    weight_var = 2.0 if activation == "relu" else 1.0
    start, kind = start_of(weight_var, 0.0, law), BLOCKS[block]
    theory = flow.predicted(activation, kind, start, 10, 128, 128, size)
    found = isometry.directions(activation, kind, start, theory, 10, 128, 0)
    assert abs(found.measured - found.predicted) < 4 * found.error + 0.1 * found.predicted
    assert found.networks == 8 and found.width == 128
    if activation == "relu":  # half of all slopes are 0 in each layer
        assert found.predicted == pytest.approx(1 / (1 + (9 if law == "orthogonal" else 18)))
    elif block == "plain":
        assert (found.predicted > 0.6) == (law == "orthogonal")


@pytest.mark.parametrize(
    "activation, block", few([("relu", "plain"), ("gelu", "plain"), ("tanh", "normalized")], 1)
)
def test_signals_of_orthogonal_networks_are_those_of_infinite_width(activation, block):
    start, shape = start_of(1.9, 0.1, "orthogonal"), (8, 300, 40, 1.0)
    theory = flow.predicted(activation, BLOCKS[block], start, *shape)
    found = flow.measured(activation, BLOCKS[block], start, *shape, 3)
    for name in ("signal", "gradient"):
        value, error = getattr(found, name), getattr(found, f"{name}_error")
        np.testing.assert_array_less(np.abs(value / getattr(theory, name) - 1), 4 * error + 0.03)


def test_what_practitioners_do_is_listed():
    names = lambda block, blocks=24: [start.name for start in usual_starts(BLOCKS[block], blocks, 768)]
    defaults = ["PyTorch", "Flax", "Keras"]
    assert names("plain") == names("normalized") == ["He", *defaults]
    assert names("residual") == names("prenorm") == ["He", "He/sqrt(L)", *defaults]
    assert names("transformer") == ["GPT-2", *defaults]
    assert HE.variances(7, 9) == (2.0, 0.0) and HE.law == "normal"
    gpt = usual_starts(BLOCKS["transformer"], 24, 768)[0]  # 0.02 and 0.02 / sqrt(48)
    assert gpt.variances(768, 768)[0] / 768 == pytest.approx(0.02**2)
    assert gpt.attention(768)[1] / 768 == pytest.approx(0.02**2 / 48) and gpt.after == pytest.approx(1 / 48)
    scaled = usual_starts(BLOCKS["residual"], 24, 768)[1]
    assert scaled.variances(3, 3) == (2 / 24, 0.0) and scaled.first(3, 3) == (2.0, 0.0)
    plain, skip = (advised_starts(2.0, 0.0, BLOCKS[name], False) for name in ("plain", "residual"))
    assert [start.law for start in plain] == ["normal", "orthogonal"] and len(skip) == 1


def test_the_first_step_of_adam_moves_a_layer_by_its_own_size():
    """One input, one hidden layer, Adam's first step as PyTorch or optax make it: all weights by the rate, by sign."""
    options = Options("gelu", 6, 400)
    point, rng = options.critical, np.random.default_rng(0)
    rate = adam_move(options, point, 400, (point.fixed_point - point.bias_var) / point.weight_var)
    z = np.sqrt(point.fixed_point) * rng.normal(size=(200, 400))  # the layer before, at K*
    with jax.enable_x64(True):
        enters = np.asarray(point.activation(z))
    moved = rate * (np.abs(enters).sum(axis=1) + 1)  # of every neuron, up to the sign of its gradient
    ratio = moved / np.sqrt(point.bias_var + point.weight_var * (enters**2).mean(axis=1))
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / 200**0.5 + 0.01
    transformer_ = Options("gelu", 6, 400, block="transformer")
    assert adam_move(transformer_, transformer_.critical, 400, 1.0) is None


@pytest.mark.parametrize("activation", ["tanh", "gelu", "relu"])
def test_numbers_of_the_guide(activation):
    """The share of directions of 24 layers with normal and orthogonal weights, and the range of Adam's first guess."""
    guide = (Path(__file__).parents[2] / "docs/guides/initialize.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {activation}[^|]*\| ([\d.]+) % \| ([\d.]+) %", guide, re.MULTILINE)
    options = Options(activation, 24, 128)
    scale, orthogonal = plan(options, inputs_of(options))
    assert orthogonal
    for start, said in zip(advised(options.critical, BLOCKS["plain"], False), row.groups(), strict=True):
        theory = flow.predicted(activation, BLOCKS["plain"], start, 24, 128, 128, scale**2)
        found = 100 * isometry.predicted(activation, BLOCKS["plain"], start, theory)
        assert found == pytest.approx(float(said), abs=0.5 * 10.0 ** -len(said.partition(".")[2]))
    low, high = map(
        float, re.search(r"it is ([\d.]+) to ([\d.]+), the best", guide.replace("\n", " ")).groups()
    )
    assert low - 5e-5 < adam_move(options, options.critical, 64, scale**2) / 24 < high + 5e-5
