"""The regressor of deep linear networks keeps scikit-learn's contract, and says what the exact posterior says."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import nearkernel as nk
from nearkernel.estimators import DeepLinearBayes
from support.helpers import points
from support.references.contract import fulfils_the_contract_of_scikit_learn

X, Y, NEW = points(5, 9), points(5, 1, 1)[:, 0] + 3, points(4, 9, 2)


def test_scikit_learns_own_checks_pass():
    fulfils_the_contract_of_scikit_learn(DeepLinearBayes())


def test_without_intercept_it_is_the_exact_posterior():
    model = DeepLinearBayes((4, 7), 1.3, fit_intercept=False).fit(X, Y)
    law = nk.theory.deep_linear_posterior(X, Y, (4, 7), 1.3)
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, law.mean(NEW), rtol=1e-12)
    np.testing.assert_allclose(std, law.std(NEW), rtol=1e-12)
    np.testing.assert_allclose(model.quantile(NEW, [0.1, 0.9]), law.quantile(NEW, [0.1, 0.9]), rtol=1e-10)
    expected = nk.theory.deep_linear_log_evidence(X, Y, (4, 7), 1.3)
    assert model.log_evidence_ == pytest.approx(expected, abs=1e-11)
    assert model.effective_depth_ == pytest.approx(5 * (1 / 4 + 1 / 7))


def test_it_interpolates_with_certainty_and_moves_with_the_data():
    model = DeepLinearBayes((6,)).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, Y)
    np.testing.assert_array_equal(std, 0.0)
    moved = DeepLinearBayes((6,)).fit(X + 2, Y - 50)
    np.testing.assert_allclose(moved.predict(NEW + 2, True)[0], model.predict(NEW) - 50)
    np.testing.assert_allclose(moved.predict(NEW + 2, True)[1], model.predict(NEW, True)[1])
    np.testing.assert_allclose(model.quantile(NEW, 0.5), model.predict(NEW))


def test_more_points_than_features_give_least_squares():
    x, y = points(30, 4), points(30, 1, 1)[:, 0]
    model = DeepLinearBayes().fit(x, y)
    mean, std = model.predict(NEW[:, :4], return_std=True)
    np.testing.assert_allclose(mean, LinearRegression().fit(x, y).predict(NEW[:, :4]))
    np.testing.assert_allclose(std, 0, atol=1e-12)


def test_the_best_variance_is_that_of_the_evidence():
    model = DeepLinearBayes((4,), "best", fit_intercept=False).fit(X, Y)
    assert model.prior_var_ == pytest.approx(nk.theory.best_prior_var(X, Y, (4,)))
    for factor in (0.9, 1.1):
        other = DeepLinearBayes((4,), factor * model.prior_var_, fit_intercept=False).fit(X, Y)
        assert other.log_evidence_ < model.log_evidence_


def test_constant_targets_are_certain_in_a_narrow_network_only():
    wide, narrow = (DeepLinearBayes((n,), "best").fit(X, np.full(5, 3.0)) for n in (40, 2))
    assert np.all(wide.predict(NEW, True)[1] > 0) and np.isfinite(wide.log_evidence_)
    np.testing.assert_array_equal(narrow.predict(NEW, True)[1], 0.0)
    np.testing.assert_array_equal(narrow.quantile(NEW, 0.9), 3.0)
    assert narrow.log_evidence_ == np.inf


@pytest.mark.parametrize(
    "options, message",
    [
        ({"prior_var": "good"}, "`prior_var` must be a positive number or \"best\"; got 'good'"),
        ({"prior_var": 0.0}, "`prior_var` must be greater than 0; got 0.0"),
        ({"widths": (3, 0)}, "`widths` must be at least 1; got 0"),
    ],
)
def test_bad_input_gets_one_clear_line(options, message):
    with pytest.raises(ValueError, match=message):
        DeepLinearBayes(**options).fit(X, Y)
