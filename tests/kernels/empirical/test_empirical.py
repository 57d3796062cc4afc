"""The empirical tangent kernel: layer by layer, by Jacobians, and by a contraction written out here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support import helpers
from support.cases import few

X1, X2 = helpers.points(5, 3), helpers.points(4, 3, 1)
KEY = jax.random.key(4)


def network(out_dim=3, scaling="ntk", activation="tanh"):
    return nk.MLP(3, (6, 5), out_dim, activation, 1.6, 0.3, parametrization=scaling)


def direct(model, params, x1, x2, factors=None):
    """(n1, out, n2, out): one jacrev of everything, contracted leaf by leaf."""
    both = helpers.compiled(jax.jacrev(lambda p: model(p, np.concatenate([x1, x2]))))(params)
    first, second = (jax.tree.map(lambda leaf, i=i: np.split(leaf, [len(x1)])[i], both) for i in (0, 1))
    factors = jax.tree.map(lambda _: 1.0, params) if factors is None else factors

    def contract(a, b, factor):
        return factor * np.tensordot(
            a.reshape(*a.shape[:2], -1), b.reshape(*b.shape[:2], -1), axes=([2], [2])
        )

    return sum(jax.tree.leaves(jax.tree.map(contract, first, second, factors)))


def trace(full):
    return np.einsum("iojo->ij", full) / full.shape[1]


@pytest.mark.parametrize("scaling", few(["ntk", "standard", "mean_field"], 1))
def test_every_method_equals_the_direct_contraction(scaling):
    net = network(scaling=scaling)
    params = net.init(KEY)
    expected = direct(net, params, X1, X2, net.lr_factors())
    for method in ("auto", "layers", "jacobian", "products"):
        kernel = nk.kernels.EmpiricalNTK(net, params, method=method)
        np.testing.assert_allclose(kernel.full(X1, X2), expected, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(kernel(X1, X2), trace(expected), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("method", ["layers", "jacobian"])
@pytest.mark.parametrize("out_dim", [1, 4])
def test_symmetric_calls_equal_rectangular_ones(method, out_dim):
    net = network(out_dim)
    kernel = nk.kernels.EmpiricalNTK(net, net.init(KEY), method=method)
    full = kernel.full(X1)
    assert full.shape == (5, out_dim, 5, out_dim)
    np.testing.assert_allclose(full, kernel.full(X1, X1), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(full, full.transpose(2, 3, 0, 1), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel(X1), trace(full), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diag(X1), np.diagonal(trace(full)), rtol=1e-12)


@pytest.mark.parametrize("method", ["layers", "jacobian"])
def test_strips_and_chunks_leave_no_seam(method, monkeypatch):
    """The same kernel when only a few rows fit at a time."""
    net = network()
    x, params = helpers.points(13, 3, 5), net.init(KEY)
    kernel = nk.kernels.EmpiricalNTK(net, params, method=method)
    whole, full = kernel(x), kernel.full(x)
    monkeypatch.setattr("nearkernel.kernels.empirical.outer_products._STRIP_BYTES", 8 * 13 * 9 * 5)
    monkeypatch.setattr("nearkernel.kernels.empirical.ntk.rows_that_fit", lambda *_: 5)
    np.testing.assert_allclose(kernel(x), whole, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(kernel.full(x), full, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(kernel(x, X1), kernel(X1, x).T, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("side", [2, 6])
def test_symmetric_calls_of_convolutional_networks_equal_rectangular_ones(side):
    """Both ways of a layer with positions, few and many; the readout has no parameters."""
    layers = nk.layers
    net = nk.Network(
        (side, side, 2),
        [layers.Conv(5, (3, 3)), layers.Activation("tanh"), layers.Conv(3, (3, 3)), layers.GlobalAvgPool()],
    )
    x = np.random.default_rng(side).normal(size=(9, side, side, 2))
    kernel = nk.kernels.EmpiricalNTK(net, net.init(0), method="layers")
    np.testing.assert_allclose(kernel.full(x), kernel.full(x, x), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(kernel(x), kernel(x, x), rtol=1e-11)


def test_no_hidden_layer_is_the_linear_kernel():
    net = nk.MLP(3, (), 2, weight_var=1.6, bias_var=0.3)
    kernel = nk.kernels.EmpiricalNTK(net, net.init(KEY))
    np.testing.assert_allclose(kernel(X1, X2), 0.3 + 1.6 * X1 @ X2.T / 3, rtol=1e-13)
    assert np.abs(kernel.full(X1, X2)[:, 0, :, 1]).max() == 0.0


def test_kinked_networks_use_the_slope_almost_everywhere():
    net = network(activation="relu")
    params = net.init(KEY)
    expected = direct(net, params, X1, X2)
    np.testing.assert_allclose(
        nk.kernels.EmpiricalNTK(net, params).full(X1, X2), expected, rtol=1e-11, atol=1e-12
    )


def test_any_model_has_one():
    model = nk.from_function(lambda p, x: jnp.sin(x @ p["a"]) * p["b"])
    params = {"a": helpers.points(3, 2), "b": np.array([0.5, -2.0])}
    expected = direct(model, params, X1, X2)
    np.testing.assert_allclose(nk.kernels.EmpiricalNTK(model, params).full(X1, X2), expected, rtol=1e-12)
    factors = {"a": 3.0, "b": 0.25}
    kernel = nk.kernels.EmpiricalNTK(model, params, factors)
    np.testing.assert_allclose(kernel.full(X1, X2), direct(model, params, X1, X2, factors), rtol=1e-12)


def test_float32_parameters_give_a_float64_kernel():
    net = network()
    single = jax.tree.map(lambda a: np.asarray(a, dtype=np.float32), net.init(KEY))
    exact = nk.kernels.EmpiricalNTK(net, helpers.to_float64(single), method="jacobian")(X1)
    for method in ("layers", "jacobian"):
        np.testing.assert_allclose(nk.kernels.EmpiricalNTK(net, single, method=method)(X1), exact, rtol=1e-12)


def test_bad_arguments_are_named():
    net = network()
    params = net.init(KEY)
    with pytest.raises(ValueError, match=r"`method` must be one of 'auto'.*Did you mean 'jacobian'\?"):
        nk.kernels.EmpiricalNTK(net, params, method="jacobi")
    with pytest.raises(TypeError, match=r"`model` must be a nearkernel model; got function: wrap it"):
        nk.kernels.EmpiricalNTK(lambda p, x: x, params)
    with pytest.raises(ValueError, match="`x1` has 2 features per row; 3 expected"):
        nk.kernels.EmpiricalNTK(net, params)(X1[:, :2], X2)
