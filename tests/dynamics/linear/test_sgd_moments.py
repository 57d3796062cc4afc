"""SGD on linear models: mean and covariance against every path it can take, and against runs that are drawn."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import nearkernel as nk

RNG = np.random.default_rng(5)
X, NEW = RNG.normal(size=(3, 2)), RNG.normal(size=(2, 2))
Y = RNG.normal(size=(3, 2))


def phi(x):
    return jnp.concatenate([x, jnp.sin(2 * x)], axis=1)


PHI, PHI_NEW = (np.concatenate([x, np.sin(2 * x)], axis=1) for x in (X, NEW))
MODEL = nk.FeatureModel(phi, 2, 2)


def weights_of_a_step(sgd, n):
    """All weights of the points that a step can have, with their probabilities."""
    if sgd.batch_size is None:
        return [(1.0, np.ones(n))]
    if sgd.batches == "fixed":
        chosen = list(itertools.combinations(range(n), sgd.batch_size))
        return [(1 / len(chosen), np.isin(np.arange(n), rows) * n / sgd.batch_size) for rows in chosen]
    p = sgd.batch_size / n
    masks = itertools.product((0, 1), repeat=n)
    return [(math.prod(p if m else 1 - p for m in mask), np.array(mask) / p) for mask in masks]


def every_path(sgd, features, new, y, start_var=0.0, anchor=None):
    """Mean and covariance of the outputs at `new`, flattened, over all batches of all steps, noise and starts.

    Weights (out, f) and velocities are one vector; along a path it is Gaussian, and its moments are exact.
    """
    out, f = y.shape[1], features.shape[1]
    hessian = lambda w: np.kron(np.eye(out), (features.T * w) @ features)
    source = lambda w: ((features.T * w) @ y).T.ravel()
    size, zero = out * f, np.zeros((out * f, out * f))
    rates = sgd.lr * (np.ones(sgd.steps) if sgd.schedule is None else np.array(sgd.schedule))
    eye, keep = np.eye(size), 1 - sgd.lr * sgd.weight_decay
    anchored = sgd.decay_to == "start"
    # the state: weights, velocity, weights at the start
    mean = np.zeros(3 * size)
    if anchor is not None:
        mean[:size] = mean[2 * size :] = anchor.ravel()
    cov = np.zeros((3 * size, 3 * size))
    for i, j in itertools.product((0, 2), repeat=2):
        cov[i * size : (i + 1) * size, j * size : (j + 1) * size] = start_var * eye
    reader = np.zeros((len(new) * out, 3 * size))
    reader[:, :size] = np.einsum("mf,op->mopf", new, np.eye(out)).reshape(len(new) * out, size)
    total, first, second = 0.0, 0.0, 0.0
    for path in itertools.product(weights_of_a_step(sgd, len(features)), repeat=sgd.steps):
        m, c, probability = mean, cov, math.prod(p for p, _ in path)
        for rate, (_, w) in zip(rates, path, strict=True):
            velocity = np.hstack([-rate * hessian(w), sgd.momentum * eye, zero])
            pull = (1 - keep) * eye if anchored else zero
            move = np.vstack(
                [np.hstack([keep * eye, zero, pull]) + velocity, velocity, np.hstack([zero, zero, eye])]
            )
            push = rate * np.concatenate([source(w), source(w), np.zeros(size)])
            noise = np.zeros_like(cov)
            noise[: 2 * size, : 2 * size] = np.kron(np.ones((2, 2)), (rate * sgd.noise) ** 2 * eye)
            m, c = move @ m + push, move @ c @ move.T + noise
        z = reader @ m
        total, first = total + probability, first + probability * z
        second = second + probability * (np.outer(z, z) + reader @ c @ reader.T)
    assert total == pytest.approx(1.0)
    return first.reshape(len(new), out), (second - np.outer(first, first)).reshape(
        len(new), out, len(new), out
    )


ALGORITHMS = {
    "batches": nk.SGD(0.11, 2, 3),
    "one point": nk.SGD(0.05, 1, 3, momentum=0.4),
    "bernoulli": nk.SGD(0.05, 2, 2, batches="bernoulli", momentum=0.3),
    "noise": nk.SGD(0.1, None, 4, noise=0.7, momentum=0.6, weight_decay=0.5),
    "all": nk.SGD(0.1, 2, 3, 0.3, 0.6, schedule=[1.0, 0.5, 2.0], decay_to="start", noise=0.4),
    "all to zero": nk.SGD(0.1, 1, 3, 0.5, 0.6, schedule=np.array([0.3, 1.5, 1.0]), noise=0.4),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_moments_are_those_of_every_path(name):
    sgd = ALGORITHMS[name]
    solution = nk.solve(MODEL, X, Y, sgd)
    assert isinstance(solution, nk.results.SGDSolution) and solution.ok
    found = solution.predict(NEW)
    mean, cov = every_path(sgd, PHI, PHI_NEW, Y)
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(found.cov, cov, atol=1e-12)
    np.testing.assert_allclose(found.std**2, np.einsum("aibi->aib", cov)[[0, 1], :, [0, 1]], atol=1e-12)
    alone = nk.solve(nk.FeatureModel(phi), X, Y[:, 0], sgd).predict(NEW)
    np.testing.assert_allclose(alone.cov, cov[:, 0, :, 0], atol=1e-12)
    fitted, spread = every_path(sgd, PHI, PHI, Y)
    np.testing.assert_allclose(solution.residual(), fitted - Y, atol=1e-12)
    loss = 0.5 * (((fitted - Y) ** 2).sum() + np.trace(spread.reshape(6, 6)))
    assert solution.loss() == pytest.approx(loss, rel=1e-10)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_forecasts_average_over_starts_too(name):
    sgd = ALGORITHMS[name]
    found = nk.forecast(nk.FeatureModel(phi, 2, 2, weight_var=0.8), X, Y, sgd, NEW)
    mean, cov = every_path(sgd, PHI, PHI_NEW, Y, start_var=0.8)
    assert isinstance(found, nk.results.StochasticForecast) and found.ok
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(found.cov, cov, atol=1e-12)
    variances = np.diagonal(cov.reshape(4, 4)).reshape(2, 2)
    for each in (found, found.predict(NEW)):  # with and without the matrix
        np.testing.assert_allclose(each.variance, variances, atol=1e-12)
        np.testing.assert_allclose(each.std, np.sqrt(variances), atol=1e-7)
    assert found.sample(5, 0).shape == (5, 2, 2) and found.predict(X).mean.shape == (3, 2)
    if sgd.schedule is None:
        np.testing.assert_allclose(found.at(1).mean, every_path(sgd.at(1), PHI, PHI_NEW, Y)[0], atol=1e-12)


def test_an_expanded_model_decays_from_its_own_parameters():
    """A linear model that starts elsewhere than at 0, all outputs of one set of parameters."""
    model = nk.from_function(lambda w, x: (phi(x) @ w)[:, None] + 0.3)
    w0, y = np.array([0.5, -0.2, 0.8, 0.1]), Y[:, 0]
    for sgd in (ALGORITHMS["all"], ALGORITHMS["all to zero"], nk.SGD(0.1, None, 3, weight_decay=0.6)):
        found = nk.solve(nk.expand(model, w0), X, y, sgd).predict(NEW)
        mean, cov = every_path(sgd, PHI, PHI_NEW, y[:, None] - 0.3, anchor=w0)
        np.testing.assert_allclose(found.mean, mean[:, 0] + 0.3, atol=1e-12)
        if sgd.random:
            np.testing.assert_allclose(found.cov, cov[:, 0, :, 0], atol=1e-12)
            np.testing.assert_allclose(found.std**2, np.diagonal(cov[:, 0, :, 0]), atol=1e-12)
        else:
            assert found.cov is None and found.std is None


def test_outputs_of_shared_parameters_enter_a_batch_together():
    model = nk.from_function(lambda w, x: jnp.stack([phi(x) @ w, phi(x)[:, ::-1] @ w], axis=1))
    sgd, w0 = nk.SGD(0.06, 1, 2, momentum=0.2), np.zeros(4)
    found = nk.solve(nk.expand(model, w0), X, Y, sgd).predict(NEW)
    both = np.stack([PHI, PHI[:, ::-1]], axis=1)
    ends = []
    for rows in itertools.product(range(3), repeat=2):
        w, v = w0, w0
        for row in rows:
            v = 0.2 * v - 0.06 * 3 * both[row].T @ (both[row] @ w - Y[row])
            w = w + v
        ends.append(np.stack([PHI_NEW @ w, PHI_NEW[:, ::-1] @ w], axis=1).ravel())
    np.testing.assert_allclose(found.mean.ravel(), np.mean(ends, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.cov.reshape(4, 4), np.cov(np.array(ends).T, bias=True), atol=1e-12)
    np.testing.assert_allclose(found.std.ravel(), np.std(ends, axis=0), atol=1e-7)


SCHEDULES = {
    "robbins-monro": nk.SGD(0.5, None, 60, schedule=lambda step: 1 / (1 + step)),
    "array": nk.SGD(0.05, None, 30, momentum=0.5, schedule=np.linspace(2, 0, 30)),
    "decay": nk.SGD(0.05, None, 30, weight_decay=0.7),
    "to start": nk.SGD(0.05, None, 30, 0.3, 0.7, schedule=lambda step: 0.97**step, decay_to="start"),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_simulate_equals_solve(name):
    sgd, w0 = SCHEDULES[name], np.asarray(RNG.normal(size=(2, 4)))
    for start in (np.zeros((2, 4)), w0):
        problem = MODEL if not start.any() else nk.expand(MODEL, start)
        theory = nk.solve(problem, X, Y, sgd)
        run = nk.simulate(MODEL, start, X, Y, sgd)
        assert run.ok and theory.ok and run.steps == sgd.steps
        np.testing.assert_allclose(theory.predict(NEW).mean, PHI_NEW @ run.params.T, atol=1e-11)
    slow = nk.solve(MODEL, X, Y, sgd, loss=lambda z, y: 0.5 * jnp.sum((z - y) ** 2))
    np.testing.assert_allclose(
        slow.predict(NEW).mean, nk.solve(MODEL, X, Y, sgd).predict(NEW).mean, atol=1e-11
    )


def test_robbins_monro_averages_the_noise_away():
    """Rates 1/t make of SGD on z = w the mean of what it has seen: its variance falls as 1/t."""
    y = np.array([1.0, 2.0, 6.0, -1.0])
    model, x = nk.FeatureModel(lambda x: 1.0 + 0.0 * x), np.ones((4, 1))
    for steps in (1, 10, 300):
        sgd = nk.SGD(0.25, 1, steps, schedule=lambda step: 1 / (1 + step))
        found = nk.solve(model, x, y, sgd).predict(x[:1])
        assert found.mean[0] == pytest.approx(y.mean()) and found.cov[0, 0] == pytest.approx(y.var() / steps)


def test_schedules_are_filters_and_have_a_limit():
    sgd = SCHEDULES["to start"]
    kernel = nk.kernels.RBF(1.0)
    solution = nk.solve(kernel, X, Y, sgd)
    lam, vectors = np.linalg.eigh(kernel(X))
    g, u = np.zeros(3), np.zeros(3)
    for step in range(30):
        u = 0.3 * u + 0.05 * 0.97**step * (1 - lam * g)
        g = (1 - 0.05 * 0.7) * g + u
    np.testing.assert_allclose(
        solution.predict(NEW).mean, kernel(NEW, X) @ (vectors * g) @ vectors.T @ Y, atol=1e-12
    )
    assert solution.predict(NEW, time=0).mean.any() == np.False_
    pair = nk.forecast((kernel, kernel), X, Y, sgd, NEW)
    np.testing.assert_allclose(pair.mean, solution.predict(NEW).mean, atol=1e-12)
    np.testing.assert_allclose(pair.at(7).mean, solution.predict(NEW, time=7).mean, atol=1e-12)
    constant = nk.SGD(0.1, None, 500, schedule=lambda step: 1.0 + 0.0 * step).spectral()
    assert constant.limit() == pytest.approx(20.0, rel=1e-6)
    wild = nk.solve(kernel, X, Y, nk.SGD(5.0, None, 50, schedule=lambda step: 1.0 + 0.0 * step))
    assert not wild.ok and "the residual along lambda_max" in wild.status.message
    late = nk.solve(kernel, X, Y, nk.SGD(5.0, None, 500, schedule=lambda step: 1 / (1 + step)))
    assert late.ok  # the first steps overshoot, later ones do not


def test_full_batches_are_gradient_descent():
    full = nk.SGD(0.05, None, 20, momentum=0.4)
    plain = nk.GradientDescent(0.05, 20, momentum=0.4)
    np.testing.assert_array_equal(nk.solve(MODEL, X, Y, full).predict(NEW).mean,
                                  nk.solve(MODEL, X, Y, plain).predict(NEW).mean)  # fmt: skip
    runs = [nk.simulate(MODEL, np.zeros((2, 4)), X, Y, a).params for a in (full, plain)]
    np.testing.assert_allclose(*runs, atol=1e-14)


def drawn_outputs(sgd, size, key):
    def run(key):
        return PHI_NEW @ nk.simulate(MODEL, jnp.zeros((2, 4)), X, Y, sgd, key=key).params.T

    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(key), size)))


@pytest.mark.parametrize(
    "sgd",
    [
        nk.SGD(0.05, 1, 12, 0.4, 0.5, schedule=lambda step: 0.95**step, noise=0.8, decay_to="start"),
        pytest.param(
            nk.SGD(0.05, 2, 12, batches="bernoulli", weight_decay=0.3, noise=0.3), marks=pytest.mark.slow
        ),
    ],
)
def test_drawn_runs_have_these_moments(sgd):
    z = drawn_outputs(sgd, 4000, 1).reshape(4000, -1)
    found = nk.solve(MODEL, X, Y, sgd).predict(NEW)
    cov = found.cov.reshape(4, 4)
    assert (np.abs(z.mean(axis=0) - found.mean.ravel()) <= 4 * np.sqrt(np.diagonal(cov) / 4000)).all()
    centered = z - z.mean(axis=0)
    products = np.einsum("si,sj->sij", centered, centered)
    assert (np.abs(products.mean(axis=0) - cov) <= 4 * products.std(axis=0) / np.sqrt(4000)).all()


def test_stationary_moments_are_the_end_of_the_recursion():
    phi5, y = RNG.normal(size=(5, 2)), RNG.normal(size=5)
    for batches in ("fixed", "bernoulli"):
        sgd = nk.SGD(0.02, 2, 1500, batches=batches)
        law = nk.theory.sgd_stationary(phi5, y, sgd)
        found = nk.solve(nk.FeatureModel(lambda x: x), phi5, y, sgd).predict(np.eye(2))
        np.testing.assert_allclose(found.mean, law.mean, atol=1e-9)
        np.testing.assert_allclose(found.cov, law.covariance, atol=1e-9)


def test_a_second_moment_that_grows_is_a_status():
    top = np.linalg.eigvalsh(PHI @ PHI.T)[-1]
    wild = nk.solve(MODEL, X, Y, nk.SGD(1.9 / top, 1, 200))
    assert not wild.ok and wild.status == nk.StatusKind.diverged


def test_optax_trains_in_simulate():
    start, steps = np.asarray(RNG.normal(size=(2, 4))), 25
    ours = nk.simulate(MODEL, start, X, Y, nk.Adam(0.02, steps))
    theirs = nk.simulate(MODEL, start, X, Y, nk.Optax(optax.adam(0.02), steps))
    np.testing.assert_allclose(theirs.params, ours.params, atol=1e-10)
    sgd = nk.simulate(MODEL, start, X, Y, nk.Optax(optax.sgd(0.01, momentum=0.8), steps))
    descent = nk.simulate(MODEL, start, X, Y, nk.GradientDescent(0.01, steps, momentum=0.8))
    np.testing.assert_allclose(sgd.params, descent.params, atol=1e-12)
    clipped = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(0.1, 50)))
    run = nk.simulate(MODEL, start, X, Y, nk.Optax(clipped, 50, batch_size=2), key=0)
    assert run.ok and run.history["loss"][-1] < run.history["loss"][0]
    factors = np.full((2, 4), 0.5)
    half = nk.simulate(MODEL, start, X, Y, nk.Optax(optax.sgd(0.01), steps), lr_factors=factors)
    same = nk.simulate(MODEL, start, X, Y, nk.GradientDescent(0.01, steps), lr_factors=factors)
    np.testing.assert_allclose(half.params, same.params, atol=1e-12)


NET = nk.MLP(2, (4,))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.SGD(0.1, 2, 3, schedule="slow"), "`schedule` must be a function of the step, or an array.*'slow'"),
        (lambda: nk.SGD(0.1, 2, 3, schedule=[1.0, 0.5]), "`schedule` must have one factor per step, 3; got 2"),
        (lambda: nk.SGD(0.1, 2, 3, schedule=[1.0, -0.5, 1]), "factors that are at least 0; .*smallest value -0.5"),
        (lambda: nk.SGD(0.1, 2, 3, decay_to="one"), "`decay_to` must be one of 'zero', 'start'; got 'one'"),
        (lambda: nk.SGD(0.1, 2, 3, batches="few"), "`batches` must be one of 'fixed', 'bernoulli'; got 'few'"),
        (lambda: nk.SGD(0.1, 2, 3, noise=-1.0), "`noise` must be at least 0; got -1.0"),
        (lambda: nk.solve(MODEL, X, Y, nk.SGD(0.1, 4, 3)), "`batch_size` must be at most .* points, 3; got 4"),
        (
            lambda: nk.solve(MODEL, X, Y, nk.SGD(0.1, 2, 3), loss="huber"),
            "with random batches or noise is solved only at order 0, for the loss 'squared' and solver='direct'",
        ),
        (
            lambda: nk.solve(nk.expand(MODEL, np.ones((2, 4))), X, Y, nk.SGD(0.1, None, 3, 0, 1.0), loss="huber"),
            "with decay to zero is solved only at order 0",
        ),
        (
            lambda: nk.solve(MODEL, X, Y, nk.SGD(0.1, None, 3, schedule=lambda s: jnp.stack([s, s]))),
            r"`schedule\(step\)` must return one real number",
        ),
        (lambda: nk.solve(MODEL, X, Y, nk.Adam(0.1, 3)), "`algorithm` must be one that can be solved"),
        (lambda: nk.solve(MODEL, X, Y, nk.Optax(optax.sgd(0.1), 3)), "`algorithm` must be one that can be solved"),
        (lambda: nk.Optax("adam", 3), r"`transformation` must be an optax.GradientTransformation.*got 'adam'"),
        (
            lambda: nk.simulate(MODEL, np.zeros((2, 4)), X, Y, nk.Optax(optax.sgd(0.1), 3, 2)),
            "`Optax` draws batches: pass `key=",
        ),
        (
            lambda: nk.simulate(MODEL, np.zeros((2, 4)), X, Y, nk.SGD(0.1, None, 3, noise=1.0)),
            "`SGD` draws noise: pass `key=",
        ),
        (
            lambda: nk.forecast(NET, X, Y, nk.SGD(0.1, 2, 3, weight_decay=0.1), NEW),
            'with decay_to="zero" can be forecast only for an nk.FeatureModel.*use decay_to="start"',
        ),
        (
            lambda: nk.forecast(NET, X, Y, nk.SGD(0.1, 2, 3), NEW, loss="huber", key=0),
            "needs the loss 'squared' for random batches, noise or decay to zero; got 'huber'",
        ),
        (
            lambda: nk.forecast(
                nk.MLP(2, (4,), parametrization="standard"), X, Y, nk.SGD(0.1, 2, 3, noise=1.0), NEW
            ),
            "`noise` needs a network in NTK scaling, whose `lr_factors.*` are all 1",
        ),
        (
            lambda: nk.forecast(
                nk.MLP(2, (4,), 2, parametrization="mean_field"), X, Y, nk.SGD(0.1, 2, 3, noise=1.0), NEW, key=0
            ),
            "must be an SGD without `noise`",
        ),
        (lambda: nk.theory.sgd_stationary(PHI, Y[:, 0], nk.SGD(0.1, 2, 3, noise=1.0)), "schedule or noise: use"),
        (lambda: nk.solve(MODEL, X, Y, nk.SGD(0.1, 2, 3)).at(1.5), "`time` must be an integer; got 1.5"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
