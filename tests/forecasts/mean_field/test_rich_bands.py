"""`spread(width)` of mean-field networks against networks that were really trained: c/width, and a mean that is near.

Networks are centered, so that they start at 0 as the limit does. Their distances from the limit have a mean of order
1/width, which the bands leave out, and a variance c/width.
"""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.forecasts import MeanField
from nearkernel.forecasts.mean_field.limit import NARROW

RNG = np.random.default_rng(77)
X, NEW = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
Y = np.array([0.8, -1.2, 0.5, 1.0])
STEPS, RATES = 25, {1: 0.08, 2: 0.05}


def model_of(activation: str, width: int, depth: int) -> nk.Scaled:
    return nk.Scaled(nk.MLP(3, (width,) * depth, 1, activation, weight_var=1.5, parametrization="mean_field"))


def limit(activation: str, depth: int, clouds: MeanField):
    descent = nk.GradientDescent(RATES[depth], STEPS)
    return nk.forecast(model_of(activation, 64, depth), X, Y, descent, NEW, theory=clouds)


def distances(activation: str, depth: int, width: int, draws: int, mean: np.ndarray) -> nk.results.Estimate:
    """Distances of trained networks from `mean`, and their squares."""
    model = model_of(activation, width, depth)

    def observable(params):
        descent = nk.GradientDescent(RATES[depth], STEPS)
        run = nk.simulate(model, params, X, Y, descent)
        away = model(run.params, NEW)[:, 0] - mean
        return {"first": away, "second": away**2}

    return nk.measure(observable, model, draws, jax.random.key(width))


def scaled(found: nk.results.Estimate, width: int) -> tuple[np.ndarray, np.ndarray]:
    """width times the variance, with its standard error."""
    variance = found.mean["second"] - found.mean["first"] ** 2
    return width * variance, width * found.sem["second"]


def bias(found: dict[int, nk.results.Estimate], own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """b of distances b/width with its standard error, a weighted fit over widths; `own`: errors of the limit."""
    inverse = 1 / np.array(list(found))[:, None]
    first = np.array([each.mean["first"] for each in found.values()])
    weight = 1 / (np.array([each.sem["first"] for each in found.values()]) ** 2 + own**2)
    total = (weight * inverse**2).sum(axis=0)
    return (weight * inverse * first).sum(axis=0) / total, total**-0.5


def test_bands_of_narrow_networks():
    law = limit("tanh", 1, MeanField(neurons=2048, scrambles=4, every=STEPS))
    for width in (32, 64):
        found, band = distances("tanh", 1, width, 400, law.mean), law.spread(width)
        value, error = scaled(found, width)
        constant = width * band.variance
        error = np.sqrt(error**2 + (constant * 2 * band.error) ** 2 + (constant / width) ** 2)
        assert band.draws == 0 and np.abs((value - constant) / error).max() < 4
        np.testing.assert_array_less(np.abs(found.mean["first"]), 0.3 * band.std)


CASES = {
    "one tanh": (
        "tanh",
        1,
        MeanField(neurons=2**15, scrambles=8, every=STEPS),
        None,
        (6000, 4000, 1500, 800),
    ),
    "one relu": (
        "relu",
        1,
        MeanField(neurons=2**15, scrambles=8, every=STEPS),
        1000,
        (6000, 4000, 1500, 800),
    ),
    "two tanh": ("tanh", 2, MeanField(neurons=2**13, scrambles=8, every=STEPS), 500, (6000, 3000, 400, 120)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_bands_over_widths(name):
    """At widths 32 to 1024 the mean is off by b/width, and the variance is (c + d/width)/width, within 4 errors.

    c of one hidden tanh layer is computed. That of others is measured at width 256, and is c + d/256.
    """
    activation, depth, clouds, drawn, draws = CASES[name]
    law = limit(activation, depth, clouds)
    found = {
        width: distances(activation, depth, width, size, law.mean)
        for width, size in zip((32, 128, 512, 1024), draws, strict=True)
    }
    slope, error = bias(found, law.error)
    for width, each in found.items():
        apart = each.mean["first"] - slope / width
        assert np.abs(apart / np.hypot(each.sem["first"], law.error)).max() < 4
    band = law.spread(NARROW, drawn)
    assert np.abs(slope / error).max() > 4  # the bias is there, and was resolved
    np.testing.assert_array_less(np.abs(slope) / NARROW, 0.3 * band.std)  # and small beside the band
    at = 1 / np.array(list(found))
    values, errors = np.moveaxis([scaled(each, width) for width, each in found.items()], 1, 0)
    here = np.array([1 / NARROW if drawn else 0.0, 1.0])
    for point in range(len(NEW)):
        line, cov = np.polyfit(at, values[:, point], 1, w=1 / errors[:, point], cov="unscaled")
        assert np.abs((values[:, point] - np.polyval(line, at)) / errors[:, point]).max() < 4
        constant = NARROW * band.variance[point]
        assert abs(here @ line - constant) < 4 * np.hypot(
            (here @ cov @ here) ** 0.5, constant * 2 * band.error
        )
