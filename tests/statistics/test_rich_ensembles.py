"""`forecast` of mean-field networks against networks that were really trained."""

import functools

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics import Clouds

RNG = np.random.default_rng(31)
X, NEW = RNG.normal(size=(5, 4)), RNG.normal(size=(3, 4))
Y = np.array([1.1, -0.7, 0.2, -1.2, 0.6])
PAIRS, CLASSES = np.stack([Y, Y[::-1]], axis=1), np.eye(3)[[0, 2, 1, 2, 0]]
CLOUDS = Clouds(neurons=1024, scrambles=4)
KEY = jax.random.key(4)
GD = nk.GradientDescent(0.06, 20)


def net_of(widths, y=Y, activation="tanh", **options):
    out = 1 if np.ndim(y) == 1 else y.shape[1]
    return nk.MLP(4, widths, out, activation, weight_var=1.5, parametrization="mean_field", **options)


def trained(model, y, algorithm, loss, params):
    """Outputs at new points of one network after training."""
    factors = model.model.lr_factors()
    run = nk.simulate(
        model, params, X, y, algorithm, loss=loss, lr_factors={"params": factors, "start": factors},
        key=KEY if isinstance(algorithm, nk.SGD) else None,
    )  # fmt: skip
    found = model(run.params, NEW)
    return found[:, 0] if np.ndim(y) == 1 else found


CASES = {
    "gradient descent": (net_of((256,)), Y, GD, "squared"),
    "momentum": (net_of((256,), activation="erf"), Y, nk.GradientDescent(0.02, 20, 0.7), "squared"),
    "two outputs": (net_of((256,), PAIRS), PAIRS, GD, "squared"),
    "cross-entropy": (net_of((256,), CLASSES), CLASSES, nk.GradientDescent(0.15, 20), "cross_entropy"),
    "batches": (net_of((256,)), Y, nk.SGD(0.05, 2, 20), "squared"),
    "weight decay": (net_of((256,)), Y, nk.SGD(0.06, 5, 20, weight_decay=0.4), "squared"),
    "schedule": (net_of((256,)), Y, nk.SGD(0.15, 3, 20, 0.3, 0.1, lambda step: 1 / (1 + step / 5)), "squared"),
    "unequal widths, biases": (net_of((64, 128), bias_var=0.2), Y, GD, "squared"),
    "three layers": (net_of((96, 96, 96)), Y, nk.GradientDescent(0.03, 15), "squared"),
    "two layers, classes": (
        net_of((128, 128), CLASSES), CLASSES, nk.SGD(0.1, 3, 15, 0.5, 0.05), "cross_entropy",
    ),
    "two layers, relu": (net_of((128, 128), activation="relu"), Y, nk.GradientDescent(0.03, 12), "squared"),
}  # fmt: skip
SLOW = ("momentum", "two outputs", "schedule", "unequal widths, biases", "three layers", "two layers, classes",
        "two layers, relu")  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CASES]
)
def test_the_mean_of_trained_networks(name):
    """Over networks with the same batches, within 4 standard errors and the 1/width that theory leaves out."""
    net, y, algorithm, loss = CASES[name]
    model, draws = nk.Scaled(net, 1.0), 96
    options = {"key": KEY} if isinstance(algorithm, nk.SGD) else {}
    law = nk.forecast(model, X, y, algorithm, NEW, loss=loss, clouds=CLOUDS, **options)
    one = functools.partial(trained, model, y, algorithm, loss)
    found = nk.measure(one, model, draws, jax.random.key(5))
    assert law.ok and law.error.max() < 0.03
    error = np.sqrt(law.error**2 + found.sem**2 + (0.3 / net.widths[-1]) ** 2)
    assert np.abs((law.mean - found.mean) / error).max() < 4
    if name == "gradient descent":  # features matter here
        assert np.abs((_lazy(net).mean - found.mean) / error).max() > 5


def _lazy(net):
    return nk.forecast(nk.MLP(4, net.widths, 1, "tanh", weight_var=1.5), X, Y, GD, NEW)


@pytest.mark.slow
@pytest.mark.parametrize("widths, draws", [((1,), 64), ((1, 1), 48)])
def test_one_network_comes_closer_as_the_root_of_its_width(widths, draws):
    """The slope of the distance to the limit over widths 32 to 512 is -1/2, within 4 of its standard errors."""
    sizes, distances, errors = (32, 128, 512), [], []
    law = nk.forecast(nk.Scaled(net_of((64,) * len(widths))), X, Y, GD, NEW, clouds=Clouds(scrambles=4))
    for size in sizes:
        model = nk.Scaled(net_of((size,) * len(widths)))
        squares = nk.measure(
            lambda params, model=model: ((trained(model, Y, GD, "squared", params) - law.mean) ** 2).sum(),
            model, draws, jax.random.key(size),
        )  # fmt: skip
        distances.append(0.5 * np.log(squares.mean))
        errors.append(0.5 * squares.sem / squares.mean)
    steps = np.log(sizes) - np.mean(np.log(sizes))
    slope = steps @ distances / (steps @ steps)
    error = np.sqrt(steps**2 @ np.square(errors)) / (steps @ steps)
    assert error < 0.05 and abs(slope + 0.5) < 4 * error


def test_flow_is_the_limit_of_small_steps():
    """And of networks trained by the flow itself."""
    model, time = nk.Scaled(net_of((64,))), 0.8
    clouds = Clouds(neurons=512, scrambles=2)
    flow = nk.forecast(model, X, Y, nk.GradientFlow(time), NEW, clouds=clouds)
    descents = [
        nk.forecast(model, X, Y, nk.GradientDescent(time / k, k), NEW, clouds=clouds).mean for k in (40, 80)
    ]
    np.testing.assert_allclose(2 * descents[1] - descents[0], flow.mean, atol=2e-3)
    assert np.abs(descents[1] - flow.mean).max() < 0.6 * np.abs(descents[0] - flow.mean).max()
    early = flow.at(0.3)
    again = nk.forecast(model, X, Y, nk.GradientFlow(0.3), NEW, clouds=clouds)
    np.testing.assert_allclose(early.mean, again.mean, atol=1e-4)
