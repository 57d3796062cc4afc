"""Regressors that learn directions: scikit-learn's contract, choices on held-out data, and the separation itself."""

import pickle

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import nearkernel as nk
from nearkernel.estimators import KernelMachine, OneStepNetworkRegressor, RecursiveFeatureMachine
from support.references.contract import fulfils_the_contract_of_scikit_learn

BOTH = (OneStepNetworkRegressor(width=20), RecursiveFeatureMachine(rounds=1))
RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(60, 4)), RNG.normal(size=(5, 4))
Y = 5.0 + X[:, 1] ** 2 + X[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [OneStepNetworkRegressor(), RecursiveFeatureMachine()], ids=repr)
def test_scikit_learns_own_checks_pass(estimator):
    fulfils_the_contract_of_scikit_learn(estimator)


@pytest.mark.parametrize("estimator", BOTH, ids=repr)
def test_fitted_ones_clone_pickle_keep_shapes_and_forget_the_callers_arrays(estimator):
    x, y = X.copy(), Y.copy()
    model = clone(estimator).fit(x, y)
    before = model.predict(NEW)
    assert before.shape == (5,) and model.n_features_in_ == 4 and model.directions(2).shape == (2, 4)
    x[:], y[:] = 0, 0
    np.testing.assert_array_equal(model.predict(NEW), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(NEW), before)
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict(NEW), before)
    with pytest.raises(NotFittedError):
        clone(model).predict(NEW)
    assert clone(estimator).fit(X, np.column_stack([Y, X[:, 0]])).predict(NEW).shape == (5, 2)
    np.testing.assert_allclose(clone(estimator).fit(X, np.full(60, 7.0)).predict(NEW), 7.0, rtol=1e-9)
    assert not jax.config.jax_enable_x64


def test_units_do_not_matter_to_the_one_step_network():
    one = OneStepNetworkRegressor(width=20).fit(X, Y)
    scales = np.array([1.0, 1e3, 1e-2, 5.0])
    other = OneStepNetworkRegressor(width=20).fit(X * scales + 2, 1e4 * Y)
    np.testing.assert_allclose(other.predict(NEW * scales + 2), 1e4 * one.predict(NEW), rtol=1e-6)
    assert one.ridge_ == other.ridge_ and one.held_out_loss_.shape == (13,)
    assert (
        one.held_out_loss_.min() == one.held_out_loss_[np.isclose(np.geomspace(1e-6, 1, 13), one.ridge_)][0]
    )


def test_heads_agree():
    exact, steps = (
        OneStepNetworkRegressor(20, ridge=0.01, head=head).fit(X, Y)
        for head in ("closed_form", "gradient_descent")
    )
    np.testing.assert_allclose(steps.predict(NEW), exact.predict(NEW), rtol=1e-6)
    assert steps.network_.status == nk.StatusKind.converged
    short = OneStepNetworkRegressor(20, ridge=0.01, head=nk.GradientDescent(1e-4, steps=3)).fit(X, Y)
    assert str(short.network_.status) == "stopped at step 3"


def test_held_out_points_choose_the_rounds():
    model = RecursiveFeatureMachine(rounds=2).fit(X, Y)
    assert model.held_out_loss_.shape == (3,) and model.rounds_ == model.held_out_loss_.argmin()
    plain = RecursiveFeatureMachine(nk.kernels.RBF(2.0), rounds=0, ridge=0.1).fit(X, Y)
    expected = KernelMachine(nk.kernels.RBF(2.0), nk.Ridge(0.1)).fit(X, Y - Y.mean()).predict(NEW) + Y.mean()
    np.testing.assert_allclose(plain.predict(NEW), expected, rtol=1e-10)
    np.testing.assert_array_equal(plain.matrix_, np.eye(4))


def test_learners_of_features_beat_kernels_on_few_directions():
    """d = 20, n = 2500, a polynomial of degree 4 of two directions: some d^2 points, far fewer than d^4."""
    rng = np.random.default_rng(3)
    u = np.linalg.qr(rng.normal(size=(20, 2)))[0].T
    target = nk.theory.MultiIndexPolynomial(u, {(2, 0): 0.35, (0, 2): -0.35, (2, 2): 0.35})
    x, new = rng.normal(size=(2500, 20)), rng.normal(size=(4000, 20))
    y = target(x)

    def error(model):
        return np.mean((model.fit(x, y).predict(new) - target(new)) ** 2) / target.variance

    step = OneStepNetworkRegressor(300)
    assert error(step) < 0.3
    assert nk.theory.subspace_overlap(step.directions(2), u) > 0.9
    assert error(KernelMachine(nk.kernels.RBF(20**0.5), nk.Ridge(1e-3))) > 0.5


@pytest.mark.parametrize(
    "model, error, message",
    [
        (OneStepNetworkRegressor(width=5), ValueError, "`width` must be even"),
        (OneStepNetworkRegressor(lr=0.0), ValueError, "`lr` must be greater than 0"),
        (OneStepNetworkRegressor(ridge=-1.0), ValueError, "`ridge` must be at least 0"),
        (
            OneStepNetworkRegressor(head="closed form"),
            ValueError,
            "`head` must be one of .* Did you mean 'closed_form'",
        ),
        (OneStepNetworkRegressor(cv=1), ValueError, "`cv` must be at least 2"),
        (
            OneStepNetworkRegressor(20, ridge=1.0, head=nk.GradientDescent(10.0)),
            ValueError,
            "`head` = .* diverges",
        ),
        (RecursiveFeatureMachine(kernel="rbf"), TypeError, "`kernel` must be a kernel"),
        (RecursiveFeatureMachine(rounds=1.5), TypeError, "`rounds` must be an integer"),
        (RecursiveFeatureMachine(ridge=-1.0), ValueError, "`ridge` must be at least 0"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named_by_fit_and_not_before(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(X, Y)
