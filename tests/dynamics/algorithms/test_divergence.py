"""Divergence is never called a success: the rule, and every place that trains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel import StatusKind
from nearkernel.dynamics.algorithms.divergence import growth
from nearkernel.dynamics.orders.unexpanded import exact_params

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(8, 4)), RNG.normal(size=8)
NET = nk.MLP(4, (20,), 1, "erf", weight_var=1.2, bias_var=0.1)
THETA = NET.init(jax.random.key(8))
FITTED = np.asarray(NET(THETA, X))[:, 0]  # targets that the start fits
LINEAR = nk.from_function(lambda w, x: x @ w[:, None])
TWO = nk.Record(every=1000)  # the first loss and the last


def finite(tree) -> bool:
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize(
    ("losses", "words"),
    (
        ([5.0, 1.0, 0.1], None),
        ([5.0, 50.0, 0.1], None),  # a catapult
        ([1.0, 1.009], None),  # hardly above
        ([1.0, 1.02], "rose from 1 to 1.02"),
        ([5.0, 1.0, 7.0], "rose from 5 to 7"),
        ([1.0, np.nan, 0.5], "is no longer finite"),
        ([1.0, np.inf], "is no longer finite"),
        ([0.0, 0.0], None),
        ([0.0, 1e-3], "rose from 0 to 0.001"),
        ([-3.0, -4.0], None),
        ([-3.0, -2.0], "rose from -3 to -2"),
        (9.0 ** np.abs(np.arange(-8, 5)), "growing at the end, from 1 to 6.56e+03"),  # below the start
        (1.5 ** np.abs(np.arange(-8, 5)), None),  # not as steady as that
        ([9.0] * 11 + [1.0, 8.0], None),  # a jump
    ),
)
def test_the_rule(losses, words):
    found = growth(losses)
    assert found is None if words is None else words in found


def test_the_rule_knows_rounding_noise_and_momentum():
    assert growth([1e-31, 1e-25], zero=1.0) is None and growth([1e-31, 1e-25]) is not None
    assert growth([1.0, 5.0, 5.0], noisy=True) is None and growth([1.0, 50.0], noisy=True) is not None
    steady = 9.0 ** np.abs(np.arange(-8, 5))
    assert growth(steady) is not None and growth(steady, inertial=True) is growth(steady, noisy=True) is None


@pytest.mark.parametrize("momentum", (0.0, 0.9))
@pytest.mark.parametrize("record", (nk.Record(), TWO), ids=("many records", "two records"))
@pytest.mark.parametrize("model", (NET, nk.expand(NET, THETA)), ids=("network", "linear"))
def test_a_loss_that_rose_is_not_a_success(model, record, momentum):
    run = nk.simulate(model, THETA, X, Y, nk.GradientDescent(5.0, 50, momentum), record)
    assert run.history["loss"][-1] > 1e50 and np.isfinite(run.history["loss"]).all()
    assert not run.ok and run.status == StatusKind.diverged and run.steps == 50
    assert (
        "diverged: the loss rose from 8.32 to " in run.status.message and "by step 50" in run.status.message
    )


def test_a_run_that_ends_before_convergence_is_finished():
    run = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(0.1, 3))
    assert run.ok and str(run.status) == "finished" and run.history["loss"][-1] > 0.1


def test_a_catapult_that_comes_down_is_ok_and_one_cut_short_is_not():
    net = nk.MLP(5, (400,), 1, "relu", weight_var=2.0)
    theta, x = net.init(jax.random.key(2)), np.random.default_rng(0).normal(size=(6, 5))
    y = np.sin(x.sum(axis=1))
    lr = 3 / np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, theta)(x))[-1]
    whole = nk.simulate(net, theta, x, y, nk.GradientDescent(lr, 300))
    assert whole.ok and whole.history["loss"].max() > 10 * whole.history["loss"][0]
    short = nk.simulate(net, theta, x, y, nk.GradientDescent(lr, int(whole.history["loss"].argmax())))
    assert short.status == StatusKind.diverged


def test_growth_below_the_start_is_divergence_too():
    """One mode falls from far away while the other, unstable one, comes up from a millionth."""
    start, x, descent = np.array([100.0, 1e-6]), np.diag([1.0, 3.0]), nk.GradientDescent(0.25, 60)
    run = nk.simulate(LINEAR, start, x, np.zeros(2), descent)
    assert run.history["loss"][-1] < 1e-3 * run.history["loss"][0]
    assert run.status == StatusKind.diverged and "the loss was growing at the end" in run.status.message


def test_oscillations_of_momentum_are_not_divergence():
    descent = nk.GradientDescent(1e-4, 420, 0.995)
    run = nk.simulate(LINEAR, np.ones(1), np.ones((1, 1)), np.zeros(1), descent)
    losses = run.history["loss"]
    assert run.ok and losses.min() < 1e-4 and losses[-1] > 100 * losses.min()
    prefixes = [losses[:steps] for steps in range(2, 421)]  # through every phase of its swing
    assert not any(growth(part, inertial=True) for part in prefixes) and any(map(growth, prefixes))


def test_noise_of_batches_around_a_fitted_start_is_not_divergence():
    """The stationary loss is above the least one; 20 keys, with and without records on the way."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 6))
    y = x @ rng.normal(size=6) + rng.normal(size=30)
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    sgd = nk.SGD(0.5 / np.linalg.eigvalsh(x.T @ x)[-1], 10, 300)
    assert nk.theory.sgd_stationary(x, y, sgd).ok
    above = told = 0
    for seed in range(20):
        for record in (nk.Record(), nk.Record(every=300)):
            run = nk.simulate(LINEAR, best, x, y, sgd, record, key=jax.random.key(seed))
            assert run.ok, run.status
            above += run.history["loss"][-1] > 1.01 * run.history["loss"][0]
            told += "finished; the loss rose from" in run.status.message
    assert above > 25 and told > 25  # it says so
    far = nk.simulate(LINEAR, best, x, y, nk.SGD(20 * sgd.lr, 10, 40), key=jax.random.key(0))
    assert far.status == StatusKind.diverged and np.isfinite(far.history["loss"]).all()


@pytest.mark.parametrize(
    "algorithm",
    (nk.GradientDescent(0.1, 10), nk.GradientDescent(0.1), nk.GradientFlow(3.0), nk.GradientFlow()),
    ids=str,
)
def test_a_fitted_start_stays_fitted(algorithm):
    """To rounding, and exactly."""
    w = np.array([0.1, 0.2, 0.3])
    for x, y in ((X[:3, :3], X[:3, :3] @ (w + 1e-15)), (np.eye(3), w)):
        run = nk.simulate(LINEAR, w, x, y, algorithm)
        assert run.ok and run.history["loss"][-1] < 1e-18 and run.steps < 1000


def test_a_start_that_is_not_finite_has_diverged():
    model = nk.from_function(lambda w, x: jnp.log(x @ w[:, None]))
    for algorithm in (nk.GradientDescent(0.1, 3), nk.GradientFlow(1.0), nk.GradientFlow()):
        run = nk.simulate(model, np.zeros(2), np.eye(2), np.ones(2), algorithm)
        assert run.status == StatusKind.diverged and len(run.history["loss"]) == 0


def test_parameters_of_a_run_that_leaves_the_finite_numbers_are_finite():
    net = nk.MLP(4, (20,), 1, "relu")
    theta = net.init(jax.random.key(1))
    for record in (nk.Record(), TWO):
        run = nk.simulate(net, theta, X, Y, nk.GradientDescent(50.0, 400), record)
        assert run.status == StatusKind.diverged and "is no longer finite" in run.status.message
        assert finite(run.params) and finite(run.history)


@pytest.mark.parametrize(
    "algorithm", (nk.GradientFlow(0.02), pytest.param(nk.GradientFlow(), marks=pytest.mark.slow)), ids=str
)
def test_a_flow_that_cannot_be_followed_says_how_far_it_came(monkeypatch, algorithm):
    from nearkernel.dynamics.algorithms import ode as _ode

    monkeypatch.setattr(_ode, "_MOST_STEPS", 64)
    x = np.diag([1.0, 2.0, 5.0, 10.0, 30.0])  # of a shape of its own, so that it is compiled anew
    run = nk.simulate(LINEAR, np.ones(5), x, np.zeros(5), algorithm, nk.Record(every=1e-4))
    assert run.status == StatusKind.stiff and not run.ok and finite(run.params)
    reached = run.history["time"]
    assert (np.diff(reached) > 0).all() and 0 < reached[-1] < 0.02
    assert f"too stiff to follow beyond time {reached[-1]:.4g}" in run.status.message
    assert np.isclose(0.5 * np.sum((x @ run.params) ** 2), run.history["loss"][-1])


@pytest.mark.slow
def test_a_flow_in_function_space_that_cannot_be_followed_is_not_ok(monkeypatch):
    from nearkernel.dynamics.algorithms import ode as _ode

    monkeypatch.setattr(_ode, "_MOST_STEPS", 64)
    x, labels = 30 * np.diag([1.0, 2.0, 5.0, 10.0, 30.0]), np.eye(2)[[0, 1, 0, 1, 1]]
    solution = nk.solve(nk.kernels.Linear(), x, labels, nk.GradientFlow(50.0), loss="cross_entropy")
    assert solution.status == StatusKind.stiff and not solution.ok
    assert "too stiff to follow to time 50" in solution.status.message


def test_cross_entropy():
    """Its gradient is bounded, so that all stays finite however large the step. Every point has two labels."""
    net = nk.MLP(4, (20,), 2, "tanh")
    theta, x, labels = net.init(jax.random.key(0)), np.repeat(X, 2, axis=0), np.tile(np.eye(2), (8, 1))
    good = nk.simulate(net, theta, x, labels, nk.GradientDescent(0.05, 50), loss="cross_entropy")
    again = nk.simulate(net, good.params, x, labels, nk.GradientDescent(0.05, 50), loss="cross_entropy")
    bad = nk.simulate(net, theta, x, labels, nk.GradientDescent(1000.0, 51), loss="cross_entropy")
    assert good.ok and again.ok and np.isfinite(bad.history["loss"]).all() and not bad.ok
    kernel, labels = nk.kernels.NTK(net), np.eye(2)[np.arange(16) % 3 % 2]
    bad, good = (
        nk.solve(kernel, x, labels, nk.GradientDescent(lr, 51), loss="cross_entropy") for lr in (1000.0, 0.01)
    )
    assert np.isfinite(bad.predict(X).mean).all() and bad.status == StatusKind.diverged and good.ok
    assert str(good.status) == "stopped at step 51" and "the loss rose from" in bad.status.message


def test_what_is_traced_is_not_called_a_success():
    seen = []

    @jax.jit
    def trained(theta):
        run = nk.simulate(NET, theta, X, Y, nk.GradientDescent(5.0, 20))
        seen.append((run.ok, run.status))
        return run.params

    trained(THETA)
    assert not seen[0][0] and seen[0][1] == StatusKind.unchecked


def test_phases_say_how_their_run_ended():
    lazy, divergent = (nk.theory.learning_rate_phase(NET, THETA, X, Y, lr, 50) for lr in (0.1, 5.0))
    assert lazy.ok and lazy.name == "lazy"
    assert not divergent.ok and divergent.name == "divergent" and divergent.status == StatusKind.diverged
    assert len(divergent.losses) == 51 and np.isfinite(divergent.losses).all()
    assert nk.theory.learning_rate_phase(NET, THETA, X, FITTED, 0.1, 50).name == "lazy"  # a start that fits


def test_exact_training_that_diverges_has_no_parameters():
    assert exact_params(NET, THETA, X, Y[:, None], nk.GradientDescent(5.0, 50)) is None
    assert exact_params(NET, THETA, X, Y[:, None], nk.GradientDescent(0.1, 50)) is not None


@pytest.mark.parametrize("order", (0, 1))
def test_descent_in_sample_space(order):
    good, bad, lost = (
        nk.theory.sample_space_descent(NET, THETA, X, Y, lr, steps, order=order)
        for lr, steps in ((0.1, 20), (2.0, 5), (1e3, 200))
    )
    assert good.ok and str(good.status) == "stopped at step 20"
    assert np.isfinite(bad.outputs).all() and "the loss rose from" in bad.status.message
    assert lost.status == bad.status.kind is StatusKind.diverged and not np.isfinite(lost.outputs).all()


def test_a_head_that_did_not_converge_is_not_ok(monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    from nearkernel.dynamics.features import last_layer as _head
    from nearkernel.estimators import OneStepNetworkRegressor

    monkeypatch.setattr(_head, "_MOST_STEPS", 3)
    features = nk.theory.one_step_features(X, Y, 20, jax.random.key(0))
    network = features.fit(X, Y, 0.1, descent=True)
    assert network.status == StatusKind.not_converged and not network.ok
    assert np.isfinite(network.predict(X)).all()
    with pytest.warns(ConvergenceWarning, match="not converged after 3 steps: increase the ridge"):
        OneStepNetworkRegressor(20, ridge=0.1, head="gradient_descent").fit(X, Y)


def test_a_second_moment_that_grows_slowly_is_not_stationary():
    """One direction grows by 1e-4 a step amid twenty that shrink as slowly: thousands of steps would not show it."""
    scales = np.sqrt(np.append(np.full(20, 5e-5), [2.0 + 5e-5]))
    law = nk.theory.sgd_stationary(np.diag(scales), np.ones(21), nk.SGD(1.0, 21, 1))
    assert (
        law.status == StatusKind.diverged
        and law.loss == np.inf
        and "by a factor of 1 per step" in law.status.message
    )
    scales[-1] = np.sqrt(2.0 - 5e-5)
    assert nk.theory.sgd_stationary(np.diag(scales), np.ones(21), nk.SGD(1.0, 21, 1)).ok


def test_eigenpairs_that_were_not_found_are_not_ok(monkeypatch):
    import scipy.sparse.linalg as sparse

    hessian = nk.geometry.Hessian(NET, THETA, X, Y)
    assert hessian.size > 64 and nk.geometry.top_eigenpairs(hessian, 2).ok

    def gives_up(operator, k, **settings):
        raise sparse.ArpackNoConvergence("no", np.ones(1), np.eye(hessian.size)[:, :1])

    monkeypatch.setattr(sparse, "eigsh", gives_up)
    found = nk.geometry.top_eigenpairs(hessian, 2)
    assert not found.ok and found.status == StatusKind.not_converged
    assert str(found.status) == "not converged: found 1 of 2 eigenpairs"
