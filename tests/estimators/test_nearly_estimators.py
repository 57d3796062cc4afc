"""Finite networks as scikit-learn estimators: ensembles of `nk.solve`, order by order."""

import warnings

import jax
import numpy as np
import pytest
from sklearn.datasets import load_iris

import nearkernel as nk
from nearkernel.estimators import NearlyKernelClassifier, NearlyKernelRegressor
from support.helpers import points
from support.references.contract import fulfils_the_contract_of_scikit_learn

X, X_NEW = points(12, 3), points(5, 3, seed=1)
Y = 4.0 + np.sin(X[:, 0]) + X[:, 1]


def small(in_dim, out_dim):
    return nk.MLP(in_dim, (8,), out_dim, activation="tanh", bias_var=0.3)


def test_it_is_the_mean_of_solved_networks():
    model = NearlyKernelRegressor(small, order=1, ensemble=3, scale=20.0).fit(X, Y)
    mean, std = model.predict(X_NEW, return_std=True)
    random = np.random.RandomState(0)
    expected = []
    for _ in range(3):
        net = nk.Scaled(small(3, 1), 20.0)
        start = net.init(jax.random.key(int(random.randint(2**31 - 1))))
        solution = nk.solve(nk.expand(net, start, 2), X, Y - Y.mean(), nk.GradientFlow(), order=1)
        expected.append(solution.predict(X_NEW).mean + Y.mean())
    np.testing.assert_allclose(mean, np.mean(expected, axis=0), rtol=1e-10)
    np.testing.assert_allclose(std, np.std(expected, axis=0, ddof=1), rtol=1e-8)
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-6)


def test_several_outputs_and_a_given_network():
    y = np.column_stack([Y, Y**2])
    model = NearlyKernelRegressor(small(3, 2), order=1, ensemble=1, scale=500.0).fit(X, y)
    assert model.predict(X_NEW).shape == (5, 2)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-5)


def test_it_classifies():
    data = load_iris()
    rows = np.random.default_rng(0).permutation(len(data.data))[:70]
    x, y = data.data[rows] - data.data.mean(0), np.array(["a", "b", "c"])[data.target[rows]]
    model = NearlyKernelClassifier(small, order=1, ensemble=1, scale=30.0, algorithm=nk.Ridge(1.0))
    model.fit(x[:40], y[:40])
    assert model.score(x[40:], y[40:]) > 0.8
    assert model.decision_function(x[:4]).shape == (4, 3)


@pytest.mark.slow
def test_equal_inputs_with_different_targets_have_an_answer():
    x, y = np.concatenate([X, X[:2]]), np.append(Y, Y[:2] + 1)
    model = NearlyKernelRegressor(small, order=1, ensemble=1, scale=50.0).fit(x, y)
    np.testing.assert_allclose(model.predict(X[:2]), Y[:2] + 0.5, atol=0.05)


def test_a_large_correction_is_said():
    model = NearlyKernelRegressor(small, order=1, ensemble=1, scale=0.3).fit(X, Y)
    with pytest.warns(UserWarning, match=r"increase `scale` or the width"):
        model.predict(X_NEW)


def test_bad_arguments_are_refused_in_one_line():
    for options, line in (
        ({"order": 3}, r"`order` must be 0, 1 or 2; got 3"),
        ({"ensemble": 0}, r"`ensemble` must be at least 1; got 0"),
        ({"scale": 0}, r"`scale` must be greater than 0; got 0"),
    ):
        with pytest.raises(ValueError, match=line):
            NearlyKernelRegressor(small, **options).fit(X, Y)
    with pytest.raises(
        TypeError, match=r"`network` must be a model, a function \(in_dim, out_dim\) -> model, or None"
    ):
        NearlyKernelRegressor("mlp").fit(X, Y)
    with pytest.raises(ValueError, match=r"`return_std` needs `ensemble` of at least 2"):
        NearlyKernelRegressor(small, order=0, ensemble=1).fit(X, Y).predict(X_NEW, return_std=True)
    with pytest.raises(ValueError, match=r"`y` must have at least two classes"):
        NearlyKernelClassifier(small).fit(X, np.zeros(len(X), int))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [NearlyKernelRegressor, NearlyKernelClassifier])
def test_scikit_learns_own_checks_pass(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fulfils_the_contract_of_scikit_learn(estimator(small, order=1, ensemble=1, scale=200.0))
