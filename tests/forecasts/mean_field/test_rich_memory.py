"""What clouds take is known before they are made: peaks that were measured, and lines for what does not fit."""

import tracemalloc

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._run import memory as _memory
from nearkernel.forecasts import MeanField
from nearkernel.forecasts.mean_field.memory import run_bytes, shared_bytes

RNG = np.random.default_rng(5)


def problem(n, m, widths, algorithm, activation="tanh", **options):
    """A forecast that has been made: its problem, without a run."""
    x = RNG.normal(size=(n + m, 3))
    net = nk.MLP(3, widths, 1, activation, weight_var=1.5, parametrization="mean_field")
    small = nk.MeanField(neurons=2048, scrambles=2, **options)
    law = nk.forecast(net, x[:n], np.sign(x[:n, 0]), algorithm, x[n:], theory=small)
    assert law.ok
    return law._problem


@pytest.mark.parametrize(
    "n, m, widths, algorithm, options",
    [
        (60, 4, (8,), nk.GradientDescent(1e-3, 3), {}),
        (4, 300, (8,), nk.GradientDescent(0.01, 3), {}),
        (5, 3, (8, 8), nk.GradientDescent(0.03, 25), {}),
        (5, 3, (8, 8), nk.GradientDescent(0.02, 25), {"activation": "relu"}),
        (4, 60, (8, 8), nk.GradientDescent(0.03, 10, 0.5), {"dtype": "float32"}),
        (4, 3, (8, 8, 8), nk.GradientFlow(0.2), {}),
    ],
    ids=["many training points", "many new points", "directions", "kinks", "single precision", "flow"],
)
def test_the_peak_of_a_run_is_below_what_was_counted(n, m, widths, algorithm, options):
    """And not below a fifth of it."""
    made = problem(n, m, widths, algorithm, **options)
    made._starts.clear()
    with jax.enable_x64(True):
        tracemalloc.start()
        made.run(lambda: made.system(made.sampled(0, made.tol)), made.driver(), lambda share: None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    counted = shared_bytes(made) + run_bytes(made, made.neurons)
    assert 0.2 * counted < peak < counted


@pytest.fixture
def one_gibibyte(monkeypatch):
    """A machine that has no more."""
    monkeypatch.setattr(_memory, "available_bytes", lambda: 2**30)


@pytest.mark.parametrize(
    "activation, widths, n, m, clouds, message",
    [
        ("tanh", (8, 8), 4, 3, MeanField(neurons=2**40), "clouds of .* neurons at 7 points needs"),
        ("tanh", (8,), 20_000, 1, None, "clouds of 16384 neurons at 20001 points needs"),
        ("relu", (8, 8), 20_000, 1, None, "clouds of 4096 neurons at 20001 points needs"),
        ("linear", (8,), 200_000, 1, None, "clouds of 128 coordinates at 200001 points needs"),
    ],
)
def test_clouds_that_do_not_fit_are_refused(activation, widths, n, m, clouds, message, one_gibibyte):
    net = nk.MLP(1, widths, 1, activation, parametrization="mean_field")
    x = np.linspace(-1.0, 1.0, n + m)[:, None]
    with pytest.raises(MemoryError, match=rf"{message} .* use fewer neurons or points\.") as raised:
        nk.forecast(net, x[:n], x[:n, 0], nk.GradientDescent(0.01, 2), x[n:], theory=clouds)
    assert "\n" not in str(raised.value)


def test_kernels_of_many_points_that_do_not_fit_are_refused(one_gibibyte):
    net = nk.MLP(1, (8,), 1, "tanh", parametrization="mean_field")
    x = np.linspace(-1.0, 1.0, 20_000)[:, None]
    few = MeanField(neurons=64, scrambles=2)
    law = nk.forecast(net, x[:2], x[:2, 0], nk.GradientDescent(0.01, 1), x[2:], theory=few)
    with pytest.raises(MemoryError, match="kernels of 64 neurons at 20000 points needs"):
        law.kernels()
