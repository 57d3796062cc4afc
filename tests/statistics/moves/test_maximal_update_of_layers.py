"""Maximal updates of networks of layers: the same as those of an MLP, and moves of all layers at any width."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.models.networks.network import leaves as layer_leaves
from support.cases import few

L = nk.layers
RNG = np.random.default_rng(8)
VECTORS, Y = RNG.normal(size=(5, 6)), RNG.normal(size=5)
IMAGES = RNG.normal(size=(5, 4, 4, 2))
TOKENS = RNG.normal(size=(5, 4, 2))
CHECK = nk.statistics.coordinate_check


class Unknown(L.AbstractLayer):
    """A layer with parameters of its own kind."""

    def shape(self, shape):
        return shape

    def has_params(self):
        return True

    def init(self, key, shape):
        return {"scale": np.ones(())}

    def __call__(self, params, x):
        return params["scale"] * x


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_of_an_mlp_it_is_the_parametrization_mup(optimizer):
    plain = nk.MLP(6, (24, 24), 2, "tanh", 1.4, 0.1, "standard")
    layers = [L.Dense(n, 1.4, 0.1, "standard") for n in (24, 24, 2)]
    acts = [L.Activation("tanh")]
    listed = nk.Network((6,), [layers[0], *acts, layers[1], *acts, layers[2]])
    expected = nk.MLP(6, (24, 24), 2, "tanh", 1.4, 0.1, "mup", 8)
    for net in (plain, listed):
        found = nk.MaximalUpdate(net, 8)
        assert found.lr_factors(optimizer) == expected.lr_factors(optimizer)
    wrapped = nk.MaximalUpdate(plain, 8)
    for one, other in zip(leaves(wrapped.init(3)), leaves(expected.init(3)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert nk.richness(wrapped) == pytest.approx(nk.richness(expected))


def residual(parametrization, width=24):
    """An initial convolution, a residual block with a norm, a pool, an output: all with biases."""
    options = dict(weight_var=1.3, bias_var=0.2, parametrization=parametrization)
    block = L.Residual([L.LayerNorm(), L.Activation("tanh"), L.Conv(width, (3, 3), **options)])
    return nk.Network(
        (4, 4, 2),
        [L.Conv(width, (3, 3), **options), L.Repeat([block], 2), L.Activation("tanh"), L.Flatten(),
         L.Dense(2, **options)],
    )  # fmt: skip


def attending(scaling):
    """A network with a block of attention whose matrices, biases and scores all train."""

    def make(parametrization, width=24):
        options = dict(bias_var=0.2, parametrization=parametrization)
        sizes = (width // 8, 4) if scaling == "sqrt" else (2, width // 2)
        attention = L.Attention(width, *sizes, scaling, qk_var=2.0, ov_var=1.3, **options)
        block = L.Residual([L.LayerNorm(), attention])
        return nk.Network(
            (4, 2),
            [L.Dense(width, 1.3, **options), L.Repeat([block], 2), L.Activation("tanh"), L.Flatten(),
             L.Dense(2, **options)],
        )  # fmt: skip

    return make


MADE = {"residual": (residual, IMAGES)} | {
    f"attention, {scaling}": (attending(scaling), TOKENS) for scaling in ("linear", "sqrt")
}


@pytest.mark.parametrize("name", few(MADE, 1))
@pytest.mark.parametrize("algorithm", [nk.GradientDescent(0.02, 4), nk.Adam(0.01, 4, eps=0.0)])
def test_layers_in_ntk_scaling_train_as_those_in_standard_scaling(algorithm, name):
    """abc symmetry: at the base width one rate is scaled for every layer, at all others by the factors of muP."""
    width, base = 24, 8
    make, x = MADE[name]
    optimizer, power = ("adam", 1) if isinstance(algorithm, nk.Adam) else ("sgd", 2)
    ends, targets = [], np.column_stack([Y, Y**2])
    own = make("standard", base).lr_factors()  # squared multipliers of NTK scaling
    for parametrization in ("standard", "ntk"):
        model = nk.MaximalUpdate(make(parametrization, width), base)
        params, rates = model.init(5), model.lr_factors(optimizer)
        if parametrization == "ntk":
            rates = jax.tree.map(lambda f, m: f * m ** (-power / 2), rates, own)
        params = jax.tree.map(np.asarray, params)
        ends.append(model(nk.simulate(model, params, x, targets, algorithm, lr_factors=rates).params, x))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-8)
    start = model(params, x)
    assert np.abs(np.asarray(ends[1]) - np.asarray(start)).max() > 0.01


@pytest.mark.parametrize("scaling", ["linear", "sqrt"])
def test_matrices_of_attention_are_hidden_layers(scaling):
    """Factors at three times the base width, and which of heads and their dimension has grown."""
    model = nk.MaximalUpdate(attending(scaling)("standard", 24), 8)
    names = {"query", "value", "output"} | ({"key"} if scaling == "sqrt" else set())
    for optimizer, hidden, bias in (("sgd", 1.0, 3.0), ("adam", 1 / 3, 1.0)):
        attends = lambda node: isinstance(node, dict) and "query" in node
        found = next(filter(attends, jax.tree.leaves(model.lr_factors(optimizer), is_leaf=attends)))
        assert found.keys() == names | {"bias"} and found["bias"] == pytest.approx(bias)
        assert [found[name] for name in names] == pytest.approx([hidden] * len(names))
    wide = model.net.widened(lambda own: 2 * own)
    attention = next(layer for layer in layer_leaves(wide.layers) if isinstance(layer, L.Attention))
    assert (attention.heads, attention.head_dim) == ((6, 4) if scaling == "sqrt" else (2, 24))


NETWORKS = {
    "residual": (lambda: nk.ResMLP(6, 32, 2, activation="gelu", weight_var=1.5), VECTORS),
    "convolutions": (lambda: nk.CNN((4, 4, 2), (32, 64), activation="tanh", head="flatten"), IMAGES),
    "transformer": (lambda: nk.Transformer((4, 2), 32, 2, heads=2, activation="relu"), TOKENS),
}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [nk.GradientDescent(0.005, 1), nk.Adam(5e-4, 1)])
@pytest.mark.parametrize("name", NETWORKS)
def test_all_layers_move_alike_at_any_width(name, algorithm):
    """Powers of the width after one step, within 4 standard errors and 0.15 for what is not yet wide."""
    make, x = NETWORKS[name]
    found = CHECK(nk.MaximalUpdate(make(), 32), x, Y, algorithm, (64, 256), 1, 16)
    assert (found.predicted == 0).all() and np.isnan(found.expected).all()
    np.testing.assert_array_less(np.abs(found.slopes), 4 * found.slopes_sem + 0.15)
    own = dict(factors=False) if isinstance(algorithm, nk.Adam) else {}
    plain = CHECK(make(), x, Y, algorithm, (64, 256), 1, 16, **own)
    np.testing.assert_array_less(np.abs(plain.slopes - plain.predicted), 4 * plain.slopes_sem + 0.15)
    assert np.abs(plain.predicted).max() >= 0.5


WIDTHS = (64, 256, 1024)


def looking(width, scaling, parametrization="standard", grown="as MaximalUpdate"):
    """A dense layer, attention with softmax, a mean over tokens, an output; heads of dimension 16 at width 64."""
    heads, head_dim = (width // 16, 16) if scaling == "sqrt" else (4, width // 4)
    heads, head_dim = (4, width // 4) if grown == "dimension" else (heads, head_dim)
    attention = L.Attention(width, heads, head_dim, scaling, qk_var=2.0, parametrization=parametrization)
    hidden = [L.Dense(width, 1.0, 0.0, parametrization), L.LayerNorm(), attention, L.Activation("tanh")]
    return nk.Network((4, 2), [*hidden, L.GlobalAvgPool(), L.Dense(1, 1.0, 0.0, parametrization)])


def moved(model, algorithm, draws=12):
    """Logarithms of the root mean square moves (draws,) of outputs of attention and of its scores."""
    net = model.net

    def attention(params):
        found = []

        def leaf(layer, own, x):
            if isinstance(layer, L.Attention):
                found.extend([layer(own, x), layer.scores(own, x)])
            return layer(own, x)

        with jax.enable_x64(True):
            net.layers.run(leaf, params, TOKENS)
        return [np.asarray(each) for each in found]

    rows = []
    for seed in range(draws):
        params = model.init(seed)
        after = nk.simulate(model, params, TOKENS, Y, algorithm).params
        both = zip(attention(params), attention(after), strict=True)
        rows.append([np.log(np.sqrt(np.mean((new - old) ** 2))) for old, new in both])
    return np.array(rows)


def slopes(models, algorithm):
    """Powers of the width with which outputs and scores of attention move, and their standard errors."""
    found = [moved(model, algorithm) for model in models]
    means = np.array([each.mean(axis=0) for each in found])
    errors = np.array([each.std(axis=0, ddof=1) / len(each) ** 0.5 for each in found])
    away = np.log(WIDTHS) - np.mean(np.log(WIDTHS))
    share = away / (away @ away)
    return share @ means, np.sqrt(share**2 @ errors**2)


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["linear", "sqrt"])
@pytest.mark.parametrize(
    "algorithm", [nk.GradientDescent(1e-3, 1), *(nk.Adam(1e-3, steps, eps=1e-12) for steps in (1, 10))]
)
def test_attention_and_its_scores_move_alike_at_any_width(algorithm, scaling):
    """Widths of 64 to 1024, within 4 standard errors and 0.1 for what is not yet wide.

    Scores divided by the dimension of a head have the power -1/2 in the first step of gradient descent: its derivative
    by them is a sum over that dimension with random signs, until values and outputs have moved.
    """
    found, error = slopes([nk.MaximalUpdate(looking(n, scaling), 64) for n in WIDTHS], algorithm)
    late = scaling == "linear" and isinstance(algorithm, nk.GradientDescent)
    expected = np.array([0.0, -0.5 if late else 0.0])
    np.testing.assert_array_less(np.abs(found - expected), 4 * error + 0.1)


@pytest.mark.slow
def test_scores_divided_by_a_root_move_further_in_wider_heads():
    """Why `scaling="sqrt"` is widened by more heads: with heads of a larger dimension scores move as its root."""
    wide = [nk.MaximalUpdate(looking(n, "sqrt", grown="dimension"), 64) for n in WIDTHS]
    (_, found), (_, error) = slopes(wide, nk.Adam(1e-4, 1, eps=1e-12))
    assert abs(found - 0.5) < 4 * error + 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "scaling, parametrization", [("linear", "standard"), ("sqrt", "standard"), ("sqrt", "ntk")]
)
@pytest.mark.parametrize("algorithm", [nk.GradientDescent(1e-3, 1), nk.Adam(1e-4, 1, eps=1e-12)])
def test_powers_of_attention_are_those_predicted(algorithm, scaling, parametrization):
    """Without factors, and in muP, at widths of 64 to 1024: within 4 standard errors and 0.15."""
    net = looking(64, scaling, parametrization)
    for model, factors in ((net, False), (nk.MaximalUpdate(net, 64), True)):
        found = CHECK(model, TOKENS, Y, algorithm, WIDTHS, 1, 12, factors=factors)
        assert found.predicted.shape == (3,) and (found.predicted == 0).all() == factors
        np.testing.assert_array_less(np.abs(found.slopes - found.predicted), 4 * found.slopes_sem + 0.15)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.MaximalUpdate(nk.MLP(6, (8,), parametrization="mup")), '`net` must have layers of parametriza'),
        (lambda: nk.MaximalUpdate(nk.MLP(6, (8,), parametrization="mean_field")), '`net` must have layers of parametr'),
        (lambda: nk.MaximalUpdate(nk.MLP(6, ())), "`net` must have hidden layers and end in nk.layers.Dense"),
        (lambda: nk.MaximalUpdate(nk.from_function(lambda p, x: x @ p)), "`net` must be an nk.Network or nk.MLP; got"),
        (lambda: nk.MaximalUpdate(nk.MLP(6, (8,)), 0), "`base_width` must be at least 1; got 0"),
        (lambda: nk.MaximalUpdate(nk.MLP(6, (8,))).lr_factors("sam"), "`optimizer` must be one of"),
        (
            lambda: nk.MaximalUpdate(nk.Network((4, 3), [L.Attention(8), L.GlobalAvgPool(), L.Dense(1)])),
            "`net` must begin with Dense or Conv, whose width counts",
        ),
        (
            lambda: nk.MaximalUpdate(nk.Network((4, 3), [L.Dense(8), Unknown(), L.GlobalAvgPool(), L.Dense(1)])),
            "`net` has Unknown.*, for which muP is not known: use Dense, Conv, LocallyConnected, Attention or Pos",
        ),
        (
            lambda: nk.MaximalUpdate(nk.Network((6,), [L.Residual([L.Dense(6)]), L.Dense(1)])),
            "`net` cannot be made wider, as muP needs",
        ),
        (
            lambda: nk.MaximalUpdate(nk.Network((6,), [L.Concat([[L.Dense(8)], []]), L.Dense(1)])),
            "`net` joins inputs and hidden channels in one layer",
        ),
        (lambda: nk.kernels.NTK(nk.MaximalUpdate(nk.MLP(6, (8,)))), "`net` must be an nk.MLP or nk.Network"),
        (lambda: CHECK(nk.ResMLP(6, 8), VECTORS, Y, nk.Adam(0.1, 1)), "`factors` for Adam exist only for"),
    ],
)  # fmt: skip
def test_bad_input_costs_one_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as raised:
        call()
    assert "\n" not in str(raised.value)
