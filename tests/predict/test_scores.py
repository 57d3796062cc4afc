"""Scores of Gaussian answers, against closed forms and Monte Carlo."""

import math

import numpy as np
import pytest
from scipy import stats

from nearkernel._predict import scores


def test_two_classes_have_a_closed_form():
    mean = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 20.0], [-40.0, 3.0]])
    std = np.array([1.0, 0.5, 2.0, 1.0])
    found = scores.log_class_probabilities(mean, std)
    exact = stats.norm.logcdf((mean - mean[:, ::-1]) / (math.sqrt(2) * std[:, None]))
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-13)


def test_class_probabilities_are_shares_of_sampled_answers():
    rng = np.random.default_rng(0)
    mean, std, size = rng.normal(size=(3, 5)), np.array([0.3, 1.0, 4.0]), 200_000
    found = np.exp(scores.log_class_probabilities(mean, std))
    winners = (mean[:, None, :] + std[:, None, None] * rng.normal(size=(3, size, 5))).argmax(axis=2)
    shares = np.stack([np.bincount(row, minlength=5) / size for row in winners])
    sem = np.sqrt(found * (1 - found) / size)
    assert np.all(np.abs(shares - found) <= 4 * sem + 1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)


def test_an_unlikely_class_keeps_its_digits():
    u = np.linspace(-20, 200, 400_001)
    log_integrand = stats.norm.logpdf(u) + 20 * stats.norm.logcdf(u - 100)
    exact = np.logaddexp.reduce(log_integrand) + math.log(u[1] - u[0])
    mean = np.array([[0.0] + [100.0] * 20])
    assert scores.log_class_probabilities(mean, np.ones(1))[0, 0] == pytest.approx(exact, rel=1e-12)


def test_a_row_without_spread_is_certain():
    found = scores.log_class_probabilities(np.array([[1.0, 2.0, 0.0]]), np.zeros(1))
    np.testing.assert_array_equal(np.exp(found), [[0.0, 1.0, 0.0]])


def test_many_classes_are_done_in_pieces(monkeypatch):
    rng = np.random.default_rng(1)
    mean, std = rng.normal(size=(7, 4)), rng.uniform(0.5, 2, size=7)
    whole = scores.log_class_probabilities(mean, std)
    monkeypatch.setattr(scores, "_CHUNK", 1)
    np.testing.assert_allclose(scores.log_class_probabilities(mean, std), whole, rtol=1e-14)


def test_gaussian_log_density_is_that_of_scipy_and_infinite_without_spread():
    mean, std, y = np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([0.5, -1.0])
    np.testing.assert_allclose(
        scores.gaussian_log_density(mean, std, y), stats.norm.logpdf(y, mean, std), rtol=1e-14
    )
    assert not np.isfinite(scores.gaussian_log_density(mean, np.zeros(2), y)).any()
    assert scores.mean_score(scores.gaussian_log_density(mean, np.zeros(2), y)) is None


def test_rmse_r2_and_their_edge_cases():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    assert scores.r2(np.full(4, y.mean()), y) == pytest.approx(0)
    assert scores.r2(y, y) == 1
    assert scores.r2(y, np.ones(4)) is None
    assert scores.rmse(y + 2, y) == scores.Score(2.0, 0.0)
    assert scores.rmse(y, y) == scores.Score(0.0, 0.0)


def test_standard_error_of_rmse_agrees_with_repetition():
    rng = np.random.default_rng(2)
    repeated = [scores.rmse(rng.normal(size=400), np.zeros(400)) for _ in range(400)]
    spread = np.std([score.value for score in repeated])
    assert np.mean([score.sem for score in repeated]) == pytest.approx(spread, rel=0.15)


def test_calibrated_answers_have_small_calibration_error_and_right_coverage():
    rng = np.random.default_rng(3)
    confidence = rng.uniform(0.5, 1, size=50_000)
    right = rng.uniform(size=50_000) < confidence
    assert scores.expected_calibration_error(confidence, right) < 0.01
    assert scores.expected_calibration_error(np.ones(10), np.zeros(10)) == 1
    inside = scores.coverage(np.zeros(50_000), np.full(50_000, 2.0), 2 * rng.normal(size=50_000))
    np.testing.assert_allclose(inside, scores.LEVELS, atol=0.01)


def test_standard_error_of_a_share_is_binomial_and_never_zero():
    assert scores.share_sem(np.array(0.3), 10_000) == pytest.approx(math.sqrt(0.3 * 0.7 / 10_000), rel=1e-3)
    assert scores.share_sem(np.array(0.0), 36) > 0.02
