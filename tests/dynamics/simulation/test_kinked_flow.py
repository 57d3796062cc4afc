"""Gradient flow of networks with kinks, along which trajectories slide: that of gradient descent in small steps."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support import helpers
from support.cases import few

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(X[:, 0])
L = nk.layers
NETS = {
    "relu": nk.MLP(3, (64,), 1, "relu"),
    "leaky relu": nk.MLP(3, (32,), 1, "leaky_relu(0.1)", 1.5, 0.1),
    "hard tanh": nk.MLP(3, (32,), 1, helpers.hard_tanh, 1.5, 0.1),
    "network": nk.Network(
        (3,), [L.Dense(16), L.Activation("relu"), L.Dense(16), L.Activation("relu"), L.Dense(1)]
    ),
}


def run(net, time, x=X[:2], y=Y[:2], every=None):
    params = net.init(jax.random.key(0))
    return nk.simulate(net, params, x, y, nk.GradientFlow(time), nk.Record(["outputs"], every))


@pytest.mark.parametrize("name", few(NETS, 1))
def test_flow_with_kinks_reaches_its_end_and_the_loss_falls(name):
    found = run(NETS[name], 300.0)
    assert found.status == nk.StatusKind.finished and found.history["time"][-1] == 300.0
    losses = found.history["loss"]
    assert (np.diff(losses) <= 1e-9 * losses[0]).all() and losses[-1] < 1e-3 * losses[
        0
    ]  # slow modes of a network take longer


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_flow_with_kinks_is_gradient_descent_in_small_steps(name):
    net, time, lr = NETS[name], 1.5, 2e-4
    params, steps = net.init(jax.random.key(0)), round(time / lr)
    descent = nk.simulate(net, params, X[:6], Y[:6], nk.GradientDescent(lr, steps), nk.Record(["outputs"]))
    flow = run(net, time, X[:6], Y[:6])
    apart = np.abs(flow.history["outputs"][-1] - descent.history["outputs"][-1]).max()
    assert flow.ok and apart < 2e-3 * np.abs(Y[:6]).max()


@pytest.mark.parametrize("time", [1e-3, pytest.param(1e6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_any_time_and_scale_of_data(time, scale):
    found = run(NETS["relu"], time, scale * X[:2], Y[:2] * scale)
    assert found.ok and found.history["time"][-1] == time
    assert (np.diff(found.history["loss"]) <= 1e-9 * found.history["loss"][0]).all()


@pytest.mark.slow
def test_a_trained_network_stays_where_it_is():
    found = run(NETS["relu"], 300.0)
    more = nk.simulate(NETS["relu"], found.params, X[:2], Y[:2], nk.GradientFlow(1e6))
    assert more.ok
    for before, after in zip(jax.tree.leaves(found.params), jax.tree.leaves(more.params), strict=True):
        np.testing.assert_allclose(before, after, atol=1e-6)


@pytest.mark.merge
def test_flow_until_convergence_with_kinks():
    assert run(NETS["relu"], np.inf).status == nk.StatusKind.converged
