"""Towards infinite width: Gaussian outputs, certain convergence, learning rates known beforehand."""

import jax
import numpy as np
import pytest
import scipy.stats

import nearkernel as nk
from support.helpers import points
from support.references.drawn import Drawn

KINKED = nk.MLP(4, (3,), 1, "relu")
SQUARE = 1.8 * np.eye(4) + 0.1
TARGETS = np.array([1.0, -1.0, 1.0, 0.5])


def test_narrow_relu_networks_have_the_exact_kurtosis_and_the_law_of_drawn_networks():
    net, x = nk.MLP(3, (8, 12), 1, "relu", weight_var=2.0), points(1, 3)
    found = nk.theory.gaussianity(net, x, 20_000, jax.random.key(0))
    exact = 3 * ((1 + 5 / 8) * (1 + 5 / 12) - 1)
    assert abs(found.kurtosis - exact) < 4 * found.kurtosis_sem < 1.5 and found.p_value < 1e-6
    z = Drawn(net, x, 40_000).z[-1].ravel() / np.sqrt(nk.kernels.NNGP(net).diag(x))
    direct = scipy.stats.kstest(z, "norm").statistic
    assert abs(found.distance[0] - direct) < 4 * (0.5 / np.sqrt(40_000) + found.distance_sem[0])


def test_wide_networks_cannot_be_told_from_gaussians_but_by_their_kurtosis():
    net, x = nk.MLP(3, (128, 128), 1, "tanh", weight_var=1.5), points(2, 3)
    found = nk.theory.gaussianity(net, x, 8000, jax.random.key(1))
    assert np.all(found.p_value > 0.01) and np.all(found.distance < 0.005)
    first_order = 3 * nk.theory.gradient_spread(net, x).signal[-1]
    assert np.all(np.abs(found.kurtosis - first_order) < 4 * found.kurtosis_sem + 0.05 * first_order)
    assert np.all(found.kurtosis > 10 * found.kurtosis_sem)


@pytest.mark.parametrize("kind", ["residual", pytest.param("images", marks=pytest.mark.slow)])
def test_kurtosis_of_any_network_is_that_of_its_outputs(kind):
    """Hidden layers drawn and the last one averaged over, against outputs that were drawn."""
    L = nk.layers
    block = L.Residual([L.Activation("relu"), L.Dense(6, 1.5)])
    net = nk.Network((3,), [L.Dense(6), block, L.Activation("relu"), L.Dense(1, 2.0, 0.1)])
    x = points(2, 3)
    if kind == "images":
        net, x = nk.CNN((4, 4, 1), (5,), 1, "relu"), points(2, 16).reshape(2, 4, 4, 1)
    found = nk.theory.gaussianity(net, x, 30_000, jax.random.key(2))
    z = nk.measure(
        lambda params: net(params, x)[:, 0] ** np.array([[2], [4]]), net, 60_000, jax.random.key(3)
    )
    (second, fourth), (second_sem, fourth_sem) = z.mean, z.sem
    error = fourth_sem / second**2 + 2 * fourth / second**3 * second_sem + found.kurtosis_sem
    assert np.all(np.abs(fourth / second**2 - 3 - found.kurtosis) < 4 * error)
    assert np.all(found.kurtosis > 8 * found.kurtosis_sem)


def guaranteed(width, steps=400):
    """A network with readout weights of size 1, its guarantee, and how its loss fell."""
    net = nk.MLP(4, (width,), 1, "tanh", weight_var=1.0)
    params = net.init(jax.random.key(0))
    params[1]["weight"] = np.sign(params[1]["weight"])
    found = nk.theory.convergence_guarantee(net, params, SQUARE, TARGETS)
    descent = nk.GradientDescent(0.02, steps)
    run = nk.simulate(net, params, SQUARE, TARGETS, descent, lr_factors=found.lr_factors)
    later = nk.kernels.EmpiricalNTK(net, run.params, found.lr_factors)(SQUARE)
    moved = np.asarray(run.params[0]["weight"]) - np.asarray(params[0]["weight"])
    assert np.linalg.norm(moved) <= found.distance
    assert np.linalg.norm(moved, axis=0).max() <= found.neuron_distance
    return found, 0.02 * run.history["time"], run.history["loss"], np.linalg.eigvalsh(later)[0]


def test_a_network_above_the_threshold_converges_at_least_as_fast_as_promised():
    found, time, loss, least = guaranteed(2500)
    assert found.holds and loss[0] == pytest.approx(found.loss) and least >= found.smallest / 4
    assert np.all(loss <= found.bound(time) * (1 + 1e-9))
    assert np.all(loss <= found.linear_bound(time) * 1.02)  # its kernel hardly moves


@pytest.mark.slow
@pytest.mark.parametrize("width", [16, 200])
def test_the_threshold_is_not_necessary(width):
    found, time, loss, _ = guaranteed(width)
    assert not found.holds and np.all(loss <= found.bound(time) * (1 + 1e-9))


def test_the_threshold_grows_with_the_loss_and_falls_with_the_smallest_eigenvalue():
    net = nk.MLP(4, (16,), 1, "tanh", weight_var=1.0)
    params = net.init(jax.random.key(0))
    params[1]["weight"] = np.sign(params[1]["weight"])
    one = nk.theory.convergence_guarantee(net, params, SQUARE, TARGETS)
    z = np.asarray(net(params, SQUARE))[:, 0]
    far = nk.theory.convergence_guarantee(net, params, SQUARE, z + 3 * (TARGETS - z))
    assert far.loss == pytest.approx(9 * one.loss) and far.threshold == pytest.approx(9 * one.threshold)
    curvature, lengths = 4 / (3 * np.sqrt(3)), np.sum(SQUARE**2, axis=1) / 4
    by_hand = 32 * curvature**2 * np.sum(lengths**2) * one.loss / one.smallest**2
    assert one.threshold == pytest.approx(by_hand, rel=1e-6)
    assert one.distance == pytest.approx(2 * np.sqrt(2 * one.loss / one.smallest))
    by_hand = (
        4 * np.sqrt(2 * one.loss) / one.smallest * np.sqrt(lengths.sum() / 16)
    )  # tanh' and readouts are at most 1
    assert one.neuron_distance == pytest.approx(by_hand, rel=1e-6)
    for first, second in ((2.0, 1.0), (1.0, 3.0)):
        own = nk.MLP(4, (16,), 1, "tanh", weight_var=(first, second))
        found = nk.theory.convergence_guarantee(own, params, SQUARE, TARGETS)
        by_hand = 32 * curvature**2 * first**2 * second * np.sum(lengths**2) * found.loss / found.smallest**2
        assert found.threshold == pytest.approx(by_hand, rel=1e-6)
        assert found.speed == pytest.approx(np.sqrt(first * second * lengths.sum() / 16), rel=1e-6)
    twins = nk.theory.convergence_guarantee(net, params, SQUARE[[0, 0, 1]], [1.0, 1.0, 0.0])
    assert twins.threshold > 1e20 and not twins.holds


@pytest.mark.parametrize("parametrization", ["ntk", "standard", "mean_field"])
def test_shares_of_the_layers_add_up_to_the_tangent_kernel(parametrization):
    x = points(5, 3)
    net = nk.MLP(3, (16, 64), 1, "tanh", 1.5, 0.1, parametrization)
    found = nk.statistics.learning_rates(net, x)
    assert found.shares.sum() == pytest.approx(nk.kernels.NTK(net).diag(x).mean())
    wider = nk.statistics.learning_rates(nk.MLP(3, (64, 256), 1, "tanh", 1.5, 0.1, parametrization), x)
    np.testing.assert_allclose(wider.shares, found.shares)
    growth = (wider.plain_shares / found.plain_shares)[1:, 0]  # of the weights behind hidden layers
    np.testing.assert_allclose(growth, {"ntk": 1.0, "standard": 4.0, "mean_field": 0.25}[parametrization])


def test_plain_shares_are_those_of_drawn_networks():
    """Weights in standard scaling, one learning rate for all: shares of order fan-in."""
    x, net = points(2, 3), nk.MLP(3, (200, 300), 1, "relu", 2.0, 0.0, "standard")
    plain = nk.statistics.learning_rates(net, x).plain_shares
    drawn = Drawn(nk.MLP(3, (200, 300), 1, "relu", 2.0), x, 400)
    for layer, signal in enumerate(drawn.signals):
        enters = x if layer == 0 else np.maximum(drawn.z[layer - 1], 0)
        back = np.sum(signal[:, :, 0] ** 2, axis=2)
        for draws, theory in ((back * np.sum(enters**2, axis=-1), plain[layer, 0]), (back, plain[layer, 1])):
            mean = draws.mean(axis=1)
            assert abs(mean.mean() - theory) < 4 * mean.std() / np.sqrt(400) + 1e-12 * theory


@pytest.mark.merge
def test_shares_of_any_network_add_up_and_are_those_of_drawn_networks():
    """Of each layer, weights and biases apart, as the factors on their rates say."""
    L, x = nk.layers, np.random.default_rng(2).normal(size=(2, 5, 4, 2))
    conv = L.Conv(64, (3, 3), weight_var=1.4, bias_var=0.3)
    block = L.Residual([L.Activation("relu"), L.Conv(64, (3, 3), weight_var=0.6, bias_var=0.2)])
    layers = [conv, L.Repeat([block], 2), L.Activation("relu"), L.GlobalAvgPool(), L.Dense(24, bias_var=0.1)]
    net = nk.Network((5, 4, 2), layers)
    found = nk.statistics.learning_rates(net, x)
    assert found.shares.shape == (4, 2) and np.array_equal(found.shares, found.plain_shares)
    assert found.shares.sum() == pytest.approx(nk.kernels.NTK(net).diag(x).mean(), rel=1e-12)
    drawn = [net.init(seed) for seed in range(5)]
    for part, name in enumerate(("weight", "bias")):
        masks = jax.tree_util.tree_map_with_path(
            lambda path, leaf, name=name: np.full(np.shape(leaf), float(path[-1].key == name)),
            net.lr_factors(),
        )
        per_layer = np.zeros((3, len(drawn)))
        for layer in range(3):
            others = [m if k == layer else jax.tree.map(np.zeros_like, m) for k, m in enumerate(masks)]
            for k, params in enumerate(drawn):
                kernel = nk.kernels.EmpiricalNTK(net, params, others)
                per_layer[layer, k] = np.diagonal(kernel(x)).mean()
        theory = [found.shares[0, part], found.shares[1:3, part].sum(), found.shares[3, part]]
        error = per_layer.std(axis=1, ddof=1) / np.sqrt(len(drawn))
        assert (np.abs(per_layer.mean(axis=1) - theory) < 4 * error + 0.05 * np.array(theory)).all()


def test_descent_is_stable_below_the_rate_and_unstable_above_it():
    x, y = points(6, 4), np.sin(points(6, 4).sum(axis=1))
    net = nk.MLP(4, (2048,), 1, "tanh", weight_var=1.5, bias_var=0.1)
    rates = nk.statistics.learning_rates(net, x)
    model = nk.expand(net, net.init(jax.random.key(0)))
    losses = {}
    for factor in (0.9, 1.1):
        algorithm = nk.GradientDescent(factor * rates.stable, 60)
        losses[factor] = nk.simulate(model, model.init(jax.random.key(0)), x, y, algorithm).history["loss"]
    assert losses[0.9][-1] < 0.1 * losses[0.9][0] and losses[1.1][-1] > 10 * losses[1.1][0]


def test_the_best_rate_contracts_all_directions_alike():
    x = points(6, 4)
    net = nk.MLP(4, (8,), 1, "erf", weight_var=2.0)
    rates, lam = nk.statistics.learning_rates(net, x), np.linalg.eigvalsh(nk.kernels.NTK(net)(x))
    worst = lambda lr: np.abs(1 - lr * lam).max()
    assert worst(rates.best) == pytest.approx(rates.contraction)
    assert min(worst(0.99 * rates.best), worst(1.01 * rates.best)) > rates.contraction
    assert rates.condition == pytest.approx(lam[-1] / lam[0])
    singular = nk.statistics.learning_rates(net, x[[0, 0, 1]])
    assert singular.condition == np.inf and singular.contraction == 1.0


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.gaussianity(nk.MLP(3, (), 1), points(1, 3), 10, jax.random.key(0)),
            "`net` must be an nk.MLP with a hidden layer",
        ),
        (
            lambda: nk.theory.gaussianity(
                nk.Network((4, 1), [nk.layers.Conv(1, (3,)), nk.layers.GlobalAvgPool()]),
                np.ones((1, 4, 1)),
                10,
                jax.random.key(0),
            ),
            "or an nk.Network that ends in Dense",
        ),
        (
            lambda: nk.theory.gaussianity(nk.MLP(3, (2,), 1), points(1, 3), 1, jax.random.key(0)),
            "`size` must be at least 2; got 1",
        ),
        (
            lambda: nk.theory.convergence_guarantee(nk.MLP(4, (3, 3), 1, "tanh"), [], SQUARE, TARGETS),
            "with one hidden layer and one output",
        ),
        (
            lambda: nk.theory.convergence_guarantee(KINKED, KINKED.init(0), SQUARE, TARGETS),
            "`net` needs a smooth activation",
        ),
        (
            lambda: nk.statistics.learning_rates("net", SQUARE),
            "`net` must be an nk.MLP or nk.Network, .*; got str",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
