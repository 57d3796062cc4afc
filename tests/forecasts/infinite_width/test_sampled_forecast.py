"""Forecasts for losses other than the squared one: against the closed form, and against networks that are trained."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support.cases import few

RNG = np.random.default_rng(8)
X, NEW = RNG.normal(size=(5, 3)), RNG.normal(size=(2, 3))
LABELS, Y = np.array([0, 2, 1, 2, 0]), RNG.normal(size=5)
NET = nk.MLP(3, (256,), 3, "tanh", weight_var=1.5, bias_var=0.2)
DESCENT = nk.GradientDescent(0.1, 30)


@dataclasses.dataclass(frozen=True)
class LogCosh(nk.dynamics.AbstractLoss):
    """A loss that the library does not know: one class."""

    def __call__(self, z, y):
        return jnp.sum(jnp.logaddexp(z - y, y - z))


def agree(samples, found, sigmas=4.0):
    """Means and variances of drawn `samples` (S, ...) and of a forecast, each within `sigmas` standard errors."""
    size, variance = len(samples), samples.var(axis=0, ddof=1)
    fourth = ((samples - samples.mean(axis=0)) ** 4).mean(axis=0)
    sem = np.hypot(np.sqrt(variance / size), found.sem)
    spread = np.sqrt((fourth - variance**2) * (1 / size + 1 / len(found.samples)))
    assert (np.abs(samples.mean(axis=0) - found.mean) <= sigmas * sem).all()
    assert (np.abs(variance - found.variance) <= sigmas * spread).all()


def trained_outputs(net, size, key, loss, y):
    """Outputs at NEW of `size` networks that were really trained."""

    def outputs(params):
        run = nk.simulate(net, params, X, y, DESCENT, loss=loss)
        return net(run.params, NEW)

    run = jax.jit(lambda keys: jax.lax.map(lambda k: outputs(net.init(k)), keys, batch_size=8))
    with nk.precision("float32"):
        return np.asarray(run(jax.random.split(jax.random.key(key), size)), dtype=np.float64)


@pytest.mark.parametrize(
    "algorithm", few([nk.GradientFlow(0.3), nk.GradientDescent(0.02, 20, momentum=0.7)], 1)
)
def test_the_squared_loss_as_a_function_is_the_closed_form(algorithm):
    exact = nk.forecast(NET, X, Y, algorithm, NEW)
    found = nk.forecast(
        NET,
        X,
        Y,
        algorithm,
        NEW,
        loss=lambda z, y: 0.5 * jnp.sum((z - y) ** 2),
        key=1,
        theory=nk.InfiniteWidth(samples=4000),
    )
    assert found.ok and found.samples.shape == (4000, 2) and found.cov.shape == (2, 2)
    assert (np.abs(found.mean - exact.mean) <= 4 * exact.std / np.sqrt(4000)).all()
    scale = np.sqrt((np.outer(exact.variance, exact.variance) + exact.cov**2) / 4000)
    assert (np.abs(found.cov - exact.cov) <= 4 * scale).all()
    low, high = found.quantile([0.1587, 0.8413])
    np.testing.assert_allclose((high - low) / 2, exact.std, rtol=0.06)


@pytest.mark.merge
def test_cross_entropy_of_trained_networks():
    found = nk.forecast(
        NET, X, LABELS, DESCENT, NEW, loss="cross_entropy", key=0, theory=nk.InfiniteWidth(samples=4000)
    )
    agree(trained_outputs(NET, 200, 5, "cross_entropy", LABELS), found)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.votes.sum(axis=1), 1.0)
    one_hot = nk.forecast(
        NET,
        X,
        np.eye(3)[LABELS],
        DESCENT,
        NEW,
        loss="cross_entropy",
        key=0,
        theory=nk.InfiniteWidth(samples=50),
    )
    same = nk.forecast(
        NET, X, LABELS, DESCENT, NEW, loss="cross_entropy", key=0, theory=nk.InfiniteWidth(samples=50)
    )
    np.testing.assert_array_equal(one_hot.samples, same.samples)


@pytest.mark.slow
@pytest.mark.parametrize("loss, y", [("cross_entropy", LABELS), (LogCosh(), RNG.normal(size=(5, 3)))])
def test_two_thousand_trained_networks(loss, y):
    net = nk.MLP(3, (2048,), 3, "tanh", weight_var=1.5, bias_var=0.2)
    found = nk.forecast(net, X, y, DESCENT, NEW, loss=loss, key=0, theory=nk.InfiniteWidth(samples=40_000))
    networks = trained_outputs(net, 2000, 6, loss, y)
    agree(networks, found)
    if loss == "cross_entropy":  # class probabilities are those of the ensemble
        each = np.exp(networks - np.logaddexp.reduce(networks, axis=-1, keepdims=True))
        sem = each.std(axis=0) / np.sqrt(len(each))
        assert (np.abs(each.mean(axis=0) - found.probabilities) <= 4 * 1.03 * sem).all()
        votes = (networks.argmax(axis=-1)[..., None] == np.arange(3)).mean(axis=0)
        sem = np.sqrt(found.votes * (1 - found.votes) / 2000) + 1e-3
        assert (np.abs(votes - found.votes) <= 4 * sem).all()


def test_times_and_inputs_are_of_the_same_networks():
    found = nk.forecast(
        NET,
        X,
        LABELS,
        nk.GradientDescent(0.1, 40),
        NEW,
        loss="cross_entropy",
        key=3,
        theory=nk.InfiniteWidth(samples=300),
    )
    earlier = nk.forecast(
        NET,
        X,
        LABELS,
        nk.GradientDescent(0.1, 10),
        NEW,
        loss="cross_entropy",
        key=3,
        theory=nk.InfiniteWidth(samples=300),
    )
    np.testing.assert_allclose(found.at(10).samples, earlier.samples, atol=1e-12)
    np.testing.assert_allclose(
        found.at(0.0).variance, np.repeat(nk.kernels.NNGP(NET).diag(NEW)[:, None], 3, axis=1), rtol=0.35
    )
    there = found.predict(X)  # on the training set nothing is left to draw: two draws agree
    np.testing.assert_allclose(there.samples, there.predict(X).samples, atol=1e-5)
    assert (
        there.probabilities[np.arange(5), LABELS].min()
        > earlier.predict(X).probabilities[np.arange(5), LABELS].min()
    )
    assert found.sample(7, 0).shape == (7, 2, 3)
    np.testing.assert_array_equal(found.sample(7, 0), found.sample(7, 0))


@pytest.mark.merge
def test_kernels_and_features_are_sampled_too():
    kernel = nk.kernels.RBF(1.0)
    pair = nk.forecast(
        (0.5 * kernel, kernel),
        X,
        Y,
        nk.GradientFlow(1.0),
        NEW,
        loss="huber",
        key=0,
        theory=nk.InfiniteWidth(samples=20),
    )
    assert pair.ok and pair.mean.shape == (2,)
    model = nk.FeatureModel(lambda x: jnp.concatenate([x, x**2], axis=1), weight_var=0.3)
    found = nk.forecast(
        model,
        X,
        Y,
        nk.GradientDescent(0.01, 20),
        NEW,
        loss=LogCosh(),
        key=0,
        theory=nk.InfiniteWidth(samples=20),
    )
    assert found.ok and found.samples.shape == (20, 2)


def test_a_rate_that_is_too_large_is_a_status():
    wild = nk.forecast(
        NET,
        X,
        Y,
        nk.GradientDescent(50.0, 40),
        NEW,
        loss=lambda z, y: jnp.sum((z - y) ** 2) / 2,
        key=0,
        theory=nk.InfiniteWidth(samples=20),
    )
    assert not wild.ok and wild.status == nk.StatusKind.diverged


@pytest.mark.parametrize(
    "change, message",
    [
        ({"key": None}, "`key` must be a key .*; it is missing"),
        (
            {"theory": nk.FiniteWidth()},
            r"needs the loss 'squared'; got 'cross_entropy'\. These fit: nk\.InfiniteWidth",
        ),
        ({"algorithm": None}, "needs a finite `time` or `steps`"),
        ({"algorithm": nk.Ridge(0.1)}, "Ridge has no time: for a loss other than 'squared'"),
        ({"loss": "hinge"}, "`loss` must be one of 'squared', 'cross_entropy', 'huber'.*got 'hinge'"),
        ({"y": np.array([0, 1, 2, 3, -1])}, "`y` as labels must be integers from 0 to 3.*got -1 to 3"),
        ({"y": Y}, "needs integer labels in `y`.*got one column of float64"),
        ({"y": np.eye(3)[LABELS] * 2}, "rows of `y` that are probabilities"),
    ],
)
def test_bad_input_gets_one_clear_line(change, message):
    arguments = dict(
        problem=NET, x=X, y=LABELS, algorithm=DESCENT, x_new=NEW, loss="cross_entropy", key=0,
        theory=nk.InfiniteWidth(samples=4),
    )  # fmt: skip
    with pytest.raises((ValueError, TypeError), match=message) as error:
        nk.forecast(**(arguments | change))
    assert "\n" not in str(error.value)


def test_what_a_sample_cannot_say():
    with pytest.raises(ValueError, match="`samples` must be at least 2; got 1"):
        nk.InfiniteWidth(samples=1)
    found = nk.forecast(NET, X, Y, DESCENT, NEW, loss="huber", key=0, theory=nk.InfiniteWidth(samples=4))
    with pytest.raises(ValueError, match=r"`probabilities` need classes: .* not 'huber'"):
        _ = found.probabilities
    with pytest.raises(ValueError, match=r"`q` must be from 0 to 1; got 1\.5"):
        found.quantile(1.5)
    with pytest.raises(ValueError, match="`time` must be at least 0; got -1"):
        found.at(-1)
    with pytest.raises(ValueError, match="`delta` must be greater than 0; got 0"):
        nk.dynamics.Huber(0)


def test_labels_that_no_output_stands_for_are_refused():
    params = NET.init(0)
    with pytest.raises(
        ValueError, match="`y` as labels must be integers from 0 to 2, one per output; got 0 to 3"
    ):
        nk.simulate(NET, params, X, np.arange(5) % 4, nk.GradientDescent(0.1, 2), loss="cross_entropy")


def test_one_class_is_a_loss_everywhere():
    params = NET.init(0)
    y = RNG.normal(size=(5, 3))
    run = nk.simulate(NET, params, X, y, nk.GradientDescent(1e-5, 20), loss=LogCosh())
    theory = nk.solve(nk.expand(NET, params), X, y, nk.GradientDescent(1e-5, 20), loss=LogCosh())
    assert isinstance(theory, nk.results.FunctionSpaceSolution)
    start, end = (np.asarray(NET(p, NEW)) for p in (params, run.params))
    np.testing.assert_allclose(end - start, theory.predict(NEW).mean - start, rtol=1e-2, atol=1e-7)
    assert LogCosh() == LogCosh() and nk.dynamics.Huber(1.0) != nk.dynamics.Huber(2.0)
    labeled = nk.solve(nk.kernels.RBF(1.0), X, LABELS, DESCENT, loss="cross_entropy")
    assert labeled.predict(NEW).mean.shape == (2, 3)
    with pytest.raises(ValueError, match="other losses do not define a distribution of labels"):
        nk.geometry.Fisher(NET, params, X, y, LogCosh())
