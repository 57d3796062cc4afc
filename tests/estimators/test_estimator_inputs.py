"""Dates, huge and tiny numbers, constant targets, the order of rows: estimators predict, or say what is wrong."""

import datetime

import numpy as np
import pytest
from sklearn.base import clone

from nearkernel import estimators
from nearkernel.estimators import (
    AutoClassifier,
    AutoRegressor,
    DeepLinearBayes,
    KernelMachine,
    NearlyKernelClassifier,
    NearlyKernelRegressor,
    NNGPClassifier,
    NNGPRegressor,
    NTKClassifier,
    NTKRegressor,
    OneStepNetworkRegressor,
    QuadraticRegressor,
    RecursiveFeatureMachine,
)

RNG = np.random.default_rng(0)
X, NEW, Y = RNG.normal(size=(40, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=40)
REGRESSORS = (
    AutoRegressor(), DeepLinearBayes(), KernelMachine(), NNGPRegressor(), NTKRegressor(),
    NearlyKernelRegressor(scale=64.0, ensemble=2),
    OneStepNetworkRegressor(width=20), QuadraticRegressor(n_features=10), RecursiveFeatureMachine(),
)  # fmt: skip
CLASSIFIERS = (AutoClassifier(), NNGPClassifier(), NTKClassifier(), NearlyKernelClassifier())
DAYS = np.datetime64("2024-01-01") + np.arange(40)
HOLES = np.where(np.arange(40) == 3, np.datetime64("NaT"), DAYS)


def each(models):
    return pytest.mark.parametrize("model", [pytest.param(m, id=type(m).__name__) for m in models])


def test_no_estimator_is_left_out():
    found = {type(model).__name__ for model in (*REGRESSORS, *CLASSIFIERS)} | {"PrepareTable"}
    assert found == set(estimators.__all__)


@each((*REGRESSORS, *CLASSIFIERS))
@pytest.mark.parametrize(
    "dates",
    (
        DAYS,
        HOLES,
        DAYS - DAYS[0],
        DAYS.astype(object),
        [datetime.datetime(2024, 1, 1)] * 40,
        np.array([*DAYS[:39], None], dtype=object),
    ),
    ids=("days", "NaT", "durations", "objects", "list", "mixed"),
)
def test_dates_are_no_numbers(model, dates):
    """They were counts of their unit, and NaT the smallest of all integers."""
    y = Y if model in REGRESSORS else Y > 0
    table = np.stack([np.asarray(dates)] * 3, axis=1)
    with pytest.raises(TypeError, match=r"`X` must hold numbers; got dates or times such as '.*PrepareTable"):
        clone(model).fit(table, y)
    with pytest.raises(
        TypeError, match=r"`y` must hold numbers; got dates or times such as .*np\.timedelta64"
    ):
        clone(model).fit(X, dates)


def test_dates_among_new_rows_are_refused():
    with pytest.raises(TypeError, match="`X` must hold numbers; got dates or times"):
        NTKRegressor().fit(X, Y).predict(np.stack([DAYS] * 3, axis=1))


@each(REGRESSORS)
def test_values_whose_squares_overflow_are_named(model):
    with pytest.raises(
        ValueError, match=r"`y` holds values up to .*, whose squares overflow: scale it towards 1"
    ):
        clone(model).fit(X, 1e160 * Y)
    with pytest.raises(
        ValueError, match=r"`X` holds values up to .*, whose squares overflow: scale it towards 1"
    ):
        clone(model).fit(1e160 * X, Y)


def test_a_constant_is_predicted():
    for value in (3.0, 0.1, 0.0, -1e-300, 1e140):
        model = AutoRegressor().fit(X, np.full(40, value))
        np.testing.assert_array_equal(model.predict(NEW), np.full(4, value))
        np.testing.assert_array_equal(model.predict_interval(NEW), np.full((4, 2), value))
    both = AutoRegressor().fit(X, np.stack([Y, np.full(40, 0.1)], axis=1)).predict(NEW)
    np.testing.assert_array_equal(both[:, 1], np.full(4, 0.1))
    np.testing.assert_allclose(both[:, 0], AutoRegressor().fit(X, Y).predict(NEW), rtol=1e-9)
    np.testing.assert_allclose(AutoRegressor("log").fit(X, np.full(40, 3.0)).predict(NEW), 3.0, rtol=1e-14)


@pytest.mark.parametrize("target", ("plain", "log", "auto"))
@pytest.mark.parametrize("size", (1e-150, 1e-300))
def test_small_targets_are_learned_as_others(target, size):
    y = np.exp(1.5 * Y)
    usual = AutoRegressor(target).fit(X, y)
    small = AutoRegressor(target).fit(X, size * y)
    assert small.target_ == usual.target_
    np.testing.assert_allclose(small.predict(NEW) / size, usual.predict(NEW), rtol=1e-9)
    np.testing.assert_allclose(small.predict_interval(NEW) / size, usual.predict_interval(NEW), rtol=1e-9)


@pytest.mark.parametrize(
    "model", (AutoRegressor(), NTKRegressor(standardize=True), OneStepNetworkRegressor(width=20))
)
def test_small_inputs_are_learned_as_others(model):
    usual = clone(model).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(clone(model).fit(1e-310 * X, Y).predict(1e-310 * NEW), usual, rtol=1e-6)


def test_ratios_that_overflow_or_vanish_are_named():
    with pytest.raises(ValueError, match="`y` over `X` is too large: the result overflows"):
        DeepLinearBayes().fit(X * 1e-320, Y)
    with pytest.raises(ValueError, match="`y` over `X` is too large: the result overflows"):
        DeepLinearBayes(fit_intercept=False).fit(X[:2] * 1e-200, Y[:2])
    with pytest.raises(ValueError, match="`y` over `X` is too small: its square vanishes"):
        DeepLinearBayes().fit(X[:2], Y[:2] * 1e-200)


@pytest.mark.parametrize("coverage", (None, "0.9", [0.1, 0.9], True))
def test_coverage_is_one_number(coverage):
    model = AutoRegressor().fit(X, Y)
    with pytest.raises(TypeError, match="`coverage` must be one number; got "):
        model.predict_interval(NEW, coverage)


@each(REGRESSORS)
def test_the_order_of_rows_does_not_matter(model):
    y = np.sin(X[:, 0]) + 0.3 * Y
    order = np.random.default_rng(1).permutation(40)
    there, back = (clone(model).fit(X[rows], y[rows]).predict(NEW) for rows in (np.arange(40), order))
    np.testing.assert_allclose(there, back, atol=1e-7)
