"""SGD at rest: exact moments against all batches and against runs, drift to wide places, and when to stop."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

D = nk.dynamics
RNG = np.random.default_rng(4)
PHI = RNG.normal(size=(12, 3))
Y = PHI @ RNG.normal(size=3) + RNG.normal(size=12)
HESSIAN = PHI.T @ PHI
TOP = np.linalg.eigvalsh(HESSIAN)[-1]
LINEAR = nk.from_function(lambda p, x: x @ p)


def batches(n, b):
    return [list(rows) for rows in itertools.combinations(range(n), b)]


@pytest.mark.parametrize("ratio, b", [(0.05, 1), (0.3, 4), (0.9, 7), (1.2, 12)])
def test_stationary_moments_are_kept_by_one_step_over_all_batches(ratio, b):
    sgd = nk.SGD(ratio / TOP, b, 1)
    found = nk.theory.sgd_stationary(PHI, Y, sgd)
    assert found.ok
    residual = PHI @ found.mean - Y
    after, moment = np.zeros((3, 3)), np.zeros((3, 3))
    for rows in batches(12, b):
        matrix = 12 / b * PHI[rows].T @ PHI[rows]
        noise = 12 / b * PHI[rows].T @ residual[rows]
        step = np.eye(3) - sgd.lr * matrix
        after += step @ found.covariance @ step.T + sgd.lr**2 * np.outer(noise, noise)
        moment += matrix @ found.covariance @ matrix + np.outer(noise, noise)
    count = len(batches(12, b))
    np.testing.assert_allclose(after / count, found.covariance, atol=1e-13)
    np.testing.assert_allclose(found.gradient_moment, moment / count, atol=1e-11)


def test_fluctuation_and_dissipation_balance():
    for ratio in (0.01, 0.3, 1.0):
        sgd = nk.SGD(ratio / TOP, 5, 1)
        found = nk.theory.sgd_stationary(PHI, Y, sgd)
        assert found.dissipation == pytest.approx(found.fluctuation, rel=1e-12)
        both = HESSIAN @ found.covariance + found.covariance @ HESSIAN
        np.testing.assert_allclose(both, sgd.lr * found.gradient_moment, atol=1e-12)
    # Noise proportional to the Hessian, C = a H + ..., spreads every direction by at least a lr / 2.
    square = np.vstack([np.eye(3), -np.eye(3)]) * np.array([1.0, 2.0, 3.0])
    found = nk.theory.sgd_stationary(square, np.full(6, 0.1), nk.SGD(0.01, 1, 1))
    noise = nk.theory.gradient_moment(LINEAR, found.mean, square, np.full(6, 0.1), 1)
    share = np.diag(noise) / np.diag(square.T @ square)
    assert np.ptp(share) < 1e-12 and (np.diag(found.covariance) >= share[0] * 0.01 / 2).all()


def test_too_large_steps_have_no_stationary_law():
    found = nk.theory.sgd_stationary(PHI, Y, nk.SGD(1.9 / TOP, 1, 1))
    assert not found.ok and found.status == nk.StatusKind.diverged and found.loss == np.inf
    assert "not stationary: at lr =" in found.status.message
    assert nk.theory.sgd_stationary(
        PHI, Y, nk.SGD(1.9 / TOP, 12, 1)
    ).ok  # the whole batch: plain descent, without noise


def test_the_moment_of_batch_gradients_is_the_average_over_batches():
    net = nk.from_function(lambda p, x: jnp.tanh(x @ p))
    theta, y = RNG.normal(size=(3, 2)), RNG.normal(size=(5, 2))
    # The gradient of the batch of both points i and j is 5/2 (g_i + g_j).
    single = [nk.theory.gradient_moment(net, theta, PHI[[i]], y[[i]], 1) for i in range(5)]
    pairs = [
        nk.theory.gradient_moment(net, theta, PHI[list(rows)], y[list(rows)], 2) for rows in batches(5, 2)
    ]
    np.testing.assert_allclose(
        nk.theory.gradient_moment(net, theta, PHI[:5], y, 2),
        np.mean(pairs, axis=0) * (5 / 2) ** 2,
        atol=1e-12,
    )
    np.testing.assert_allclose(
        nk.theory.gradient_moment(net, theta, PHI[:5], y, 1), 5 * sum(single), atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.1, 0.6])
def test_runs_have_the_exact_stationary_moments(ratio):
    """32 runs of 4000 steps, the first thousand left out; 4 standard errors over runs."""
    sgd = nk.SGD(ratio / TOP, 4, 4000)
    exact = nk.theory.sgd_stationary(PHI, Y, sgd)
    observables = nk.theory.fluctuation_observables(LINEAR, exact.mean, PHI, Y, sgd) | {"theta": lambda p: p}

    def history(key):
        start = jnp.asarray(exact.mean)
        return nk.simulate(LINEAR, start, PHI, Y, sgd, nk.Record(observables, every=10), key=key).history

    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(history))(jax.random.split(jax.random.key(0), 32))
    found = {name: np.asarray(values)[:, 100:] for name, values in found.items()}
    away = found["theta"] - exact.mean
    averages = {
        "dissipation": (found["dissipation"].mean(axis=1), exact.dissipation),
        "fluctuation": (found["fluctuation"].mean(axis=1), exact.fluctuation),
        "loss": (found["loss"].mean(axis=1), exact.loss),
        "covariance": (np.einsum("rti,rtj->rij", away, away) / away.shape[1], exact.covariance),
    }
    for name, (runs, expected) in averages.items():
        sem = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        assert (np.abs(runs.mean(axis=0) - expected) <= 4 * sem).all(), name


def test_sgd_runs_until_it_is_stationary():
    start = np.array([3.0, -3.0, 3.0])
    run = nk.theory.sgd_until_stationary(
        LINEAR, start, PHI, Y, nk.SGD(0.3 / TOP, 4, 50_000), jax.random.key(1)
    )
    assert run.ok and run.status == nk.StatusKind.stationary and run.steps == run.history["time"][-1] + 10
    exact = nk.theory.sgd_stationary(PHI, Y, nk.SGD(0.3 / TOP, 4, 1))
    late = run.history["time"] >= run.steps / 2
    assert run.history["fluctuation"][late].mean() == pytest.approx(exact.fluctuation, rel=0.1)


@pytest.mark.slow
def test_sgd_that_is_not_stationary_says_so():
    start = np.array([3.0, -3.0, 3.0])
    slow = nk.theory.sgd_until_stationary(
        LINEAR, start, PHI, Y, nk.SGD(1e-5 / TOP, 4, 3000), jax.random.key(1)
    )
    assert (
        "not stationary after 2800 steps: dissipation / fluctuation = " in slow.status.message and not slow.ok
    )
    far = nk.theory.sgd_until_stationary(LINEAR, start, PHI, Y, nk.SGD(30 / TOP, 4, 3000), jax.random.key(1))
    assert far.status == nk.StatusKind.diverged and not far.ok


@pytest.mark.slow
def test_fluctuation_and_dissipation_balance_in_a_network():
    """A tanh network at rest, 60000 steps from the end of descent; 4 standard errors over blocks, and 3 % for drift."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(60, 2))
    y = np.sin(2 * x[:, 0]) + 0.5 * rng.normal(size=60)
    net = nk.MLP(2, (3,), 1, "tanh", weight_var=1.5, bias_var=0.5)
    begin = nk.simulate(net, net.init(jax.random.key(0)), x, y, nk.GradientDescent(0.02, 20_000)).params
    top = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, begin)(x))[-1]
    sgd = nk.SGD(0.1 / top, 5, 60_000)
    sides = nk.theory.fluctuation_observables(net, begin, x, y, sgd)
    run = nk.simulate(net, begin, x, y, sgd, nk.Record(sides, every=20), key=jax.random.key(0))
    gap = (run.history["dissipation"] - run.history["fluctuation"])[500:2900].reshape(8, -1).mean(axis=1)
    scale = run.history["fluctuation"][500:].mean()
    assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(8) + 0.03 * scale
    assert gap.std(ddof=1) / np.sqrt(8) < 0.1 * scale  # or the test would say nothing


def valley(x):
    """z = u sqrt(1 + v^2) x: a valley u = 0 of curvature (1 + v^2) sum x^2, which is widest at v = 0."""
    return nk.from_function(lambda p, x: p["u"] * jnp.sqrt(1 + p["v"] ** 2) * x[:, 0])


@pytest.mark.slow
def test_noise_drives_sgd_to_the_wide_part_of_a_valley():
    """dv/dstep = -lr <u^2> v sum x^2 with the stationary <u^2>; descent on the whole batch stays where it is."""
    n, b, lr, steps = 8, 2, 0.02, 1500
    x = np.ones((n, 1))
    y = 0.5 * np.tile([1.0, -1.0], n // 2)

    def spread(v):
        return nk.theory.sgd_stationary(np.sqrt(1 + v**2) * x, y, nk.SGD(lr, b, 1)).covariance[0, 0]

    expected = [1.5]
    for _ in range(steps):
        v = expected[-1]
        expected.append(v - lr * spread(v) * v * n)

    def final(key):
        params = {"u": jnp.zeros(()), "v": jnp.asarray(1.5)}
        return nk.simulate(valley(x), params, x, y, nk.SGD(lr, b, steps), key=key).params["v"]

    with jax.enable_x64(True):
        ends = np.asarray(jax.jit(jax.vmap(final))(jax.random.split(jax.random.key(2), 400)))
    sem = ends.std(ddof=1) / np.sqrt(len(ends))
    assert expected[-1] < 1.2
    assert abs(ends.mean() - expected[-1]) < 4 * sem + 0.03 * (1.5 - expected[-1])  # and 3 % for the slow u
    still = {"u": np.zeros(()), "v": np.asarray(1.5)}
    run = nk.simulate(valley(x), still, x, y, nk.GradientDescent(lr, steps))
    assert float(run.params["v"]) == pytest.approx(1.5, abs=1e-12)


@pytest.mark.parametrize("fast, mass", [(2, 4 / 5), (3, 9 / 10)])
def test_a_walk_is_where_its_steps_are_small(fast, mass):
    halves = [
        nk.theory.walk_density(np.where(np.arange(n) < n // 2, 1, fast))[: n // 2].sum() for n in (200, 400)
    ]
    errors = np.abs(np.array(halves) - mass)
    assert errors[1] < 0.003 and errors[1] < 0.6 * errors[0]  # 1/n, from the two borders
    assert nk.theory.walk_density(np.ones(50, int)) == pytest.approx(np.full(50, 1 / 50))


def test_the_walk_simulated():
    """2000 walkers on 60 sites, 4 standard errors."""
    rng = np.random.default_rng(0)
    steps = np.where(np.arange(60) < 30, 1, 2)
    expected = nk.theory.walk_density(steps)[:30].sum()
    at, counts = rng.integers(0, 60, 2000), []
    for t in range(4000):
        at = (at + steps[at] * rng.choice([-1, 1], 2000)) % 60
        if t >= 3000 and t % 10 == 0:
            counts.append(np.mean(at < 30))
    blocks = np.mean(np.reshape(counts, (5, -1)), axis=1)
    sem = max(blocks.std(ddof=1) / np.sqrt(5), np.sqrt(expected * (1 - expected) / 2000 / 5))
    assert abs(np.mean(counts) - expected) < 4 * sem


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.sgd_stationary(PHI, Y, nk.SGD(0.1, 13, 1)),
            "`batch_size` must be at most .* 12; got 13",
        ),
        (
            lambda: nk.theory.sgd_stationary(PHI, Y, nk.GradientFlow()),
            "`sgd` must be an nk.SGD; got GradientFlow",
        ),
        (
            lambda: nk.theory.sgd_stationary(PHI[:2], Y[:2], nk.SGD(0.1, 1, 1)),
            "`features` must have full column rank 3",
        ),
        (
            lambda: nk.theory.sgd_stationary(PHI, Y[:3], nk.SGD(0.1, 1, 1)),
            "`features` and `y` must have the same number of rows",
        ),
        (lambda: nk.theory.gradient_moment(LINEAR, np.ones(3), PHI, Y, 13), "`batch_size` must be at most"),
        (
            lambda: nk.theory.sgd_until_stationary(
                LINEAR, np.ones(3), PHI, Y, nk.SGD(0.1, 2, 10), jax.random.key(0)
            ),
            "`steps` must be at least 400",
        ),
        (lambda: nk.theory.walk_density([0, 1, 1]), "`steps` must be a vector of at least 3 integers"),
        (lambda: nk.theory.walk_density([2, 2, 2, 2]), "do not connect all sites"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
