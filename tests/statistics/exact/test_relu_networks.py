"""Relu networks at one input: sums over paths, the law of the input gradient, moments of the tangent kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import nearkernel as nk
from support.helpers import points
from support.references.drawn import Drawn, controlled

LARGE = nk.MLP(9, (99,) * 9, 1, "relu")
NARROW = nk.MLP(4, (10, 15, 12), 1, "relu", weight_var=2.0, bias_var=0.2)


@pytest.mark.parametrize(
    "net",
    [
        nk.MLP(3, (4, 2, 5), 2, "relu", weight_var=2.0),
        nk.MLP(2, (5, 3), 1, "leaky_relu(0.3)", weight_var=1.4, bias_var=0.5, parametrization="standard"),
        nk.MLP(3, (), 2, "relu", bias_var=0.3),
    ],
)
def test_the_sum_over_paths_is_the_forward_pass(net):
    params, x = net.init(jax.random.key(1)), points(5, net.in_dim)
    np.testing.assert_allclose(nk.theory.path_sum(net, params, x), np.asarray(net(params, x)), atol=1e-13)


@pytest.mark.parametrize("coordinates", [1, 4])
def test_input_gradients_follow_their_exact_law(coordinates):
    law = nk.theory.input_gradient(NARROW, coordinates)
    g = np.sum(Drawn(NARROW, points(1, 4), 6000).gradient[:, 0, 0, :coordinates] ** 2, axis=1)
    dead = np.mean(g == 0)
    assert abs(dead - law.dead) < 4 * np.sqrt(law.dead / 6000)
    alive = lambda y: (law.cdf(y) - law.dead) / (1 - law.dead)
    assert scipy.stats.kstest(np.log(g[g > 0]), alive).pvalue > 1e-3
    assert abs(g.mean() - law.second_moment) < 4 * g.std() / np.sqrt(6000)


def test_moments_of_the_gradient_law_are_those_of_its_own_density_and_draws():
    law = nk.theory.input_gradient(nk.MLP(3, (7, 20), 1, "relu", weight_var=1.6), 2)
    y = np.linspace(-60, 12, 20_001)
    density = law.pdf(y)
    for power, expected in enumerate([1 - law.dead, law.second_moment, law.fourth_moment]):
        assert np.trapezoid(np.exp(power * y) * density, y) == pytest.approx(expected, rel=1e-6)
    assert np.trapezoid(y * density, y) == pytest.approx((1 - law.dead) * law.log_mean, rel=1e-6)
    inner = y[::1000]
    np.testing.assert_allclose(
        law.cdf(inner) - law.dead, [np.trapezoid(density[y <= at], y[y <= at]) for at in inner], atol=1e-6
    )
    draws = law.sample(20_000, jax.random.key(3))
    logs = np.log(draws[draws > 0])
    assert abs(logs.mean() - law.log_mean) < 4 * np.sqrt(law.log_var / len(logs))
    assert scipy.stats.kstest(draws, lambda g: law.cdf(np.log(np.maximum(g, 1e-300)))).pvalue > 1e-3


@pytest.mark.parametrize("net", [NARROW, nk.MLP(300, (400,) * 3, 1, "relu", weight_var=2.0)])
def test_the_law_ends_far_out(net):
    law = nk.theory.input_gradient(net)
    np.testing.assert_allclose(law.cdf([-700.0, -90.0, 90.0, 700.0]), [law.dead, law.dead, 1, 1], atol=1e-9)
    np.testing.assert_allclose(law.pdf([-700.0, -90.0, 90.0, 700.0]), 0.0, atol=1e-9)


def test_the_fourth_moment_has_a_product_where_an_exponential_is_often_printed():
    """(12 / n_0^2) prod (1 + 5/n_l); exp(5 sum 1/n_l) overestimates it by a quarter at these widths."""
    law = nk.theory.input_gradient(NARROW, 1)
    assert law.second_moment == pytest.approx(2 / 4)
    assert law.fourth_moment == pytest.approx(12 / 16 * 1.5 * (1 + 5 / 15) * (1 + 5 / 12))
    assert 12 / 16 * np.exp(law.beta) > 1.2 * law.fourth_moment


def test_the_logarithm_becomes_normal_in_wide_networks_but_not_for_one_coordinate():
    y = np.linspace(-3, 3, 61)
    distances = []
    for n in (20, 80, 320):
        law = nk.theory.input_gradient(nk.MLP(5 * n, (n,) * (n // 4), 1, "relu", weight_var=2.0))
        mean, variance = law.normal
        assert variance == pytest.approx(law.beta + 0.4 / n) and law.beta == pytest.approx(1.25)
        exact = law.cdf(mean + np.sqrt(variance) * y)
        distances.append(np.abs(exact - scipy.stats.norm.cdf(y)).max())
    assert distances[0] > 3 * distances[1] > 9 * distances[2] and distances[2] < 0.01
    one = nk.theory.input_gradient(nk.MLP(5 * n, (n,) * (n // 4), 1, "relu", weight_var=2.0), 1)
    normal = scipy.stats.norm(one.log_mean, np.sqrt(one.log_var))
    assert np.abs(one.cdf(one.log_mean + y) - normal.cdf(one.log_mean + y)).max() > 0.04


@pytest.mark.slow
def test_the_fourth_moment_of_the_gradient_by_drawn_networks():
    """With the last layer integrated out: E[J^4] = 3 E[v^2], v the variance of J given the hidden layers."""
    net = nk.MLP(5, (9, 14, 11), 1, "relu", weight_var=2.0, bias_var=0.1)
    x = jnp.asarray(points(1, 5, seed=3)[0])

    def squared_variance(params):
        hidden = jax.jacfwd(lambda row: net.activation(net.layer_outputs(params, row[None])[-2])[0])(x)[:, 0]
        return 3 * (net.weight_var / 11 * jnp.sum(hidden**2)) ** 2

    found = nk.measure(squared_variance, net, 400_000, jax.random.key(5))
    assert found.agrees(nk.theory.input_gradient(net, 1).fourth_moment)


@pytest.mark.parametrize(
    "activation, weight_var, widths",
    [("relu", 2.0, (6, 9)), ("leaky_relu(0.3)", 1.3, (5, 8)), ("linear", 1.0, (4, 6))],
)
def test_moments_of_the_tangent_kernel_by_drawn_networks(activation, weight_var, widths):
    net = nk.MLP(3, widths, 2, activation, weight_var=weight_var)
    x = points(2, 3)
    law = nk.theory.relu_ntk(net, x)
    kernel = Drawn(net, x, 20_000).kernel
    own = np.einsum("kaa->ka", kernel[:, :, 0, :, 0])
    crossed = np.einsum("kaa->ka", kernel[:, :, 0, :, 1])
    expected = np.diagonal(law.mean), law.second_moment, law.other_output
    for draws, theory in zip((own, own**2, crossed**2), expected, strict=True):
        assert np.all(np.abs(draws.mean(0) - theory) < 4 * draws.std(0) / np.sqrt(len(draws)))
    np.testing.assert_allclose(law.ratio, law.second_moment / np.diagonal(law.mean) ** 2)


def test_the_mean_tangent_kernel_off_the_diagonal_is_not_proportional_to_the_product_of_inputs():
    """Sums over pairs of paths with independent signs would give 0 for orthogonal inputs."""
    net = nk.MLP(2, (8,), 1, "relu", weight_var=2.0)
    x = np.array([[1.0, 1.0], [1.0, -1.0]])
    law = nk.theory.relu_ntk(net, x)
    between = Drawn(net, x, 20_000).kernel[:, 0, 0, 1, 0]
    assert abs(between.mean() - law.mean[0, 1]) < 4 * between.std() / np.sqrt(20_000) and law.mean[0, 1] > 0.5
    np.testing.assert_allclose(np.diagonal(law.mean), 2 * 2 * (x * x).sum(1) / 2)  # L + 1 layers, not L


DEEP = {
    "(3, 3, 3)": ("relu", 2.0, (3, 3, 3)),
    "(5, 4, 6)": ("relu", 2.0, (5, 4, 6)),
    "(4, 4, 4, 4)": ("relu", 2.0, (4, 4, 4, 4)),
    "(3, 6)": ("relu", 1.3, (3, 6)),
    "leaky": ("leaky_relu(0.3)", 1.6, (4, 4, 4)),
    "abs": ("abs", 1.0, (3, 3)),
}


@pytest.mark.parametrize("case", DEEP)
def test_the_mean_tangent_kernel_of_narrow_deep_networks_is_their_own(case):
    """By drawn networks, 4 standard errors; the exact means on the diagonal serve as control variates off it."""
    activation, weight_var, widths = DEEP[case]
    net = nk.MLP(3, widths, 1, activation, weight_var=weight_var)
    x = points(3, 3)
    mean = nk.theory.relu_ntk(net, x).mean
    kernel = Drawn(net, x, 60_000).kernel[:, :, 0, :, 0]
    wide = np.asarray(nk.kernels.NTK(net)(x))
    np.testing.assert_allclose(np.diagonal(mean), np.diagonal(wide), rtol=1e-12)
    away = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        found, sem = controlled(kernel, np.diagonal(mean), a, b)
        assert abs(found - mean[a, b]) < 4 * sem and sem < 6e-3 * np.sqrt(mean[a, a] * mean[b, b])
        away.append(abs(found - wide[a, b]) / sem)
    assert max(away) > 8  # the value of infinite width would have been seen


def test_the_mean_tangent_kernel_tends_to_that_of_infinite_width():
    x = points(5, 3)
    distance = []
    for width in (64, 512):
        net = nk.MLP(3, (width,) * 3, 1, "relu", weight_var=2.0)
        wide = np.asarray(nk.kernels.NTK(net)(x))
        distance.append(np.abs(nk.theory.relu_ntk(net, x).mean - wide).max())
    assert distance[0] / distance[1] == pytest.approx(8.0, rel=0.05)  # by 1/width


@pytest.mark.parametrize("depth, error", [(3, 1e-4), (10, 1e-3), (30, 3e-3)])
@pytest.mark.parametrize("activation, weight_var", [("relu", 2.0), ("abs", 1.0)])
def test_the_quadrature_of_the_mean_keeps_its_accuracy(activation, weight_var, depth, error):
    """For parallel inputs, where it is worst, the value is known: that on the diagonal."""
    x = np.array([[1.0, 2.0], [1.0, 2.0]])
    mean = nk.theory.relu_ntk(nk.MLP(2, (3,) * depth, 1, activation, weight_var=weight_var), x).mean
    assert mean[0, 1] == pytest.approx(mean[0, 0], rel=error)


def test_the_mean_tangent_kernel_through_single_neurons_in_closed_form():
    """After one neuron the angle is 0: for two layers Theta / C_W = cos (1 - t/pi) + 2 (sin + (pi - t) cos) / pi."""
    angle = np.linspace(0.0, np.pi, 9)
    x = np.column_stack([np.cos(angle), np.sin(angle)]) * np.sqrt(2)
    mean = nk.theory.relu_ntk(nk.MLP(2, (1, 1), 1, "relu", weight_var=2.0), x).mean[0]
    turned = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
    np.testing.assert_allclose(mean, 2 * (np.cos(angle) * (1 - angle / np.pi) + 2 * turned), atol=2e-6)


def test_fluctuations_of_the_tangent_kernel_grow_with_depth_over_width():
    def ratio(depth, width):
        return nk.theory.relu_ntk(nk.MLP(1, (width,) * depth, 1, "relu", weight_var=2.0), [[1.0]]).ratio

    # tau = 0.001, where the next orders are 1/depth (-0.2 %) and tau (0.3 %)
    assert (ratio(400, 400_000) - 1) / 0.001 == pytest.approx(11 / 3, rel=3e-3)
    tau, n = 1.0, 1000
    limit = np.exp(5 * tau) * (1 / 3 + 2 / (9 * tau) - (1 - np.exp(-6 * tau)) / (27 * tau**2))
    wide = 2 * ratio(2 * n, 2 * n) - ratio(n, n)  # without the part of order 1/n
    assert wide == pytest.approx(limit, rel=2e-4)
    assert limit < 0.55 * np.exp(5 * tau)  # the exponential alone is an order of magnitude


@pytest.mark.slow
def test_moments_of_a_deeper_tangent_kernel():
    net = nk.MLP(4, (8, 12, 10, 9), 2, "relu", weight_var=2.0)
    x = points(2, 4)

    def moments(params):
        full = nk.kernels.EmpiricalNTK(net, params).full(jnp.asarray(x))
        return jnp.diagonal(full[:, 0, :, 0]) ** 2, jnp.diagonal(full[:, 0, :, 1]) ** 2

    law = nk.theory.relu_ntk(net, x)
    found = nk.measure(moments, net, 60_000, jax.random.key(1))
    assert found.agrees((law.second_moment, law.other_output))


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.input_gradient(nk.MLP(2, (3,), 1, "tanh")),
            "known only for relu networks, but `net` has the activation tanh",
        ),
        (
            lambda: nk.theory.input_gradient(nk.MLP(2, (3,), 1, "abs")),
            "the activation of `net` is not zero for z < 0",
        ),
        (lambda: nk.theory.input_gradient("net"), "`net` must be an nk.MLP or nk.Network; got str"),
        (
            lambda: nk.theory.input_gradient(nk.MLP(2, (3,), 1, "relu"), 3),
            "`coordinates` must be at most 2, the number of inputs of `net`; got 3",
        ),
        (
            lambda: nk.theory.relu_ntk(nk.MLP(2, (3,), 1, "relu", bias_var=0.1), np.ones((1, 2))),
            "`bias_var` must be 0: .*; got 0.1",
        ),
        (
            lambda: nk.theory.relu_ntk(nk.MLP(2, (3,), 1, "relu"), [[1.0, 0.0], [0.0, 0.0]]),
            r"`x` must not contain the input 0 \(row 1\)",
        ),
        (
            lambda: nk.theory.relu_ntk(
                nk.MLP(2, (3,), 1, "relu", parametrization="mean_field"), np.ones((1, 2))
            ),
            '`net` must have parametrization "ntk" or "standard"; got "mean_field"',
        ),
        (
            lambda: nk.theory.path_sum(LARGE, LARGE.init(jax.random.key(0)), np.ones((1, 9))),
            "a sum over .* paths for 1 inputs needs .*: use a tiny network",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError, MemoryError), match=message):
        call()
