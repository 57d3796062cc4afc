"""Forecasts, laws and averages at the edges: inputs of length 0, other dimensions, one size, many points."""

import warnings

import numpy as np
import pytest
import scipy.stats

import nearkernel as nk
from nearkernel.statistics.width import cost_estimate as _price

X_NEW = np.random.default_rng(0).normal(size=(3, 3))
ZEROS, Y = np.zeros((4, 3)), np.arange(4.0)


@pytest.mark.parametrize("activation", ["relu", "erf"])
@pytest.mark.parametrize(
    "algorithm", [nk.GradientFlow(), nk.GradientFlow(2.0), nk.Ridge(0.1)], ids=["end", "time", "ridge"]
)
def test_what_learns_from_zeros_alone_stays_at_its_start(activation, algorithm):
    """Without biases the outputs at 0 are 0, so no target moves any parameter."""
    net = nk.MLP(3, (8,), activation=activation)
    found = nk.forecast(net, ZEROS, Y, algorithm, X_NEW)
    np.testing.assert_array_equal(found.mean, np.zeros(3))
    np.testing.assert_allclose(found.cov, nk.kernels.NNGP(net)(X_NEW), rtol=1e-12)
    assert found.ok
    there = nk.forecast(net, ZEROS, Y, algorithm, ZEROS[:2])
    np.testing.assert_array_equal(there.mean, np.zeros(2))
    np.testing.assert_array_equal(there.cov, np.zeros((2, 2)))


def test_the_status_says_that_nothing_could_be_learned():
    found = nk.forecast(nk.MLP(3, (8,)), ZEROS, Y, x_new=X_NEW)
    assert "rank 0 < 4" in str(found.status)


def test_one_zero_among_others_changes_nothing_for_them():
    net, x = nk.MLP(3, (8,)), np.random.default_rng(1).normal(size=(4, 3))
    one = nk.forecast(net, np.vstack([x, np.zeros((1, 3))]), np.append(Y, 5.0), x_new=X_NEW)
    other = nk.forecast(net, x, Y, x_new=X_NEW)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    np.testing.assert_allclose(one.cov, other.cov, atol=1e-12)


@pytest.mark.parametrize("theory", [nk.InfiniteWidth(), nk.FiniteWidth()])
def test_new_inputs_of_another_dimension_are_named_as_typed(theory):
    net = nk.MLP(3, (64,), activation="erf", bias_var=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = nk.forecast(net, X_NEW[:2], Y[:2], nk.GradientFlow(1.0), X_NEW[2:], theory=theory)
    with pytest.raises(ValueError, match="`x_new` has 4 features per row; 3 expected"):
        found.predict(np.ones((2, 4)))


def test_a_product_of_one_factor_is_a_chi_square():
    """(N_0,) alone is a network without hidden layers: |theta|^2 = (weight_var / N_0) chi^2 of N_0 degrees."""
    law, at = nk.theory.gaussian_product((3,), 2.0), np.linspace(-2.0, 2.5, 7)
    expected = scipy.stats.chi2(3, scale=2.0 / 3).cdf(np.exp(at))
    np.testing.assert_allclose(law.cdf(at), expected, atol=1e-8)
    assert law.moment(1) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: nk.theory.gaussian_product(3),
            r"`sizes` must be a tuple such as .* got 3: write \(3,\)",
        ),
        (lambda: nk.theory.gaussian_product({3: 4}), "`sizes` must be a tuple such as"),
        (lambda: nk.theory.effective_depth(3, {4: 1}), "`widths` must be a tuple such as"),
        (
            lambda: nk.theory.extrapolated([nk.results.Estimate(1.0, 0.1, 5)], [8]),
            "`widths` must contain at least 2 widths to extrapolate from; got 1",
        ),
        (
            lambda: nk.theory.extrapolated([1.0, 2.0], [8, 16]),
            "`estimates` must be a list of results of nk.measure",
        ),
    ],
)
def test_sizes_are_ordered_and_as_many_as_needed(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_a_long_computation_says_its_price_first(monkeypatch):
    """Sixty points have 487,635 sets of four; a trial of a few of them tells what all will take."""
    monkeypatch.setattr(_price, "_LONG", 0.0)
    monkeypatch.setattr(_price, "_FEW", 0)
    x = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.warns(
        UserWarning, match=r"`order=1` of 5 different inputs averages over 5 sets of four in each of 1 hid"
    ):
        nk.propagate(nk.MLP(3, (8,)), x, order=1)
    with pytest.warns(
        UserWarning, match=r"averages over 70 sets of four in each of 1 .*: about 0 minutes.*use fewer"
    ):
        nk.propagate(nk.MLP(3, (8,), activation="erf"), x, order=1)


@pytest.mark.parametrize("seconds, words", [(120, "2 minutes"), (7300, "2 hours"), (400_000, "5 days")])
def test_a_price_is_in_words(seconds, words):
    assert _price._words(seconds) == words


def test_a_chunk_of_sets_is_as_good_as_all_at_once(monkeypatch):
    from nearkernel.statistics.averages import relu_family as _folded

    x = np.random.default_rng(0).normal(size=(5, 3))
    whole = nk.propagate(nk.MLP(3, (8,)), x, order=1)[2]
    monkeypatch.setattr(_folded, "_TOGETHER", 2)
    parts = nk.propagate(nk.MLP(3, (8,)), x, order=1)[2]
    np.testing.assert_allclose(parts.four_point, whole.four_point, rtol=1e-12)
