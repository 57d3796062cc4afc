"""Filters of the algorithms against stepping them, one eigenvalue at a time."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.integrate

import nearkernel as nk

LAM = np.array([1e-9, 0.03, 0.7, 1.9, 3.3])


def stepped(algorithm, lam):
    """The displacement of one parameter with loss 1/2 (sqrt(lam) w - 1)^2, divided by sqrt(lam): the filter."""
    w, velocity = np.zeros_like(lam), np.zeros_like(lam)
    for _ in range(algorithm.steps):
        velocity = algorithm.momentum * velocity - algorithm.lr * (lam * w - np.sqrt(lam))
        w = w + velocity
    return w / np.sqrt(lam)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("steps", [0, 1, 2, 17, 200])
def test_filter_of_gradient_descent_is_what_its_steps_do(momentum, steps):
    algorithm = nk.GradientDescent(lr=0.55, steps=steps, momentum=momentum)
    np.testing.assert_allclose(algorithm.filter(LAM), stepped(algorithm, LAM), rtol=2e-7, atol=1e-12)
    np.testing.assert_allclose(algorithm.decay(LAM), 1 - LAM * algorithm.filter(LAM), atol=1e-12)


@pytest.mark.parametrize("friction", [None, 0.3, 2.0, 2 * math.sqrt(0.7), 9.0])
@pytest.mark.parametrize("time", [0.0, 0.4, 6.0])
def test_filter_of_flows_solves_their_equation(friction, time):
    algorithm = nk.GradientFlow(time, friction)
    for lam, decay in zip(LAM, algorithm.decay(LAM), strict=True):
        if friction is None:
            field, start = (lambda t, p, lam=lam: -lam * p), [1.0]
        else:
            field, start = (lambda t, p, lam=lam: [p[1], -lam * p[0] - friction * p[1]]), [1.0, 0.0]
        found = scipy.integrate.solve_ivp(
            field, (0, max(time, 1e-12)), start, rtol=1e-11, atol=1e-13, method="DOP853"
        )
        assert abs(found.y[0, -1] - decay) < 1e-9


def test_momentum_with_small_steps_is_the_flow_with_friction():
    lr, momentum, time = 1e-6, 1 - 0.8e-3, 5.0
    descent = nk.GradientDescent(lr, steps=round(time / math.sqrt(lr)), momentum=momentum)
    flow = nk.GradientFlow(time, friction=(1 - momentum) / math.sqrt(lr))
    np.testing.assert_allclose(descent.decay(LAM), flow.decay(LAM), atol=5e-3)


def test_ridge_and_direct_optimization():
    np.testing.assert_allclose(nk.Ridge(0.2).filter(LAM), 1 / (LAM + 0.2))
    np.testing.assert_allclose(nk.DirectOptimization().filter(LAM), 1 / LAM)


def test_small_eigenvalues_keep_their_digits():
    lam = np.array([1e-18])
    assert nk.GradientFlow(3.0).filter(lam)[0] == pytest.approx(3.0, rel=1e-15)
    assert nk.GradientDescent(0.1, 30).filter(lam)[0] == pytest.approx(3.0, rel=1e-15)


def test_stability_limits():
    assert nk.GradientDescent(0.5).limit() == 4.0
    assert nk.GradientDescent(0.5, momentum=0.5).limit() == 6.0
    lam = np.array([3.99, 4.01])
    assert (
        np.abs(nk.GradientDescent(0.5, 5000).decay(lam))[0]
        < 1e-3
        < np.abs(nk.GradientDescent(0.5, 5000).decay(lam))[1]
    )


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: nk.GradientDescent(lr=0.0), "`lr` must be greater than 0; got 0.0"),
        (lambda: nk.GradientDescent(lr="fast"), "`lr` must be one number; got 'fast'"),
        (
            lambda: nk.GradientDescent(lr=lambda step: 0.1),
            "a rate that changes, use nk.SGD(lr, batch_size=None",
        ),
        (
            lambda: nk.GradientDescent(lr=[0.1, 0.2]),
            "one number; got \\[0.1, 0.2\\]: for a rate that changes",
        ),
        (lambda: nk.GradientDescent(lr=float("nan")), "`lr` must be a number; got nan"),
        (lambda: nk.GradientDescent(0.1, steps=-1), "`steps` must be at least 0; got -1"),
        (lambda: nk.GradientDescent(0.1, steps=2.5), "`steps` must be an integer; got 2.5"),
        (lambda: nk.GradientDescent(0.1, momentum=1.0), "`momentum` must be at least 0 and below 1; got 1.0"),
        (lambda: nk.GradientFlow(time=-2.0), "`time` must be at least 0; got -2.0"),
        (lambda: nk.GradientFlow(friction=0.0), "`friction` must be greater than 0"),
        (lambda: nk.Ridge(-1.0), "`strength` must be at least 0; got -1.0"),
        (lambda: nk.SGD(0.1, 0, 10), "`batch_size` must be at least 1; got 0"),
    ],
)
def test_bad_algorithms_are_refused_in_one_line(make, message):
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")) as error:
        make()
    assert "\n" not in str(error.value)


def test_algorithms_are_frozen():
    with pytest.raises((AttributeError, dataclasses.FrozenInstanceError)):
        nk.GradientDescent(0.1).lr = 0.2
