"""Maximal updates: the same training as networks written otherwise, and moves of all layers at any width."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics.moves.first_move import mean_root
from support.cases import few
from support.helpers import hard_tanh

RNG = np.random.default_rng(6)
X, Y = RNG.normal(size=(6, 5)), RNG.normal(size=6)
CHECK = nk.statistics.coordinate_check


def network(width=24, parametrization="mup", depth=2, **options):
    return nk.MLP(
        5,
        (width,) * depth,
        1,
        "tanh",
        weight_var=1.5,
        parametrization=parametrization,
        base_width=8,
        **options,
    )


def test_at_the_base_width_it_is_the_standard_network():
    mup, standard = network(8), network(8, "standard")
    params = mup.init(jax.random.key(0))
    for one, other in zip(
        jax.tree.leaves(params), jax.tree.leaves(standard.init(jax.random.key(0))), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    for optimizer in ("sgd", "adam"):
        assert {entry["weight"] for entry in mup.lr_factors(optimizer)} == {1.0}
        assert {entry["bias"] for entry in mup.lr_factors(optimizer)} == {0.0}


def ntk_params(params, net):
    """The parameters of the NTK network that has these of a network without multipliers."""
    scales = [np.sqrt(1.5 / 5), *(np.sqrt(1.5 / width) for width in net.widths)]
    scales[-1] *= np.sqrt(8 / net.widths[-1])
    return [
        {"weight": np.asarray(entry["weight"]) / scale, "bias": np.asarray(entry["bias"])}
        for entry, scale in zip(params, scales, strict=True)
    ], scales


@pytest.mark.parametrize("algorithm", [nk.GradientDescent(0.02, 5), nk.Adam(0.01, 5, eps=0.0)])
def test_it_is_an_ntk_network_at_a_lazy_scale(algorithm):
    """Outputs over sqrt(width / base), rates of every layer scaled back: the same training to the last digits."""
    net, adam = network(), isinstance(algorithm, nk.Adam)
    params = net.init(jax.random.key(1))
    trained = nk.simulate(net, params, X, Y, algorithm).params
    other = nk.Scaled(network(parametrization="ntk"), np.sqrt(8 / 24), False)
    start, scales = ntk_params(params, net)
    rates = [
        {"weight": factor["weight"] / scale ** (1 if adam else 2), "bias": 0.0}
        for factor, scale in zip(net.lr_factors("adam" if adam else "sgd"), scales, strict=True)
    ]
    after = nk.simulate(other, start, X, Y, algorithm, lr_factors=rates).params
    np.testing.assert_allclose(other(after, X), net(trained, X), atol=1e-10)
    assert np.abs(np.asarray(net(trained, X)) - np.asarray(net(params, X))).max() > 0.01


def test_unequal_widths_have_factors_of_their_own():
    net = nk.MLP(5, (16, 32), 1, "tanh", bias_var=0.1, parametrization="mup", base_width=8)
    weights = [[entry[name] for entry in net.lr_factors()] for name in ("weight", "bias")]
    assert weights == [[2.0, 2.0, 0.25], [2.0, 4.0, 1.0]]
    assert [entry["weight"] for entry in net.lr_factors("adam")] == [1.0, 0.5, 0.25]
    assert nk.richness(net) == pytest.approx(8**-0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parametrization, algorithm, factors",
    [
        ("mup", nk.GradientDescent(0.02, 1), True),
        ("mup", nk.Adam(0.002, 1), True),
        ("mean_field", nk.GradientDescent(0.02, 1), True),
        ("ntk", nk.GradientDescent(0.02, 1), True),
        ("standard", nk.GradientDescent(1e-4, 1), False),
        ("standard", nk.Adam(1e-4, 1), False),
        ("mup", nk.GradientDescent(1e-4, 1), False),
        ("mup", nk.Adam(1e-4, 1), False),
        ("ntk", nk.Adam(1e-4, 1), False),
        ("mean_field", nk.Adam(1e-4, 1), False),
        ("mean_field", nk.GradientDescent(1e-3, 1), False),
    ],
)
def test_powers_of_the_width_are_those_predicted(parametrization, algorithm, factors):
    """After the first step, at widths of 128 to 1024: within 4 standard errors and 0.15 for what is not yet wide."""
    found = CHECK(
        network(parametrization=parametrization), X, Y, algorithm, (128, 1024), 3, 16, factors=factors
    )
    np.testing.assert_array_less(np.abs(found.slopes - found.predicted), 4 * found.slopes_sem + 0.15)


@pytest.mark.merge
def test_the_check_shows_what_moves():
    found = CHECK(network(), X, Y, nk.Adam(0.002, 3), (64, 512), 0, 8)
    assert found.moves.shape == found.sem.shape == (2, 3) and (found.moves > 0).all()
    np.testing.assert_array_less(np.abs(found.slopes - found.predicted), 4 * found.slopes_sem + 0.15)
    plain = CHECK(network(parametrization="standard"), X, Y, nk.Adam(1e-4, 3), (64, 512), 0, 8, factors=False)
    assert plain.slopes[1] > 0.5 and plain.slopes[2] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("parametrization", ["mup", "mean_field"])
@pytest.mark.parametrize("activation, depth", [("tanh", 3), ("relu", 2)])
def test_sizes_of_the_first_move_are_those_predicted(parametrization, activation, depth):
    """Kernels of infinite width against networks of width 768, within 4 standard errors of about 1 %."""
    net = nk.MLP(
        5, (8,) * depth, 2, activation, (1.5,) * depth + (1.2,), parametrization=parametrization, base_width=4
    )
    found = CHECK(net, X, np.column_stack([Y, np.cos(Y)]), nk.GradientDescent(1e-3, 1), (8, 768), 2, 48)
    np.testing.assert_array_less(np.abs(found.moves - found.expected)[1], 4 * found.sem[1])
    assert (found.sem[1] < 0.03 * found.moves[1]).all()


@pytest.mark.parametrize("factors", [True, False])
@pytest.mark.parametrize("parametrization", few(["mup", "standard", "ntk", "mean_field"], 1))
def test_sizes_follow_powers_of_the_width(parametrization, factors):
    """Between widths of thousands, for which no network is drawn, sizes grow by the predicted powers."""
    net = network(parametrization=parametrization)
    rate = nk.GradientDescent(1e-3, 1)
    powers = CHECK(net, X[:3], Y[:3], rate, (4, 6), 0, 2, factors=factors).predicted
    sizes = [nk.MLP(5, (n, n), 1, "tanh", 1.5, 0.0, parametrization, 8) for n in (10**5, 10**7)]
    moves = [nk.statistics.first_move(each, X[:3], Y[:3], 1e-3, factors=factors) for each in sizes]
    np.testing.assert_allclose(np.log(moves[1] / moves[0]) / np.log(100), powers, atol=0.01)


def test_the_mean_root_of_a_square_form_is_that_of_draws():
    rng = np.random.default_rng(1)
    a, c, y = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 2))
    form, cov = a @ a.T, 0.5 * c @ c.T
    e = y + rng.multivariate_normal(np.zeros(3), cov, size=(200_000, 2)).transpose(0, 2, 1)
    roots = np.sqrt(np.einsum("sak,ab,sbk->s", e, form, e))
    assert abs(mean_root(form, cov, y) - roots.mean()) < 4 * roots.std() / np.sqrt(len(roots))
    sure = np.sqrt(np.einsum("ak,ab,bk->", y, form, y))
    assert mean_root(form, 0 * cov, y) == pytest.approx(sure, rel=1e-6)


def test_adam_is_its_recursion():
    """Two steps written out for one parameter."""
    net = nk.MLP(1, (), 1, "linear")
    params = [{"weight": np.array([[0.7]]), "bias": np.array([0.0])}]
    run = nk.simulate(net, params, np.ones((1, 1)), np.array([2.0]), nk.Adam(0.1, 2, 0.5, 0.8, 1e-3))
    w, m, v = 0.7, 0.0, 0.0
    for step in (1, 2):
        g = w - 2.0
        m, v = 0.5 * m + 0.5 * g, 0.8 * v + 0.2 * g**2
        w -= 0.1 * (m / (1 - 0.5**step)) / (np.sqrt(v / (1 - 0.8**step)) + 1e-3)
    assert float(run.params[0]["weight"][0, 0]) == pytest.approx(w, rel=1e-12) and run.ok


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: network(parametrization="ntk").lr_factors("adam"), '`optimizer="adam"` is for parametrization "mup"'),
        (lambda: network().lr_factors("sam"), "`optimizer` must be one of"),
        (lambda: nk.kernels.NTK(network()), '`net` with parametrization="mup" is for training; for NTK use "mean_f'),
        (lambda: nk.forecast(network(), X, Y, None, X), 'is for training; for nk.forecast use "mean_field"'),
        (lambda: CHECK(network(), X, Y, nk.GradientDescent(0.1, 1), (8,)), "`widths` must hold at least two widths"),
        (lambda: CHECK(network(parametrization="ntk"), X, Y, nk.Adam(0.1, 1)), "`factors` for Adam exist only for"),
        (lambda: nk.statistics.first_move(nk.MLP(5, (8,), 1, hard_tanh), X, Y, 0.1), "`net` must have smooth activ"),
        (lambda: nk.Adam(0.1, 3, beta1=1.0), "`beta1` must be at least 0 and below 1; got 1.0"),
        (lambda: nk.SGD(0.5, 2, 3, weight_decay=2.0), "`weight_decay` must be below 1/lr = 2; got 2.0"),
        (lambda: nk.SGD(0.5, 2, 3, schedule=0.1), "`schedule` must be a function of the step"),
        (lambda: nk.SGD(0.5, 2, 3, momentum=1.0), "`momentum` must be at least 0 and below 1"),
    ],
)  # fmt: skip
def test_bad_input_costs_one_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
