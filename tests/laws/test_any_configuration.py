"""Invariants of kernels, training, forecasts and estimators, at random valid configurations.

A few configurations in every run, and hundreds among the slow tests; always the same ones.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import nearkernel as nk
from nearkernel import estimators
from support.any_configuration import N, data, definite_kernels, kernels, networks, numbers, regularized

K = nk.kernels


def configurations(count: int):
    """Always the same ones. One that breaks a law is not shrunk, which would compile many others."""
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


def few_and_many(*strategies, few: int = 8, many: int = 60):
    """A law as two tests: of a few configurations, and of many in the slow tests."""

    def both(law):
        @pytest.mark.parametrize("count", [few, pytest.param(many, marks=pytest.mark.slow)])
        def test(count):
            configurations(count)(given(*strategies)(law))()

        test.__doc__ = law.__doc__
        return test

    return both


def close(found, expected, tolerance: float = 1e-9):
    scale = np.abs(expected).max(initial=1e-300)
    assert np.abs(np.asarray(found) - expected).max(initial=0.0) <= tolerance * scale


def permuted(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(N)


def _kernel_law(kernel, points, seed):
    x, x_new, _, _ = points
    whole, order = kernel(x), permuted(seed)
    assert np.array_equal(whole, whole.T)
    eigenvalues = np.linalg.eigvalsh(whole)
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]
    np.testing.assert_allclose(kernel.diag(x), np.diagonal(whole), rtol=1e-12)
    close(kernel(x[order]), whole[np.ix_(order, order)], 1e-11)
    close(kernel(x, x), whole, 1e-10)
    close(kernel(x_new, x), kernel(x, x_new).T, 1e-11)
    both = kernel(np.concatenate([x, x_new]))
    close(both[N:, :N], kernel(x_new, x), 1e-11)
    roots = np.sqrt(np.diagonal(both))
    assert (np.abs(both) <= (1 + 1e-12) * np.outer(roots, roots)).all()
    close(
        np.concatenate([block for _, block in kernel.blocks(x, x_new, memory=600)]), kernel(x, x_new), 1e-11
    )


def _solve_law(kernel, algorithm, points, seed, factor):
    x, x_new, y1, y2 = points
    matrix, order = kernel(x), permuted(seed)
    largest = np.linalg.eigvalsh(matrix)[-1]
    momentum = getattr(algorithm, "momentum", 0.0)
    if isinstance(algorithm, nk.GradientDescent):
        assume(algorithm.lr * largest < 1.8 * (1 + momentum))

    def outputs(y, x=x):
        return nk.solve(kernel, x, y, algorithm).predict(x_new).mean

    one, two = outputs(y1), outputs(y2)
    close(outputs(y1[order], x[order]), one, 1e-8)
    scale = max(np.abs(one).max(), np.abs(factor * two).max())
    assert np.abs(outputs(y1 + factor * y2) - (one + factor * two)).max() <= 1e-8 * scale
    close(outputs(np.stack([y1, y2], axis=1)), np.stack([one, two], axis=1), 1e-8)
    lam, vectors = np.linalg.eigh(matrix)
    if isinstance(algorithm, nk.Ridge):
        direct = kernel(x_new, x) @ np.linalg.solve(matrix + algorithm.strength * np.eye(N), y1)
        close(one, direct, 1e-8)
        iterated = nk.solve(kernel, x, y1, algorithm, solver="cg").predict(x_new).mean
        close(iterated, direct, 1e-4)
    elif not momentum:
        lam = np.maximum(lam, 1e-300)
        if isinstance(algorithm, nk.GradientFlow):
            gain = -np.expm1(-lam * algorithm.time) / lam
        else:
            gain = -np.expm1(algorithm.steps * np.log1p(-algorithm.lr * lam)) / lam
        close(one, kernel(x_new, x) @ (vectors @ (gain * (vectors.T @ y1))), 1e-7)
    zero = outputs(np.zeros(N))
    assert np.array_equal(zero, np.zeros_like(zero))


def _end_law(kernel, points, time):
    x, x_new, y, _ = points
    condition = np.linalg.cond(kernel(x))
    assume(condition < 1e6)
    tolerance = 1e-13 * condition + 1e-10
    direct = kernel(x_new, x) @ np.linalg.solve(kernel(x), y)
    lam_max = np.linalg.eigvalsh(kernel(x))[-1]
    ends = (nk.DirectOptimization(), nk.Ridge(0.0), nk.GradientFlow(), nk.GradientDescent(1.0 / lam_max))
    for algorithm in ends:
        solution = nk.solve(kernel, x, y, algorithm)
        assert solution.ok
        close(solution.predict(x_new).mean, direct, tolerance)
        close(solution.predict(x).mean, y, tolerance)
    late = nk.solve(kernel, x, y, nk.GradientFlow(1e3 * condition / lam_max)).predict(x_new).mean
    close(late, direct, tolerance)
    flow = nk.solve(kernel, x, y, nk.GradientFlow())
    close(
        flow.predict(x_new, time).mean,
        nk.solve(kernel, x, y, nk.GradientFlow(time)).predict(x_new).mean,
        1e-8,
    )
    residuals = [np.linalg.norm(flow.predict(x, t).mean - y) for t in (0.0, time, 2 * time, math.inf)]
    assert all(b <= a + 1e-9 for a, b in itertools.pairwise(residuals))


def _forecast_law(net, time, points, seed, factor):
    x, x_new, y1, y2 = points
    order = permuted(seed)
    algorithm = nk.GradientFlow(time)
    one = nk.forecast(net, x, y1, algorithm, x_new)
    close(one.mean, nk.solve(K.NTK(net), x, y1, algorithm).predict(x_new).mean, 1e-8)
    other = nk.forecast(net, x[order], y1[order], algorithm, x_new)
    close(other.mean, one.mean, 1e-8)
    close(other.cov, one.cov, 1e-8)
    mixed = nk.forecast(net, x, y1 + factor * y2, algorithm, x_new)
    two = nk.forecast(net, x, y2, algorithm, x_new).mean
    scale = max(np.abs(one.mean).max(), np.abs(factor * two).max())
    assert np.abs(mixed.mean - one.mean - factor * two).max() <= 1e-8 * scale
    close(mixed.cov, one.cov, 1e-12)
    assert np.array_equal(one.cov, one.cov.T)
    eigenvalues = np.linalg.eigvalsh(one.cov)
    assert eigenvalues[0] >= -1e-9 * K.NNGP(net).diag(x_new).max()
    np.testing.assert_allclose(one.std**2, np.diagonal(one.cov), rtol=1e-9, atol=1e-12 * eigenvalues[-1])
    start = nk.forecast(net, x, y1, nk.GradientFlow(0.0), x_new)
    assert not start.mean.any()
    close(start.cov, K.NNGP(net)(x_new), 1e-10)


def _estimator_law(net, points, ridge, seed, factor):
    x, x_new, y1, y2 = points
    order = permuted(seed)
    settings = dict(
        depth=len(net.widths), activation=net.activation, weight_var=net.weight_var, bias_var=net.bias_var
    )
    regressor = estimators.NTKRegressor(**settings, algorithm=nk.Ridge(ridge))
    one = regressor.fit(x, y1).predict(x_new)
    middle = y1.mean()  # which a regressor learns first
    close(one, middle + nk.solve(K.NTK(net), x, y1 - middle, nk.Ridge(ridge)).predict(x_new).mean, 1e-8)
    close(regressor.fit(x[order], y1[order]).predict(x_new), one, 1e-8)
    two = regressor.fit(x, y2).predict(x_new)
    scale = max(np.abs(one).max(), np.abs(factor * two).max())
    assert (
        np.abs(regressor.fit(x, y1 + factor * y2).predict(x_new) - one - factor * two).max() <= 1e-8 * scale
    )
    mean, std = estimators.NNGPRegressor(**settings, noise=ridge).fit(x, y1).predict(x_new, return_std=True)
    close(mean, middle + nk.solve(K.NNGP(net), x, y1 - middle, nk.Ridge(ridge)).predict(x_new).mean, 1e-8)
    assert (std >= 0).all() and (std <= (1 + 1e-9) * np.sqrt(K.NNGP(net).diag(x_new) + ridge)).all()
    machine = estimators.KernelMachine(K.NTK(net), nk.Ridge(ridge))
    close(machine.fit(x, y1 - middle).predict(x_new) + middle, one, 1e-8)
    labels = np.where(y1 > np.median(y1), "up", "down")
    classifier = estimators.NTKClassifier(**settings, algorithm=nk.Ridge(ridge))
    chances = classifier.fit(x, labels).predict_proba(x_new)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
    assert ((chances >= 0) & (chances <= 1)).all()
    swapped = classifier.fit(x, np.where(labels == "up", "a", "b")).predict_proba(x_new)
    np.testing.assert_allclose(swapped, chances[:, ::-1], atol=1e-8)


test_kernels = few_and_many(kernels(), data(), st.integers(0, 9))(_kernel_law)
test_solutions = few_and_many(kernels(), regularized(), data(), st.integers(0, 9), numbers(-3, 3))(_solve_law)
test_the_end_of_training = few_and_many(definite_kernels(), data(), numbers(0.1, 5.0))(_end_law)
test_forecasts = few_and_many(networks(), numbers(0.1, 5.0), data(), st.integers(0, 9), numbers(-3, 3))(
    _forecast_law
)
test_estimators = few_and_many(networks(), data(), numbers(0.05, 2.0), st.integers(0, 9), numbers(-3, 3))(
    _estimator_law
)
