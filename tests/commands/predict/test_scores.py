"""Scores of Gaussian answers, against closed forms and Monte Carlo."""

import math

import numpy as np
import pytest
from scipy import stats

from nearkernel._commands.predict import scores


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
    inside = scores.coverage(
        scores.gaussian_intervals(np.zeros(50_000), np.full(50_000, 2.0)), 2 * rng.normal(size=50_000)
    )
    np.testing.assert_allclose(inside, scores.LEVELS, atol=0.01)


def test_standard_error_of_a_share_is_binomial_and_never_zero():
    assert scores.share_sem(np.array(0.3), 10_000) == pytest.approx(math.sqrt(0.3 * 0.7 / 10_000), rel=1e-3)
    assert scores.share_sem(np.array(0.0), 36) > 0.02
