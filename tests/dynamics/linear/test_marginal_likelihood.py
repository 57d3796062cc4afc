"""Kernel parameters by the marginal likelihood: against scikit-learn, and at the top of its hill."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import nearkernel as nk
from support.cases import few

K, tune = nk.kernels, nk.dynamics.tune
RNG = np.random.default_rng(12)
X = RNG.normal(size=(40, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=40)


def evidence(kernel, noise, x=X, y=Y):
    return nk.posterior(kernel, x, y, x[:1], noise).log_marginal_likelihood


@pytest.mark.parametrize(
    "ours, theirs",
    few(
        [
            (1.0 * K.RBF(1.0), sk.ConstantKernel(1.0) * sk.RBF(1.0)),
            (1.0 * K.ARD(K.RBF(1.0), [1.0, 1.0]), sk.ConstantKernel(1.0) * sk.RBF([1.0, 1.0])),
            (1.0 * K.Matern(1.0, nu=2.5), sk.ConstantKernel(1.0) * sk.Matern(1.0, nu=2.5)),
        ],
        1,
    ),
)
def test_the_optimum_is_scikit_learns(ours, theirs):
    found = tune(ours, X, Y, "evidence")
    rival = GaussianProcessRegressor(theirs + sk.WhiteKernel(0.1)).fit(X, Y)
    assert found.ok and found.log_marginal_likelihood > found.before
    assert found.log_marginal_likelihood == pytest.approx(rival.log_marginal_likelihood_value_, abs=2e-4)
    assert found.log_marginal_likelihood == pytest.approx(evidence(found.kernel, found.noise), abs=1e-8)
    fitted = rival.kernel_.k1.k2.length_scale
    learned = found.parameters["kernel.lengths" if np.ndim(fitted) else "kernel.length"]
    np.testing.assert_allclose(np.log(np.minimum(learned, 50)), np.log(np.minimum(fitted, 50)), atol=0.02)


@pytest.mark.parametrize("kind", few([K.NNGP, K.NTK], 1))
def test_variances_of_networks_are_learned(kind):
    truth = K.NNGP(nk.MLP(2, (3,), activation="erf", weight_var=4.0, bias_var=0.5))
    y = np.linalg.cholesky(truth(X) + 0.01 * np.eye(40)) @ RNG.normal(size=(40, 2))
    found = tune(kind(nk.MLP(2, (3,), activation="erf", weight_var=1.0, bias_var=0.1)), X, y, "evidence")
    assert set(found.parameters) == {"net.weight_var", "net.bias_var", "noise"} and found.ok
    if kind is K.NNGP:
        assert found.log_marginal_likelihood > evidence(truth, 0.01, X, y)  # the best fit beats the truth
    assert found.kernel.net.weight_var == found.parameters["net.weight_var"]
    top = found.log_marginal_likelihood
    for name in ("weight_var", "bias_var"):
        for factor in (0.98, 1.02):  # at the top of the hill
            values = dict(weight_var=found.kernel.net.weight_var, bias_var=found.kernel.net.bias_var)
            values[name] *= factor
            near = kind(nk.MLP(2, (3,), activation="erf", **values))
            assert evidence(near, found.noise, X, y) < top + 1e-7
    assert evidence(found.kernel, 1.05 * found.noise, X, y) < top


def test_layers_have_variances_of_their_own():
    layers = [
        nk.layers.Dense(8, weight_var=1.0, bias_var=0.1),
        nk.layers.Activation("relu"),
        nk.layers.Dense(1),
    ]
    found = tune(K.NNGP(nk.Network((2,), layers)), X, Y, "evidence", noise=0.05)
    assert len(found.parameters) == 4  # two weights, one bias (the other is 0 and stays), the noise
    assert found.log_marginal_likelihood > found.before


def test_a_period_is_found_and_a_useless_column_is_stretched():
    x = RNG.uniform(0, 6, size=(60, 1))
    y = np.sin(2 * np.pi * x[:, 0] / 1.7) + 0.05 * RNG.normal(size=60)
    found = tune(K.Periodic(1.66, 1.0), x, y, "evidence", noise=0.1)
    assert found.parameters["period"] == pytest.approx(1.7, rel=0.01)
    assert found.noise == pytest.approx(0.0025, rel=0.8)
    lengths = tune(K.ARD(K.RBF(1.0), [1.0, 1.0]), X, Y, "evidence").parameters["lengths"]
    assert lengths[1] > 5 * lengths[0]  # y depends on the first column alone


def test_what_is_fixed_stays():
    found = tune(1.5 * K.RBF(0.7), X, Y, "evidence", noise=0.2, fixed=["noise", "factor"])
    assert found.noise == 0.2 and found.kernel.factor == 1.5 and set(found.parameters) == {"kernel.length"}
    alone = tune(K.Linear(), X, Y, "evidence")
    assert set(alone.parameters) == {"noise"}


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: tune(nk.MLP(2), X, Y, "evidence"), "`problem` must be a kernel"),
        (lambda: tune(K.RBF(1.0), X, Y, "evidence", [1.0]), '`values` are for kind="ridge" and "flow"'),
        (lambda: tune(K.RBF(1.0), X, Y, "ridge", noise=0.1), '`noise` and `fixed` are for kind="evidence"'),
        (lambda: tune(K.RBF(1.0), X, Y, "evidence", fixed=["lenght"]), "`fixed` must name .* of length, noise; got"),
        (lambda: tune(K.RBF(1.0), X, Y, "evidence", fixed=["length", "noise"]), "`fixed` leaves nothing to learn"),
        (lambda: tune(K.RBF(1.0), X, Y, "evidence", noise=0.0), "`noise` must be greater than 0; got 0.0"),
        (lambda: tune(K.RBF(1.0), X[[0, 0]], Y[:2], "evidence", noise=1e-100), "not finite at noise=1e-100.*larger"),
        (lambda: tune(K.RBF(1.0), X, Y, "loo"), "`kind` must be one of 'ridge', 'flow', 'evidence'; got 'loo'"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
