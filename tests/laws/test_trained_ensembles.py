"""Theory and experiment in pairs: the law of trained networks against networks that were trained."""

import jax
import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(33)
X, Y, NEW = RNG.normal(size=(5, 4)), RNG.normal(size=5), RNG.normal(size=(3, 4))


def ensemble(net, algorithm, size, seed):
    """Mean outputs and mean squared deviations from `center` of `size` trained networks."""
    center = nk.forecast(net, X, Y, algorithm, NEW)

    def observable(theta):
        trained = nk.simulate(net, theta, X, Y, algorithm).params
        z = net(trained, NEW)[:, 0]
        return {"mean": z, "cov": (z - center.mean)[:, None] * (z - center.mean)}

    return center, nk.measure(observable, net, size, jax.random.key(seed))


def test_500_trained_networks_agree_with_the_forecast():
    """One hidden layer of 512: finite-width effects, of order 1/512, are far below the standard error at 500 draws."""
    net = nk.MLP(4, (512,), 1, "erf", weight_var=1.6, bias_var=0.2)
    lam = np.linalg.eigvalsh(nk.kernels.NTK(net)(X))[-1]
    forecast, found = ensemble(net, nk.GradientDescent(lr=1.0 / lam, steps=40), 500, seed=7)
    assert found.agrees({"mean": forecast.mean, "cov": forecast.cov}, sigmas=4)
    wrong = nk.forecast(net, X, Y, nk.GradientDescent(lr=1.0 / lam, steps=1), NEW)
    assert not found.agrees({"mean": wrong.mean, "cov": wrong.cov}, sigmas=4)  # the test can fail


@pytest.mark.slow
@pytest.mark.parametrize("activation, width, size", [("relu", 768, 300), ("tanh", 384, 1000)])
def test_many_trained_deeper_networks_agree_with_the_forecast(activation, width, size):
    """The mean of networks with kinks is off by 1/sqrt(width), so they must be wider."""
    net = nk.MLP(4, (width, width), 1, activation, weight_var=1.4, bias_var=0.3)
    lam = np.linalg.eigvalsh(nk.kernels.NTK(net)(X))[-1]
    forecast, found = ensemble(net, nk.GradientDescent(lr=1.2 / lam, steps=60), size, seed=3)
    assert found.agrees({"mean": forecast.mean, "cov": forecast.cov}, sigmas=4)


def test_the_linearized_ensemble_is_exactly_gaussian_at_any_width_in_its_last_layer():
    """Random features, last layer trained: R K_AA R^T with the finite kernel is exact, draw by draw."""
    net = nk.MLP(4, (30,), 1, "relu", weight_var=2.0, bias_var=0.1)

    def features(p, x):
        return jax.nn.relu(net.layer_outputs(p, x)[0]) / np.sqrt(30 / 2.0)

    theta = net.init(jax.random.key(5))
    with jax.enable_x64(True):
        phi, phi_new = (np.asarray(features(theta, x)) for x in (X, NEW))
    kernel, cross = phi @ phi.T, phi_new @ phi.T
    response = cross @ np.linalg.inv(kernel)
    draws = RNG.normal(size=(20000, 30))
    trained = draws @ phi_new.T - (draws @ phi.T - Y) @ response.T
    cov = phi_new @ phi_new.T - response @ cross.T
    sem = np.sqrt((np.outer(np.diagonal(cov), np.diagonal(cov)) + cov**2) / 20000)
    assert (np.abs(np.cov(trained.T) - cov) <= 4 * sem).all()
    assert (np.abs(trained.mean(axis=0) - response @ Y) <= 4 * np.sqrt(np.diagonal(cov) / 20000)).all()


@pytest.mark.slow
def test_wide_networks_follow_their_linearization():
    """The distance of a trained network from its own solved linearization falls with width, at least as 1/sqrt(n)."""
    distances = []
    for width in (128, 2048):
        gaps = []
        for seed in range(4):
            net = nk.MLP(4, (width,), 1, "tanh", weight_var=1.5, bias_var=0.1)
            theta = net.init(jax.random.key(seed))
            algorithm = nk.GradientDescent(0.05, 150)
            real = np.asarray(net(nk.simulate(net, theta, X, Y, algorithm).params, NEW))[:, 0]
            solved = nk.solve(nk.expand(net, theta), X, Y, algorithm).predict(NEW).mean
            gaps.append(np.linalg.norm(real - solved) / np.linalg.norm(real))
        distances.append(np.mean(gaps))
    assert distances[1] < 0.05 and distances[0] / distances[1] > 4.0
