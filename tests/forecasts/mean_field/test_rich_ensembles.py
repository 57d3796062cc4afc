"""`forecast` of mean-field networks against networks that were really trained."""

import functools

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.forecasts import MeanField
from support.cases import few

RNG = np.random.default_rng(31)
X, NEW = RNG.normal(size=(5, 4)), RNG.normal(size=(3, 4))
Y = np.array([1.1, -0.7, 0.2, -1.2, 0.6])
PAIRS, CLASSES = np.stack([Y, Y[::-1]], axis=1), np.eye(3)[[0, 2, 1, 2, 0]]
CLOUDS = MeanField(neurons=1024, scrambles=4)
KEY = jax.random.key(4)
GD = nk.GradientDescent(0.06, 20)


def net_of(widths, y=Y, activation="tanh", **options):
    out = 1 if np.ndim(y) == 1 else y.shape[1]
    return nk.MLP(4, widths, out, activation, weight_var=1.5, parametrization="mean_field", **options)


def trained(model, y, algorithm, loss, params):
    """Outputs at new points of one network after training."""
    key = KEY if isinstance(algorithm, nk.SGD) else None
    run = nk.simulate(model, params, X, y, algorithm, loss=loss, key=key)
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
    "name", few([pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CASES], 1)
)
def test_the_mean_of_trained_networks(name):
    """Over networks with the same batches, within 4 standard errors and the 1/width that theory leaves out."""
    net, y, algorithm, loss = CASES[name]
    model, draws = nk.Scaled(net, 1.0), 96
    options = {"key": KEY} if isinstance(algorithm, nk.SGD) else {}
    law = nk.forecast(model, X, y, algorithm, NEW, loss=loss, theory=CLOUDS, **options)
    one = functools.partial(trained, model, y, algorithm, loss)
    found = nk.measure(one, model, draws, jax.random.key(5))
    assert law.ok and law.error.max() < 0.03
    error = np.sqrt(law.error**2 + found.sem**2 + (0.3 / net.widths[-1]) ** 2)
    assert np.abs((law.mean - found.mean) / error).max() < 4
    if name == "gradient descent":  # features matter here
        assert np.abs((_lazy(net).mean - found.mean) / error).max() > 5


def _lazy(net):
    return nk.forecast(nk.MLP(4, net.widths, 1, "tanh", weight_var=1.5), X, Y, GD, NEW)


BOTH = np.concatenate([X, NEW])


def seen(model, params):
    """Outputs at new points of one network after training, its last kernel of features, and its tangent kernel."""
    net, factors = model.model, model.model.lr_factors()
    end = nk.simulate(model, params, X, Y, GD).params
    hidden = net.activation(net.layer_outputs(end["params"], BOTH)[-2])
    gradients = jax.jacrev(lambda at: net(at, BOTH)[:, 0])(end["params"])
    flat = [leaf.reshape(len(BOTH), -1) for leaf in jax.tree.leaves(gradients)]
    ntk = sum(rate * g @ g.T for rate, g in zip(jax.tree.leaves(factors), flat, strict=True))
    return {
        "outputs": model(end, NEW)[:, 0],
        "features": hidden @ hidden.T / hidden.shape[1],
        "ntk": ntk,
    }


@pytest.mark.slow
@pytest.mark.parametrize("activation, depth, draws", [("tanh", 1, 96), ("relu", 1, 96), ("tanh", 2, 64)])
def test_one_network_comes_closer_as_the_root_of_its_width(activation, depth, draws):
    """Slopes of the distances to the limit over widths 32 to 512 are -1/2, within 4 of their standard errors."""
    sizes, logs, errors = (32, 128, 512), [], []
    law = nk.forecast(nk.Scaled(net_of((64,) * depth, activation=activation)), X, Y, GD, NEW)
    kernels = law.kernels()
    limit = {"outputs": law.mean, "features": kernels.features[-1], "ntk": kernels.ntk}
    for size in sizes:
        model = nk.Scaled(net_of((size,) * depth, activation=activation))

        def squares(params, model=model):
            return jax.tree.map(lambda one, two: ((one - two) ** 2).sum(), seen(model, params), limit)

        found = nk.measure(squares, model, draws, jax.random.key(size))
        logs.append([0.5 * np.log(found.mean[name]) for name in limit])
        errors.append([0.5 * found.sem[name] / found.mean[name] for name in limit])
    steps = np.log(sizes) - np.mean(np.log(sizes))
    slope = steps @ np.array(logs) / (steps @ steps)
    error = np.sqrt(steps**2 @ np.square(errors)) / (steps @ steps)
    assert error.max() < 0.06 and np.abs((slope + 0.5) / error).max() < 4


def test_flow_is_the_limit_of_small_steps():
    model, time = nk.Scaled(net_of((64,))), 0.8
    clouds = MeanField(neurons=512, scrambles=2)
    flow = nk.forecast(model, X, Y, nk.GradientFlow(time), NEW, theory=clouds)
    descents = [
        nk.forecast(model, X, Y, nk.GradientDescent(time / k, k), NEW, theory=clouds).mean for k in (40, 80)
    ]
    np.testing.assert_allclose(2 * descents[1] - descents[0], flow.mean, atol=2e-3)
    assert np.abs(descents[1] - flow.mean).max() < 0.6 * np.abs(descents[0] - flow.mean).max()
    early = flow.at(0.3)
    again = nk.forecast(model, X, Y, nk.GradientFlow(0.3), NEW, theory=clouds)
    np.testing.assert_allclose(early.mean, again.mean, atol=1e-4)


@pytest.mark.parametrize(
    "widths, draws",
    [((64,), 48), *(pytest.param(each, 96, marks=pytest.mark.slow) for each in ((256,), (128, 128)))],
)
def test_flow_is_that_of_trained_networks(widths, draws):
    """The mean of networks that the flow itself has trained, within 4 standard errors and 1/width."""
    model, flow = nk.Scaled(net_of(widths)), nk.GradientFlow(0.8)
    law = nk.forecast(model, X, Y, flow, NEW, theory=CLOUDS)
    found = nk.measure(functools.partial(trained, model, Y, flow, "squared"), model, draws, jax.random.key(6))
    assert law.ok and law.error.max() < 0.03
    error = np.sqrt(law.error**2 + found.sem**2 + (0.3 / widths[-1]) ** 2)
    assert np.abs((law.mean - found.mean) / error).max() < 4
    if draws > 48:  # features matter here
        lazy = nk.forecast(nk.MLP(4, widths, 1, "tanh", weight_var=1.5), X, Y, flow, NEW)
        assert np.abs((lazy.mean - found.mean) / error).max() > 5
