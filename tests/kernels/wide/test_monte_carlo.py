"""Infinite-width kernels against random networks, within 4 standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.activations import get
from nearkernel.theory import dual
from support import helpers

X = helpers.points(3, 4, 2)
KEY = jax.random.key(11)


def measured_kernels(net, size):
    """Estimates of E[z z] and of the mean tangent kernel."""

    def both(params):
        z = net(params, X)
        return z @ z.T / net.out_dim, nk.kernels.EmpiricalNTK(net, params)(X)

    return nk.measure(both, net, size, KEY)


@pytest.mark.parametrize("activation", ["relu", "tanh", helpers.hard_tanh])
def test_one_hidden_layer_is_exact_at_any_width(activation):
    net = nk.MLP(4, (20,), 3, activation, weight_var=1.7, bias_var=0.3)
    estimate = measured_kernels(net, 2000)
    assert estimate.agrees(nk.kernels.nngp_and_ntk(net, X))


def test_the_derivative_factor_has_no_bias_variance():
    """Theta = K + C_W E[s' s'] Theta_1; with (C_b + C_W E[s' s']) it would be many standard errors off."""
    net = nk.MLP(4, (20,), 3, "erf", weight_var=1.3, bias_var=0.5)
    first = 0.5 + 1.3 * X @ X.T / 4
    root = np.sqrt(np.diagonal(first))
    _, slope = dual(get("erf"), root[:, None] ** 2, root**2, np.clip(first / np.outer(root, root), -1, 1))
    nngp = nk.kernels.NNGP(net)(X)
    estimate = measured_kernels(net, 2000)
    right, wrong = (nngp + (extra + 1.3 * slope) * first for extra in (0.0, 0.5))
    assert np.abs(estimate.deviation((nngp, right))).max() < 4
    assert np.abs(estimate.deviation((nngp, wrong))[9:]).min() > 12
    np.testing.assert_allclose(nk.kernels.NTK(net)(X), right, rtol=1e-12)


def test_deep_networks_tend_to_the_limit_as_one_over_width():
    """What is left of two hidden layers after 4 standard errors is within 2/width of the scale."""
    net = nk.MLP(4, (100, 100), 1, "tanh", weight_var=1.5, bias_var=0.1)
    estimate = nk.measure(lambda params: nk.kernels.EmpiricalNTK(net, params)(X), net, 200, KEY)
    theory = nk.kernels.NTK(net)(X)
    scale = np.sqrt(np.outer(np.diagonal(theory), np.diagonal(theory)))
    assert (np.abs(estimate.mean - theory) < 4 * estimate.sem + 2 * scale / 100).all()


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh", "sin", helpers.hard_tanh, jax.nn.elu])
@pytest.mark.parametrize("bias_var", [0.0, 0.4])
def test_deep_wide_networks_equal_the_limit(activation, bias_var):
    """Richardson: 2 E[width 2n] - E[width n] removes the correction of order 1/width."""
    size, estimates = 1500, []
    for width in (48, 96):
        net = nk.MLP(4, (width,) * 3, 1, activation, weight_var=1.4, bias_var=bias_var)

        def both(params, net=net):
            z = net(params, X)
            return jnp.stack([z @ z.T, nk.kernels.EmpiricalNTK(net, params)(X)])

        estimates.append(nk.measure(both, net, size, jax.random.fold_in(KEY, width)))
    thin, wide = estimates
    mean, sem = 2 * wide.mean - thin.mean, np.hypot(2 * wide.sem, thin.sem)
    theory = np.stack(nk.kernels.nngp_and_ntk(net, X))
    scale = np.sqrt(
        np.diagonal(theory, axis1=1, axis2=2)[:, :, None] * np.diagonal(theory, axis1=1, axis2=2)[:, None]
    )
    assert (np.abs(mean - theory) < 4 * sem + 20 * scale / 96**2).all()
