"""Scaling laws against draws and closed exponents."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.forecasts import KernelTask, power_law_task
from nearkernel.theory import compute_optimal, population_law, scaling_exponents


@pytest.mark.parametrize("features", [30, 120])
def test_time_and_features_with_endless_data(features):
    index, rng = np.arange(1, 801.0), np.random.default_rng(3)
    task, times = KernelTask(index**-1.5, index**-2.0), np.array([1.0, 10.0, 200.0])
    drawn = []
    for _ in range(8):
        mix = np.sqrt(task.eigenvalues)[:, None] * rng.normal(size=(len(index), features)) / features**0.5
        vectors, values, _ = np.linalg.svd(mix, full_matrices=False)
        inside = vectors.T @ np.sqrt(task.power)
        rest = task.power.sum() - inside @ inside
        drawn.append([(inside**2 * np.exp(-2 * values**2 * t)).sum() + rest for t in times])
    mean, sem = np.mean(drawn, axis=0), np.std(drawn, axis=0, ddof=1) / 8**0.5
    assert np.all(np.abs(population_law(task, times, features) - mean) < 4 * sem + 0.01 * mean)


def test_all_features_are_the_plain_flow():
    task = power_law_task(1.5, 2.0, noise=0.1, modes=500)
    exact = task.noise + (task.power * np.exp(-2 * task.eigenvalues * 7.0)).sum()
    assert population_law(task, [7.0])[0] == pytest.approx(exact, rel=1e-12)
    assert population_law(task, [7.0], features=1e9)[0] == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize(("decay", "source"), [(1.5, 2.0), (1.3, 3.5), (2.0, 1.6)])
def test_slopes_approach_the_closed_exponents(decay, source):
    exponents, task = scaling_exponents(decay, source), power_law_task(decay, source)
    slope = lambda pair, ratio: np.log(pair[0] / pair[1]) / np.log(ratio)
    assert slope(population_law(task, [1000.0, 4000.0]), 4) == pytest.approx(exponents.time, rel=0.04)
    many = [population_law(task, [1e12], p)[0] - task.noise for p in (300, 1200)]
    assert slope(many, 4) == pytest.approx(exponents.features, rel=0.1)


def test_compute_has_a_frontier():
    task, exponents = power_law_task(1.5, 2.0), scaling_exponents(1.5, 2.0)
    best = compute_optimal(task, [1e3, 1e4, 1e5])
    assert exponents.compute == pytest.approx(0.4) and best.slope == pytest.approx(0.4, rel=0.06)
    np.testing.assert_allclose(best.features, [61, 162, 419], rtol=0.1)
    for share in (0.5, 2.0):
        other = population_law(task, [best.times[1] / share], share * best.features[1])[0]
        assert other > best.error[1]


def test_the_decay_of_a_users_own_spectrum():
    rng, index = np.random.default_rng(0), np.arange(1, 2001.0)
    x = rng.normal(size=(400, 2000)) * index**-0.75 * 2000**0.5
    curve = nk.learning_curve(nk.kernels.Linear(), x, x[:, 0], nk.Ridge(1.0), sizes=[100])
    np.testing.assert_allclose(curve.spectral_decay, 1.5, rtol=0.15)


def test_bad_arguments_cost_one_line():
    with pytest.raises(ValueError, match="`source` must be greater than 1"):
        scaling_exponents(2.0, 0.5)
    with pytest.raises(TypeError, match=r"`task` must be an nk\.forecasts\.KernelTask"):
        compute_optimal(1.5, [1e3])
    with pytest.raises(ValueError, match="`budgets` must be a vector of numbers greater than 1"):
        compute_optimal(power_law_task(1.5, 2.0), [0.5])
    with pytest.raises(ValueError, match="`times` must be a vector of numbers greater than 0"):
        population_law(power_law_task(1.5, 2.0), [0.0])
