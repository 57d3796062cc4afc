"""Maximal updates of networks of layers: the same as those of an MLP, and moves of all layers at any width."""

import jax
import numpy as np
import pytest

import nearkernel as nk

L = nk.layers
RNG = np.random.default_rng(8)
VECTORS, Y = RNG.normal(size=(5, 6)), RNG.normal(size=5)
IMAGES = RNG.normal(size=(5, 4, 4, 2))
CHECK = nk.statistics.coordinate_check


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


@pytest.mark.parametrize("algorithm", [nk.GradientDescent(0.02, 4), nk.Adam(0.01, 4, eps=0.0)])
def test_layers_in_ntk_scaling_train_as_those_in_standard_scaling(algorithm):
    """abc symmetry: at the base width one rate is scaled for every layer, at all others by the factors of muP."""
    width, base = 24, 8
    optimizer, power = ("adam", 1) if isinstance(algorithm, nk.Adam) else ("sgd", 2)
    ends, targets = [], np.column_stack([Y, Y**2])
    own = residual("standard", base).lr_factors()  # squared multipliers of NTK scaling
    for parametrization in ("standard", "ntk"):
        model = nk.MaximalUpdate(residual(parametrization, width), base)
        params, rates = model.init(5), model.lr_factors(optimizer)
        if parametrization == "ntk":
            rates = jax.tree.map(lambda f, m: f * m ** (-power / 2), rates, own)
        params = jax.tree.map(np.asarray, params)
        ends.append(
            model(nk.simulate(model, params, IMAGES, targets, algorithm, lr_factors=rates).params, IMAGES)
        )
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-8)
    start = model(params, IMAGES)
    assert np.abs(np.asarray(ends[1]) - np.asarray(start)).max() > 0.01


NETWORKS = {
    "residual": (lambda: nk.ResMLP(6, 32, 2, activation="gelu", weight_var=1.5), VECTORS),
    "convolutions": (lambda: nk.CNN((4, 4, 2), (32, 64), activation="tanh", head="flatten"), IMAGES),
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
            lambda: nk.MaximalUpdate(
                nk.Network((4, 3), [L.Dense(8), L.Attention(8), L.GlobalAvgPool(), L.Dense(1)])
            ),
            "for which muP is not known: use Dense, Conv",
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
