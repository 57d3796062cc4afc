"""Learning rates over the width: muP keeps the best one, one rate for all parameters does not."""

import importlib
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def experiment(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("gallery_transfer")


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_best_rate_stays_in_mup(experiment, optimizer):
    """Digits, widths 64 and 1024, three networks each: log2 of the best rate, in muP and with one rate for all.

    With gradient descent the best rate of ordinary networks moves only at larger widths or in longer training.
    """
    best = {
        (parametrization, width): experiment.best_rates(
            experiment.losses(width, parametrization, optimizer, 3), optimizer
        )
        for parametrization, width in (("mup", 64), ("mup", 1024), ("standard", 1024))
    }
    drifts = {
        name: (best[name, 1024] - best["mup", 64]).mean()  # at the base width both are the same network
        for name in ("mup", "standard")
    }
    assert abs(drifts["mup"]) < 0.8, drifts
    assert optimizer == "sgd" or drifts["standard"] < -1.4, drifts


def test_the_best_rate_is_that_of_a_parabola(experiment):
    grid = np.log2(experiment.RATES["adam"])
    losses = np.exp(0.3 * (grid - np.array([[-7.3], [-9.8]])) ** 2)
    np.testing.assert_allclose(experiment.best_rates(losses, "adam"), [-7.3, -9.8], atol=1e-9)
