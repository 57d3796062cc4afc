"""Laws of the rich limit: what its error holds, the first effect of richness, and what training conserves."""

import warnings

import jax
import numpy as np
import pytest
import scipy.integrate

import nearkernel as nk
from nearkernel.forecasts import MeanField
from nearkernel.forecasts.mean_field import limit as _rich_limit
from support.cases import few

RNG = np.random.default_rng(21)
X, NEW = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
Y = np.array([1.0, -0.6, 0.4])
VARIANCE = 1.5


def network(widths=(64,), activation="tanh", parametrization="mean_field"):
    return nk.MLP(3, widths, 1, activation, weight_var=VARIANCE, parametrization=parametrization)


def rich(net, richness, clouds, lr=0.06, steps=20, x=X, y=Y, new=NEW):
    """With the learning rate of the network that is not scaled."""
    descent = nk.GradientDescent(lr * richness**2, steps)
    return nk.forecast(nk.Scaled(net, 1 / richness), x, y, descent, new, theory=clouds)


def test_the_tolerance_is_part_of_the_error(monkeypatch):
    """A large one moves the outputs by many errors of sampling, but not by many errors."""
    net, few = network((64, 64)), {"neurons": 2048, "scrambles": 12, "every": 20}
    coarse = MeanField(tol=0.4, **few)
    exact, whole = (rich(net, 2.5, clouds, lr=0.04) for clouds in (MeanField(tol=0.01, **few), coarse))
    monkeypatch.setattr(_rich_limit, "_SMALLER", 1.0)  # the run that checks it repeats the first one
    sampling = rich(net, 2.5, coarse, lr=0.04)
    np.testing.assert_array_equal(whole.mean, sampling.mean)
    assert (whole.error > sampling.error).all() and (whole.train_error[-1] > sampling.train_error[-1]).all()
    off = np.abs(whole.mean - exact.mean)
    assert (off / np.hypot(sampling.error, exact.error)).max() > 4
    assert (off / np.hypot(whole.error, exact.error)).max() < 4


def test_first_effect_of_richness_on_features_that_bend():
    """f = f_lazy + richness^2 c: c of one hidden tanh layer is width times the cubic part of `forecast(order=1)`."""
    lazy, descent = network((40,), parametrization="ntk"), nk.GradientDescent(0.06, 20)
    x, y, new = X[:2], Y[:2], NEW[:1]

    def ddntk(y):
        return (
            40 * nk.forecast(lazy, x, y, descent, new, theory=nk.FiniteWidth()).contributions["ddntk"].mean[0]
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the whole correction need not be small
        expected = (ddntk(2 * y) - 2 * ddntk(y)) / 6
    start = nk.forecast(lazy, x, y, descent, new).mean[0]
    clouds, gammas = MeanField(neurons=2**15, scrambles=8, every=20), (0.15, 0.3)
    laws = [rich(network(), gamma, clouds, x=x, y=y, new=new) for gamma in gammas]
    slopes = [(law.mean[0] - start) / gamma**2 for law, gamma in zip(laws, gammas, strict=True)]
    errors = [law.error[0] / gamma**2 for law, gamma in zip(laws, gammas, strict=True)]
    found, error = (4 * slopes[0] - slopes[1]) / 3, np.hypot(4 * errors[0], errors[1]) / 3
    assert error < 0.1 * abs(expected) and abs(found - expected) < 4 * error


@pytest.mark.parametrize("widths", [(64,), (32, 64)])
def test_descent_changes_readouts_by_errors_and_outputs(widths):
    """Of any activation <a^2> changes by -2 lr e.f + lr^2 C_W e.Phi e / richness^2 in every step."""
    richness, lr, steps = 1.4, 0.06, 6
    law = rich(network(widths), richness, MeanField(neurons=512, scrambles=2), lr, steps)
    sizes, terms = [], []
    for step in range(steps + 1):
        layer = law.neurons(len(widths), step)
        after, readout = np.tanh(layer.preactivations[:, :3]), layer.readout[:, 0]
        outputs = richness**-1 * VARIANCE**0.5 * (layer.weights * readout) @ after
        features = (layer.weights * after.T) @ after
        assert np.abs(outputs - law.train[step]).max() < 4 * law.train_error[step].max() + 1e-12
        e, rate = outputs - Y, lr * richness**2
        sizes.append(layer.weights @ readout**2)
        terms.append((-2 * rate * e @ outputs, rate**2 * VARIANCE * e @ features @ e / richness**2))
    # Of two layers, what is below the tolerance may become known between a step and the look at it.
    atol = 1e-12 if len(widths) == 1 else 1e-5
    np.testing.assert_allclose(np.diff(sizes), np.sum(terms[:-1], axis=1), rtol=0, atol=atol)
    assert all(second > 0.02 * abs(first) for first, second in terms[1:-1])  # it cannot be left out


@pytest.mark.parametrize("widths", few([(64,), pytest.param((64, 64))], 1))
def test_flow_changes_readouts_by_errors_and_outputs(widths):
    """Of any activation d<a^2>/dt = -2 e.f, for the limit and for networks that were trained."""
    clouds = MeanField(neurons=4096 if len(widths) == 1 else 1024, scrambles=2)
    model, time = nk.Scaled(network(widths), 1 / 1.4, centered=False), 1.5
    law = nk.forecast(model, X, Y, nk.GradientFlow(time), NEW, theory=clouds)
    start, end = (law.neurons(len(widths), at) for at in (0, time))
    gained = [each.weights @ each.readout[:, 0] ** 2 for each in (start, end)]
    power = -2 * ((law.train - Y) * law.train).sum(axis=1)
    expected = scipy.integrate.simpson(power, x=law.times)
    assert abs(expected) > 0.1 and gained[1] - gained[0] == pytest.approx(expected, rel=0.01)
    net = model.model
    params = net.init(jax.random.key(2))
    record = nk.Record({"outputs": "outputs", "size": lambda p: (p[-1]["weight"] ** 2).mean()}, every=0.01)
    run = nk.simulate(model, params, X, Y, nk.GradientFlow(time), record)
    outputs, size = (np.asarray(run.history[name]) for name in ("outputs", "size"))
    power = -2 * ((outputs[..., 0] - Y) * outputs[..., 0]).sum(axis=1)
    expected = scipy.integrate.simpson(power, x=np.asarray(run.history["time"]))
    assert size[-1] - size[0] == pytest.approx(expected, rel=1e-4)
