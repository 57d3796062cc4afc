"""Long after the end of training nothing moves any more: rounding must not push it, and no time is spent on it."""

import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(0)
X, Y, NEW = RNG.normal(size=(4, 3)), RNG.normal(size=4), RNG.normal(size=(2, 3))
NET = nk.MLP(3, (16,), activation="tanh", bias_var=0.1)
LATE = (1e12, 1e16, 1e60, 1e140)


@pytest.mark.filterwarnings("ignore:.*the correction is not small")
@pytest.mark.parametrize("algorithm", [nk.GradientFlow(), nk.GradientDescent(0.2)], ids=["flow", "descent"])
def test_orders_at_late_times_are_those_of_the_end(algorithm):
    solution = nk.solve(nk.expand(NET, NET.init(0), 3), X, Y, algorithm, order=2)
    end = solution.predict(NEW).terms
    for time in LATE:
        for late, expected in zip(solution.predict(NEW, time).terms, end, strict=True):
            np.testing.assert_allclose(late, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


def test_a_residual_that_stays_goes_on_pushing():
    """Four points of two features cannot be fitted; what is left of them bends a third weight, ever further."""
    x = X * np.array([1.0, 1.0, 0.0])
    model = nk.QuadraticModel(lambda x: x, lambda x, u: (x[:, :1] ** 2) * u[jnp.array([2, 1, 0])], 0.01)
    early, late = (nk.solve(model, x, Y, nk.GradientFlow(t), order=1).weights[1][0, 2] for t in (1e4, 1e5))
    assert abs(early) > 1.0 and late == pytest.approx(10 * early, rel=0.01)


@pytest.mark.parametrize(
    "algorithm",
    [
        nk.GradientFlow(),
        nk.GradientDescent(0.2),
        nk.GradientDescent(0.2, momentum=0.5),
        nk.GradientFlow(friction=0.5),
    ],
    ids=["flow", "descent", "momentum", "friction"],
)
def test_order_zero_at_late_times_is_the_end(algorithm):
    solution = nk.solve(nk.kernels.NTK(NET), X, Y, algorithm)
    for time in LATE:
        np.testing.assert_allclose(solution.predict(NEW, time).mean, solution.predict(NEW).mean, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:the correction is")
@pytest.mark.parametrize("algorithm", [nk.GradientFlow(), nk.GradientDescent(0.2)], ids=["flow", "descent"])
def test_a_forecast_at_late_times_is_that_of_the_end(algorithm):
    for theory in (nk.InfiniteWidth(), nk.FiniteWidth()):
        end = nk.forecast(NET, X, Y, algorithm, NEW, theory=theory)
        for time in LATE:
            np.testing.assert_allclose(end.at(time).mean, end.mean, rtol=1e-9)
            np.testing.assert_allclose(end.at(time).cov, end.cov, atol=1e-10)
