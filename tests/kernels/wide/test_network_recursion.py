"""Infinite-width kernels against the recursion written out with independent Gaussian averages."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support import helpers
from support.cases import few
from support.references import gaussian_averages as reference

KNOWN = reference.CLOSED | reference.SMOOTH | reference.CALLABLES
FUNCTIONS = {"hard_tanh": helpers.hard_tanh, "elu": jax.nn.elu, "wavy": helpers.wavy}


def brute_force(name, x, depth, weight_var, bias_var):
    """(NNGP, NTK) of the rows of `x`, one pair and one layer a time."""
    n, known = len(x), KNOWN[name]
    nngp = np.array([[bias_var + weight_var * a @ b / x.shape[1] for a in x] for b in x])
    gap = np.array([[_gap(x[i], x[j], bias_var, weight_var) for j in range(n)] for i in range(n)])
    ntk = nngp.copy()
    for _ in range(depth):
        value, slope = np.empty((2, n, n))
        for i in range(n):
            for j in range(i + 1):
                found = known.pair(nngp[i, i], nngp[j, j], gap[i, j] if i != j else 0.0)
                value[i, j], slope[i, j] = found
                value[j, i], slope[j, i] = found
        nngp = bias_var + weight_var * value
        ntk = nngp + weight_var * slope * ntk
        size = np.sqrt(np.diagonal(nngp))
        gap = np.clip(1 - nngp / np.outer(size, size), 0.0, 2.0)
    return nngp, ntk


def _gap(a, b, bias_var, weight_var):
    a, b = (np.append(np.sqrt(weight_var / len(row)) * row, np.sqrt(bias_var)) for row in (a, b))
    difference = a / np.linalg.norm(a) - b / np.linalg.norm(b)
    return 0.5 * difference @ difference


@pytest.mark.parametrize(
    "name", few(["relu", "leaky_relu(0.3)", "erf", "gelu", "cos", "monomial(2)", "tanh", "silu", "wavy"], 3)
)
def test_two_hidden_layers_equal_the_recursion(name):
    net = nk.MLP(4, (1, 1), 1, FUNCTIONS.get(name, name), 0.8, 0.3)
    x = np.concatenate([helpers.points(2, 4, 5), np.zeros((1, 4))])
    nngp, ntk = brute_force(name, x, 2, 0.8, 0.3)
    found = nk.kernels.nngp_and_ntk(net, x)
    assert helpers.relative_error(found[0], nngp) < 1e-10
    assert helpers.relative_error(found[1], ntk) < 1e-10
    np.testing.assert_allclose(nk.kernels.NNGP(net)(x), found[0], rtol=1e-14)
    np.testing.assert_allclose(nk.kernels.NTK(net)(x), found[1], rtol=1e-14)


@pytest.mark.parametrize("name", ["hard_tanh", "elu", "relu"])
def test_kinked_functions_deep_in_the_ordered_phase(name):
    """Small weights and large biases draw all inputs together: correlations near 1 in every layer."""
    depth, weight_var, bias_var = 4, 0.5, 1.5
    net = nk.MLP(4, (1,) * depth, 1, FUNCTIONS.get(name, name), weight_var, bias_var)
    x = helpers.points(2, 4, 6)
    nngp, ntk = brute_force(name, x, depth, weight_var, bias_var)
    assert 1e-8 < 1 - nngp[0, 1] / np.sqrt(nngp[0, 0] * nngp[1, 1]) < 1e-2
    found = nk.kernels.nngp_and_ntk(net, x)
    assert helpers.relative_error(found[0], nngp) < 1e-7
    assert helpers.relative_error(found[1], ntk) < 1e-6


@pytest.mark.parametrize("name", ["tanh", "hard_tanh"])
def test_large_weights_saturate_and_stay_right(name):
    net = nk.MLP(4, (1, 1), 1, FUNCTIONS.get(name, name), 25.0, 0.1)
    x = helpers.points(3, 4, 7)
    nngp, ntk = brute_force(name, x, 2, 25.0, 0.1)
    found = nk.kernels.nngp_and_ntk(net, x)
    assert helpers.relative_error(found[0], nngp) < 1e-10
    assert helpers.relative_error(found[1], ntk) < (1e-10 if name == "tanh" else 1e-6)


def test_no_hidden_layer_is_the_linear_kernel():
    x = helpers.points(4, 3)
    for scaling in ("ntk", "standard", "mean_field"):
        net = nk.MLP(3, (), 1, weight_var=1.7, bias_var=0.4, parametrization=scaling)
        for kernel in (nk.kernels.NNGP(net), nk.kernels.NTK(net)):
            np.testing.assert_allclose(kernel(x), 0.4 + 1.7 * x @ x.T / 3, rtol=1e-13)


def test_linear_networks_add_a_layer_of_kernel_each():
    """C_b = 0: NNGP C_W^{L+1} x.y/d, NTK (L + 1) times that."""
    x = helpers.points(4, 3)
    net = nk.MLP(3, (1, 1, 1), 1, "linear", 1.2)
    np.testing.assert_allclose(nk.kernels.NNGP(net)(x), 1.2**4 * x @ x.T / 3, rtol=1e-13)
    np.testing.assert_allclose(nk.kernels.NTK(net)(x), 4 * 1.2**4 * x @ x.T / 3, rtol=1e-13)


def test_mean_field_outputs_start_at_their_bias():
    net = nk.MLP(3, (4,), 1, "erf", 1.3, 0.6, parametrization="mean_field")
    x = helpers.points(3, 3)
    np.testing.assert_allclose(nk.kernels.NNGP(net)(x), np.full((3, 3), 0.6), rtol=1e-15)
    np.testing.assert_allclose(nk.kernels.NNGP(net)(x, x[:2]), np.full((3, 2), 0.6), rtol=1e-15)
    np.testing.assert_allclose(nk.kernels.NNGP(net).diag(x), np.full(3, 0.6), rtol=1e-15)
    same = nk.MLP(3, (4,), 1, "erf", 1.3, 0.6)
    np.testing.assert_allclose(nk.kernels.NTK(net)(x), nk.kernels.NTK(same)(x), rtol=1e-14)


def test_widths_and_outputs_do_not_matter():
    x = helpers.points(3, 3)
    thin, wide = nk.MLP(3, (1, 1), 1, "gelu"), nk.MLP(3, (500, 30), 7, "gelu")
    np.testing.assert_array_equal(nk.kernels.NTK(thin)(x), nk.kernels.NTK(wide)(x))


@pytest.mark.parametrize("activation", few(["tanh", "erf", "sin", helpers.hard_tanh], 2))
def test_odd_activations_without_bias_are_odd(activation):
    """k(0, x) = 0 and k(-x, y) = -k(x, y), also for those known by their series only."""
    x = helpers.points(4, 3)
    kernel = nk.kernels.NTK(nk.MLP(3, (1, 1), 1, activation))
    whole = kernel(np.concatenate([x, np.zeros((1, 3))]))
    assert np.abs(whole[4]).max() < 1e-15
    np.testing.assert_allclose(kernel(-x, x + 1), -kernel(x, x + 1), atol=1e-9)


def test_only_networks_with_a_known_limit_have_one():
    with pytest.raises(
        TypeError, match=r"`net` must be an nk\.MLP or nk\.Network, whose layers NNGP can read; got RBF"
    ):
        nk.kernels.NNGP(nk.kernels.RBF())
    with pytest.raises(TypeError, match=r"`net` must be an nk\.MLP.*got FeatureModel"):
        nk.kernels.NTK(nk.FeatureModel(lambda x: x))
