"""How much one network differs from another: signals and gradients to order 1/width, against drawn networks."""

import numpy as np
import pytest
from scipy.special import erf

import nearkernel as nk
from support.helpers import points

X = 1.3 * points(1, 6)


def gelu(z):
    cdf = 0.5 * (1 + erf(z / np.sqrt(2)))
    return z * cdf, cdf + z * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def tanh(z):
    return np.tanh(z), 1 - np.tanh(z) ** 2


def drawn(function, net, x, size, seed=0):
    """Draws of the variance of an output given the hidden layers, and of that of its change by a random first change.

    Given a layer, neurons of the next and their changes are Gaussian with known covariance: no weights are needed.
    """
    rng = np.random.default_rng(seed)
    c, b = float(net.weight_var), float(net.bias_var)
    z = np.sqrt(b + c * np.mean(x * x)) * rng.normal(size=(size, net.widths[0]))
    change = rng.normal(size=z.shape)
    for n in (*net.widths[1:], 1):
        s, slope = function(z)
        moved = slope * change
        signal, both, gradient = (c * np.mean(a * m, axis=1) for a, m in ((s, s), (s, moved), (moved, moved)))
        noise, own = rng.normal(size=(2, size, n))
        along = (both / np.sqrt(signal))[:, None]
        change = along * noise + np.sqrt(np.maximum(gradient[:, None] - along**2, 0)) * own
        z = np.sqrt(signal)[:, None] * noise + np.sqrt(b) * rng.normal(size=(size, n))
    return signal + b, gradient


def spread_of_signal(draws):
    """Var / mean^2 with its standard error."""
    relative = draws / draws.mean() - 1
    return np.mean(relative**2), np.std(relative**2) / np.sqrt(len(draws))


@pytest.mark.parametrize(
    "name, function, c, b",
    [("tanh", tanh, 1.6, 0.2), pytest.param("gelu", gelu, 1.9, 0.1, marks=pytest.mark.slow)],
)
def test_fluctuations_of_drawn_networks_extrapolate_to_the_first_order(name, function, c, b):
    found, size = [], 40_000
    for n in (32, 64):
        net = nk.MLP(6, (n, 2 * n, n), 1, name, weight_var=c, bias_var=b)
        theory = nk.theory.gradient_spread(net, X)
        signal, gradient = drawn(function, net, X, size)
        # The mean square of E[change^2 | hidden] is that of the squared gradient itself.
        spreads = [spread_of_signal(signal), spread_of_signal(gradient)]
        found.append([(n * value, n * error) for value, error in spreads])
        np.testing.assert_allclose(gradient.mean(), theory.mean_gradient[-1, 0], rtol=0.1)
    expected = n * theory.signal[-1, 0], n * theory.gradient[-1, 0]
    for narrow, wide, first_order in zip(*found, expected, strict=True):
        limit, error = 2 * wide[0] - narrow[0], np.hypot(2 * wide[1], narrow[1])
        assert abs(limit - first_order) < 4 * error + 0.03 * first_order  # + 1/n^2
        assert error < 0.1 * first_order


def test_relu_fluctuates_by_five_over_the_width_a_layer():
    net = nk.MLP(6, (20, 30, 40), 1, "relu", weight_var=2.0)
    found = nk.theory.gradient_spread(net, X)
    expected = np.cumsum([0, 5 / 20, 5 / 30, 5 / 40])
    np.testing.assert_allclose(found.signal[:, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(found.gradient[:, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(found.mean_gradient, 1.0)
    assert found.gradient[-1, 0] == pytest.approx(nk.theory.input_gradient(net).beta)


def test_the_signal_is_the_four_point_vertex():
    net = nk.MLP(6, (20, 40), 1, "tanh", weight_var=1.6, bias_var=0.2)
    last = nk.propagate(net, X, order=1)[3]
    relative = last.four_point[0, 0, 0, 0] / (40 * last.kernel[0, 0] ** 2)
    np.testing.assert_allclose(nk.theory.gradient_spread(net, X).signal[-1, 0], relative, rtol=1e-6)


def test_layers_of_their_own_are_those_of_order_one():
    """The variance of the signal is the four-point correlation over the square of the kernel."""
    net = nk.MLP(6, (20, 30), 1, ("gelu", "tanh"), (1.2, 1.6, 0.9), (0.3, 0.0, 0.1))
    found, order1 = nk.theory.gradient_spread(net, X), nk.propagate(net, X, order=1)
    for layer in (2, 3):
        at = order1[layer]
        expected = at.four_point.item() / at.width / at.kernel.item() ** 2
        assert found.signal[layer - 1, 0] == pytest.approx(expected, rel=1e-6)


def test_bad_draws_are_rare_in_wide_networks_and_common_in_narrow_ones():
    wide, narrow = (
        nk.theory.gradient_spread(nk.MLP(6, (n,) * 20, 1, "tanh"), X).bad_draw(2.0)[0] for n in (2000, 20)
    )
    assert wide < 1e-6 and 0.2 < narrow < 1


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.gradient_spread(nk.MLP(6, (3,), 1, parametrization="mean_field"), X),
            '`gradient_spread` needs parametrization "ntk" or "standard"; got "mean_field"',
        ),
        (
            lambda: nk.theory.gradient_spread(nk.ResMLP(6, 3), X),
            r"`gradient_spread` does not support `layers\[1\].body\[0\]`, Residual of 3 layers",
        ),
        (lambda: nk.theory.gradient_spread("net", X), "`net` must be an nk.MLP or nk.Network; got str"),
        (
            lambda: nk.theory.gradient_spread(nk.MLP(6, (3,), 1), X).bad_draw(1.0),
            "`factor` must be greater than 1; got 1.0",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
