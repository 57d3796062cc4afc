"""Probabilities that an output is the largest, against closed forms and Monte Carlo."""

import math

import numpy as np
import pytest
from scipy import stats

from nearkernel.forecasts.outputs import class_probabilities as _largest_output
from nearkernel.forecasts.outputs.class_probabilities import log_class_probabilities


def test_two_classes_have_a_closed_form():
    mean = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 20.0], [-40.0, 3.0]])
    std = np.array([1.0, 0.5, 2.0, 1.0])
    found = log_class_probabilities(mean, std)
    exact = stats.norm.logcdf((mean - mean[:, ::-1]) / (math.sqrt(2) * std[:, None]))
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-13)


def test_class_probabilities_are_shares_of_sampled_answers():
    rng = np.random.default_rng(0)
    mean, std, size = rng.normal(size=(3, 5)), np.array([0.3, 1.0, 4.0]), 200_000
    found = np.exp(log_class_probabilities(mean, std))
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
    assert log_class_probabilities(mean, np.ones(1))[0, 0] == pytest.approx(exact, rel=1e-12)


def test_a_row_without_spread_is_certain():
    found = log_class_probabilities(np.array([[1.0, 2.0, 0.0]]), np.zeros(1))
    np.testing.assert_array_equal(np.exp(found), [[0.0, 1.0, 0.0]])


def test_many_classes_are_done_in_pieces(monkeypatch):
    rng = np.random.default_rng(1)
    mean, std = rng.normal(size=(7, 4)), rng.uniform(0.5, 2, size=7)
    whole = log_class_probabilities(mean, std)
    monkeypatch.setattr(_largest_output, "_CHUNK", 1)
    np.testing.assert_allclose(log_class_probabilities(mean, std), whole, rtol=1e-14)
