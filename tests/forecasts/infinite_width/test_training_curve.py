"""Training outputs and loss over time of a `WideForecast`, and their picture beside that of a run."""

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(1)
X, NEW, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=(6, 2))
NET = nk.MLP(3, (256,), 2, "tanh", 1.5, 0.1)


def expected(law, y):
    """Half the squared bias and half the variance at the training points, from the law there."""
    there = law.predict(X)
    return 0.5 * float(
        ((there.mean - y) ** 2).sum() + there.variance.sum() * (1 if y.ndim == 1 else y.shape[1])
    )


@pytest.mark.parametrize(
    "algorithm",
    [
        nk.GradientDescent(0.1, 30),
        nk.GradientDescent(0.1, 2500, momentum=0.5),
        nk.GradientFlow(3.0),
        nk.GradientFlow(3.0, friction=1.0),
        nk.SGD(0.1, None, 20, schedule=lambda step: 1 / (1 + step)),
    ],
)
@pytest.mark.parametrize("y", [Y[:, 0], Y])
def test_train_and_loss_are_those_of_the_law_at_each_time(algorithm, y):
    net = NET if y.ndim == 2 else nk.MLP(3, (256,), 1, "tanh", 1.5, 0.1)
    law = nk.forecast(net, X, y, algorithm, NEW)
    assert law.train.shape == (len(law.times), *y.shape) and law.loss.shape == law.times.shape
    assert law.times[0] == 0 and law.times[-1] == law.algorithm.end() and not law.train[0].any()
    for place in (0, 7, -1):
        then = law.at(law.times[place])
        np.testing.assert_allclose(law.train[place], then.predict(X).mean, rtol=1e-7, atol=1e-9)
        assert law.loss[place] == pytest.approx(expected(then, y), rel=1e-7)
    assert law.at(law.times[7]).loss[-1] == pytest.approx(law.loss[7], rel=1e-9)


@pytest.mark.slow
def test_times_are_those_at_which_a_run_is_recorded():
    for algorithm in (nk.GradientDescent(0.01, 2500), nk.GradientFlow(0.5)):
        run = nk.simulate(NET, NET.init(0), X, Y, algorithm)
        np.testing.assert_allclose(nk.forecast(NET, X, Y, algorithm, NEW).times, run.history["time"])


def test_training_without_an_end_ends_at_infinity():
    for algorithm in (nk.GradientFlow(), nk.GradientDescent(0.1), nk.Ridge(0.1), nk.DirectOptimization()):
        law = nk.forecast(NET, X, Y, algorithm, NEW)
        assert law.times[-1] == np.inf and np.isfinite(law.loss).all()
        np.testing.assert_allclose(law.train[-1], law.predict(X).mean, atol=1e-8)
        assert law.loss[-1] == pytest.approx(expected(law, Y), abs=1e-8)
    assert (np.diff(nk.forecast(NET, X, Y, nk.GradientFlow(), NEW).loss) <= 1e-12).all()


def test_steps_that_are_too_large_have_an_infinite_loss():
    endless = nk.forecast(NET, X, Y, nk.GradientDescent(10.0), NEW)
    assert not endless.ok and endless.loss[-1] == np.inf
    finite = nk.forecast(NET, X, Y, nk.GradientDescent(10.0, 20), NEW)
    assert (np.diff(finite.loss) > 0).all() and np.isfinite(finite.loss).all()


def test_features_that_see_no_more_leave_the_rest_of_the_loss():
    model = nk.FeatureModel(lambda x: x, in_dim=3, weight_var=0.5)
    law = nk.forecast(model, X, Y[:, 0], nk.GradientFlow(2.0), NEW)
    for place in (0, 50, -1):
        assert law.loss[place] == pytest.approx(expected(law.at(law.times[place]), Y[:, 0]), rel=1e-9)
        np.testing.assert_allclose(law.train[place], law.at(law.times[place]).predict(X).mean, atol=1e-10)


@pytest.mark.slow
def test_the_loss_is_the_mean_of_those_of_trained_networks():
    """48 networks of width 256, within 4 standard errors and 4/width of the mean."""
    descent = nk.GradientDescent(0.1, 20)
    law = nk.forecast(NET, X, Y, descent, NEW)
    record = nk.Record(["outputs"], every=1)

    def curves(params):
        history = nk.simulate(NET, params, X, Y, descent, record).history
        return {"loss": history["loss"], "train": history["outputs"]}

    found = nk.measure(curves, NET, 48, 0)
    for name, whole in (("loss", law.loss), ("train", law.train)):
        theory = whole[: len(found.mean[name])]  # within a program, a run records before each step
        off = np.abs(found.mean[name] - theory) / (4 * found.sem[name] + 4 / 256 * np.abs(theory).max())
        assert off.max() < 1, (name, off.max())


@pytest.mark.slow
def test_one_call_draws_theory_and_training():
    descent = nk.GradientDescent(0.1, 40)
    run = nk.simulate(NET, NET.init(0), X, Y, descent)
    rich = nk.MLP(3, (64,), 2, "tanh", parametrization="mean_field")
    clouds = nk.MeanField(neurons=64, scrambles=2, every=40)
    theories = (
        nk.forecast(NET, X, Y, descent, NEW),
        nk.forecast(NET, X, Y, nk.GradientDescent(0.1), NEW),
        nk.forecast(rich, X, Y, descent, NEW, theory=clouds),
        nk.solve(nk.expand(NET, NET.init(0)), X, Y, descent),
    )
    for theory in theories:
        axes = run.plot(theory=theory)
        trained, dashed = axes.lines
        assert np.array_equal(trained.get_ydata(), run.history["loss"])
        assert dashed.get_xdata().max() <= 40 and np.isfinite(dashed.get_ydata()).all()
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["trained network", "theory"]
        plt.close(axes.figure)
    first = dashed.get_ydata()[0]  # one network and its own linearization begin alike
    assert first == pytest.approx(float(run.history["loss"][0]))


@pytest.mark.parametrize(
    "theory, message",
    [
        (
            lambda: nk.forecast(NET, X, Y, nk.GradientFlow(1.0), NEW),
            "`theory` must count time in steps, like this",
        ),
        (lambda: jax.random.key(0), "`theory` must be a WideForecast, a RichForecast or a solution"),
    ],
)
def test_a_theory_without_such_a_loss_is_refused(theory, message):
    run = nk.simulate(NET, NET.init(0), X, Y, nk.GradientDescent(0.1, 3))
    with pytest.raises((TypeError, ValueError), match=message):
        run.plot(theory=theory())
