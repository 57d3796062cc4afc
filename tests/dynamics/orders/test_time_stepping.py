"""Orders followed at a few moments equal the hierarchy of equations followed step by step."""

import jax
import numpy as np
import pytest
import scipy.integrate

from nearkernel.dynamics.linear.factor import spectrum
from nearkernel.dynamics.orders.clock import (
    FlowClock,
    StepClock,
    chebyshev,
    integral_rule,
    lagrange,
    sum_rule,
)
from nearkernel.dynamics.orders.time_stepping import orders_in_time
from nearkernel.results import FeatureDerivatives
from support.helpers import relative_error
from support.references.quadratic_problems import F, cubic, problem, psi_array, third_array

N = 9
P = problem(N, 3, most=3.0)
PHI, PSI, THIRD = P.x[:, :F], psi_array(P.x), third_array(P.x)
SPECTRUM = spectrum(PHI @ PHI.T)


def moved(clock):
    """w_0, w_1, w_2 at the end of `clock`."""
    with jax.enable_x64(True):
        return orders_in_time(FeatureDerivatives(cubic(1.0), P.x), SPECTRUM, -P.y, clock, 2).weights


def velocity(w, residual, psi=PSI, third=THIRD):
    """-d/dt of (w0, w1, w2), each (f,), by the equations of each order."""
    w0, w1, w2 = w
    r0 = residual + PHI @ w0
    r1 = PHI @ w1 + 0.5 * psi @ w0 @ w0
    r2 = PHI @ w2 + psi @ w0 @ w1 + third @ w0 @ w0 @ w0 / 6
    h1 = r0 @ (psi @ w0)
    h2 = r1 @ (psi @ w0) + r0 @ (psi @ w1) + 0.5 * r0 @ (third @ w0 @ w0)
    return np.stack([PHI.T @ r0, PHI.T @ r1 + h1, PHI.T @ r2 + h2])


@pytest.mark.parametrize("rate", (0.3, 1.0, 1.7))
def test_panels_are_the_steps_one_by_one(rate):
    lr, residual, w = rate / SPECTRUM.lam_max, -P.y, np.zeros((3, F))
    looks = (1, 5, 16, 17, 33, 100, 333, 1500)
    for step in range(1, looks[-1] + 1):
        w = w - lr * velocity(w, residual)
        if step in looks:
            found = moved(StepClock(SPECTRUM.lam, lr, step))
            for one, other in zip(found, w, strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-7 * np.abs(other).max() + 1e-15)


@pytest.mark.parametrize("time", (0.1, 2.0, 30.0))
def test_panels_follow_the_flow(time):
    run = scipy.integrate.solve_ivp(
        lambda t, w: -velocity(w.reshape(3, F), -P.y).ravel(),
        (0, time),
        np.zeros(3 * F),
        rtol=1e-12,
        atol=1e-14,
        method="DOP853",
    )
    expected = run.y[:, -1].reshape(3, F)
    assert max(map(relative_error, moved(FlowClock(SPECTRUM.lam, time)), expected)) < 1e-7


@pytest.mark.parametrize("rate", (0.3, 1.0, 1.7, None))
def test_the_end_of_time_is_the_limit(rate):
    if rate is None:
        clocks = [FlowClock(SPECTRUM.lam, t) for t in (np.inf, 90 / SPECTRUM.lam_min)]
    else:
        lr = rate / SPECTRUM.lam_max
        slowest = min(lr * SPECTRUM.lam_min, 2 - rate)
        clocks = [StepClock(SPECTRUM.lam, lr, t) for t in (np.inf, int(90 / slowest))]
    found, expected = map(moved, clocks)
    assert max(map(relative_error, found, expected)) < 1e-7


def test_one_step_to_the_minimum_has_an_end():
    """Every mode gone after one step: lr * lambda = 1."""
    assert 1 < StepClock(np.array([2.0]), 0.5, np.inf).end < 100


def test_few_moments_see_a_long_time():
    clock = StepClock(np.geomspace(1e-6, 1.0, N), 1.5, np.inf)
    nodes = [len(modes.nodes) for modes, _ in clock.panels()]
    assert clock.end > 1e7 and sum(nodes) < 24 * np.log2(clock.end)


# The rules behind the panels


def test_interpolation_reproduces_polynomials():
    nodes, at = chebyshev(2.0, 5.0, 6), np.linspace(2, 5, 7)
    np.testing.assert_allclose(lagrange(nodes, at) @ nodes**5, at**5, rtol=1e-12)
    np.testing.assert_allclose(lagrange(nodes, nodes), np.eye(6), atol=1e-14)


@pytest.mark.parametrize("length", (1, 16, 17, 40, 1001))
def test_sum_rules_are_sums(length):
    factor = np.array([1.0, 0.999, 0.3, -0.2])
    points, weights = sum_rule(factor, length)
    j = np.arange(length)
    for power in (0, 3, 9):
        terms = (j / length) ** power
        expected = (factor[:, None] ** (length - 1 - j) * terms).sum(axis=1)
        np.testing.assert_allclose(weights @ (points / length) ** power, expected, rtol=1e-10, atol=1e-12)
    assert len(points) <= 25


@pytest.mark.parametrize("length", (0.5, 7.0, 300.0))
def test_integral_rules_are_integrals(length):
    rate = np.array([1e-9, 0.1, 1.0])
    points, weights = integral_rule(rate, length)
    for power in (0, 2, 7):
        expected = [
            scipy.integrate.quad(
                lambda t, r=r, power=power: np.exp(-r * (length - t)) * (t / length) ** power,
                max(0.0, length - 40 / r),
                length,
                epsabs=1e-13,
                epsrel=1e-13,
                limit=200,
            )[0]
            for r in rate
        ]
        np.testing.assert_allclose(weights @ (points / length) ** power, expected, rtol=1e-9)
