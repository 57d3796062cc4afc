"""The page of regression: training that stays with the flow, and networks beside the theory."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.lab import Watch
from nearkernel.lab.experiments import regression
from nearkernel.lab.experiments.regression import Regression
from support.answers import curves


def test_training_that_would_take_too_long_or_diverge_is_cut_and_said():
    steep = Regression(activation="relu", depth=3, weight_var=4.0, width=16)
    for chosen, cut in ((steep, True), (Regression(activation="relu", time=1.0), False)):
        net, x, _ = chosen._problem()
        time, steps, notes = chosen._plan(net, x)
        largest = np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1]
        assert largest * time / steps < 0.5 and steps <= 20_000
        assert (time < chosen.time) == bool(notes) == cut and all(f"{time:.3g}" in note for note in notes)


@pytest.mark.slow
def test_trained_networks_scatter_around_the_mean_of_wide_ones():
    chosen = Regression(time=3.0, width=128, points="-1,0.5;0.2,-0.3;1,0.4")
    answer = chosen.check(Watch())
    shown = curves(answer.pictures[0])
    wide, trained = shown["NTK"], shown["their mean"]
    single = np.array([part.y for part in answer.pictures[0].parts if part.name == "single networks"])
    assert trained.y.dtype == np.float64 and len(single) == 50
    np.testing.assert_allclose(single.mean(axis=0), trained.y)
    sem = single.std(axis=0, ddof=1) / 50**0.5
    assert np.all(np.abs(trained.y - wide.y) < 4 * sem + 0.02)  # a width of 128 is not infinite


@pytest.mark.slow
def test_a_check_of_steep_networks_ends_with_numbers(monkeypatch):
    monkeypatch.setattr(regression, "_MOST_PARTS", 20)
    chosen = Regression(activation="relu", depth=3, weight_var=4.0, width=16, time=300.0)
    answer = chosen.check(Watch())
    assert "at most 2000 steps" in answer.notes[-1]
    assert all(np.isfinite(part.y).all() for part in answer.pictures[0].parts)
