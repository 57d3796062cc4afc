"""Curvature along real training: the edge of stability, outliers by class, and collapse past zero error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.theory import subspace_overlap as overlap

G = nk.geometry


def chebyshev(n, widths):
    """Points of a polynomial of degree 4, a network and its start."""
    x = np.linspace(-1, 1, n)[:, None]
    net = nk.MLP(1, widths, 1, "tanh", weight_var=1.0, bias_var=0.1)
    return net, net.init(jax.random.key(1)), x, np.cos(4 * np.arccos(x[:, 0]))


def followed(net, x, y, every):
    return nk.Record({"sharpness": lambda p: G.sharpness(net, p, x, y, steps=15)}, every=every)


@pytest.mark.slow
def test_gradient_descent_sharpens_up_to_the_edge_of_stability():
    net, theta, x, y = chebyshev(12, (20, 20))
    lr = 0.5 / G.sharpness(net, theta, x, y)
    run = nk.simulate(net, theta, x, y, nk.GradientDescent(lr, 1600), followed(net, x, y, 100))
    sharpness, loss = lr * run.history["sharpness"], run.history["loss"]
    assert sharpness[0] == pytest.approx(0.5, rel=1e-4)  # Lanczos inside a run
    assert sharpness[-1] == pytest.approx(lr * G.sharpness(net, run.params, x, y), rel=1e-4)
    assert (np.diff(sharpness[:5]) > 0).all()  # progressive sharpening
    assert np.abs(sharpness[8:] - 2).max() < 0.1  # and then it hovers at 2/lr
    assert loss[-1] < 0.2 * loss[8] < 0.05 * loss[0]  # while the loss goes on falling


@pytest.mark.slow
def test_flow_and_small_steps_know_no_edge():
    """The same network passes the edge of the larger step without noticing."""
    net, theta, x, y = chebyshev(20, (30, 30, 30))
    lr = 0.5 / G.sharpness(net, theta, x, y)
    flow = nk.simulate(net, theta, x, y, nk.GradientFlow(4000 * lr), followed(net, x, y, 400 * lr))
    small = nk.simulate(net, theta, x, y, nk.GradientDescent(lr / 8, 32000), followed(net, x, y, 3200))
    for run in (flow, small):
        assert run.ok and lr * run.history["sharpness"][-1] > 3
    np.testing.assert_allclose(flow.history["sharpness"], small.history["sharpness"], rtol=0.05)
    assert lr / 8 * small.history["sharpness"].max() < 1.8


@pytest.mark.slow
def test_outliers_of_the_hessian_are_one_fewer_than_classes():
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    for classes in (4, 5):
        x, own = pixels[labels < classes][:200], labels[labels < classes][:200]
        x, y = (x - x.mean()) / x.std(), np.eye(classes)[own]
        net = nk.MLP(64, (64, 64), classes, "relu", weight_var=2.0, parametrization="standard")
        theta = net.init(jax.random.key(0))
        lr = 0.5 / G.sharpness(net, theta, x, y, "cross_entropy")
        params = nk.simulate(
            net, theta, x, y, nk.GradientDescent(lr, 60), loss="cross_entropy", lr_factors=1.0
        ).params
        values = G.top_eigenpairs(G.Hessian(net, params, x, y, "cross_entropy"), 10).values
        assert np.argmax(values[:-1] / values[1:]) + 1 == classes - 1
        early, late = (
            G.top_eigenpairs(G.Hessian(net, p, x, y, "cross_entropy"), classes - 1).vectors
            for p in (theta, params)
        )
        more = nk.simulate(
            net, params, x, y, nk.GradientDescent(lr, 30), loss="cross_entropy", lr_factors=1.0
        ).params
        later = G.top_eigenpairs(G.Hessian(net, more, x, y, "cross_entropy"), classes - 1).vectors
        assert overlap(later.T, late.T) > max(0.6, overlap(later.T, early.T))  # the top space settles
        assert (
            nk.theory.gradient_share(G.Hessian(net, theta, x, y, "cross_entropy"), early) > 0.2
        )  # of thousands of directions
        split = nk.theory.gauss_newton_classes(net, params, x, own)
        tops = [G.top_eigenpairs(part, 1).values[0] for part in split]
        assert tops[2] < 0.5 * min(tops[0], tops[1])  # deviations within a class are the bulk


@pytest.mark.slow
def test_a_classifier_collapses_past_zero_error():
    """Weight decay enters as one more output, the length of the parameters."""
    rng = np.random.default_rng(0)
    classes, n, decay = 4, 60, 0.1
    labels = np.repeat(np.arange(classes), n // classes)
    x = rng.normal(size=(n, 8)) + 1.2 * rng.normal(size=(classes, 8))[labels]
    y = np.column_stack([np.eye(classes)[labels], np.zeros(n)])
    net = nk.MLP(8, (40, 40, 40), classes, "tanh", weight_var=1.5, parametrization="standard")

    def outputs(params, x):
        size = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
        return jnp.column_stack([net(params, x), jnp.full(len(x), jnp.sqrt(decay / n * size))])

    def loss(z, y):
        return -jnp.sum(y[:, :-1] * jax.nn.log_softmax(z[:, :-1])) + 0.5 * jnp.sum(z[:, -1] ** 2)

    params, found, errors = net.init(jax.random.key(0)), [], []
    for steps in (100, 9900):
        descent = nk.GradientDescent(0.002, steps, momentum=0.9)
        params = nk.simulate(nk.from_function(outputs), params, x, y, descent, loss=loss).params
        features, (weights, biases) = nk.theory.last_layer(net, params, x)
        errors.append(np.mean(np.argmax(features @ weights.T + biases, axis=1) != labels))
        found.append(G.collapse(features, labels, (weights, biases)))
    before, after = found
    assert errors == [0.0, 0.0]  # all that follows happens past zero error
    assert after.nc1 < before.nc1 and after.nc2_norms < before.nc2_norms
    assert after.nc2_angles < 0.6 * before.nc2_angles and after.nc3 < 0.5 * before.nc3
    assert after.nc4 == 0
