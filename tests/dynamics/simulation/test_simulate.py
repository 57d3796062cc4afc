"""`simulate`: histories, stopping, divergence as a value, and use inside the caller's transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(8, 4)), RNG.normal(size=8)
NET = nk.MLP(4, (20,), 1, "erf", weight_var=1.2, bias_var=0.1)
THETA = NET.init(jax.random.key(8))
LAM = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(NET, THETA)(X))[-1]


def plain_descent(lr, steps, momentum=0.0):
    """The textbook loop, in NumPy around JAX's gradient."""
    with jax.enable_x64(True):
        loss = jax.jit(lambda p: 0.5 * jnp.sum((NET(p, X)[:, 0] - Y) ** 2))
        gradient = jax.jit(jax.grad(loss))
        params, velocity, losses = THETA, jax.tree.map(jnp.zeros_like, THETA), []
        for _ in range(steps):
            losses.append(float(loss(params)))
            velocity = jax.tree.map(lambda v, g: momentum * v - lr * g, velocity, gradient(params))
            params = jax.tree.map(jnp.add, params, velocity)
        return params, np.array([*losses, float(loss(params))])


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_gradient_descent_is_the_textbook_loop(momentum):
    params, losses = plain_descent(0.5 / LAM, 37, momentum)
    run = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(0.5 / LAM, 37, momentum))
    np.testing.assert_allclose(run.history["loss"], losses, rtol=1e-10)
    np.testing.assert_array_equal(run.history["time"], np.arange(38))
    for ours, theirs in zip(jax.tree.leaves(run.params), jax.tree.leaves(params), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-11)
    assert run.status == nk.StatusKind.finished and run.steps == 37 and run.ok


@pytest.mark.parametrize("steps, every", [(10, 4), (1000, 7), (0, 1), (3, 5)])
def test_records_are_kept_every_so_many_steps_and_at_the_end(steps, every):
    record = nk.Record({"output": lambda p: NET(p, X[:2])[:, 0]}, every=every)
    run = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(0.2 / LAM, steps), record)
    expected = sorted({*range(0, steps, every), steps})
    np.testing.assert_array_equal(run.history["time"], expected)
    assert run.history["output"].shape == (len(expected), 2)
    np.testing.assert_allclose(run.history["output"][-1], NET(run.params, X[:2])[:, 0], atol=1e-12)


@pytest.mark.slow
def test_gradient_flow_is_descent_with_vanishing_steps():
    time = 3.0 / LAM
    flow = nk.simulate(NET, THETA, X, Y, nk.GradientFlow(time))
    errors = []
    for steps in (500, 1000):
        descent = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(time / steps, steps))
        errors.append(np.abs(NET(descent.params, X) - NET(flow.params, X)).max())
    assert errors[1] < 1e-3 and errors[0] / errors[1] == pytest.approx(2.0, abs=0.1)
    assert flow.history["time"][-1] == pytest.approx(time) and len(flow.history["loss"]) == 101


@pytest.mark.slow
def test_training_to_the_end_converges_or_says_that_it_did_not():
    run = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(1 / LAM), tol=1e-6)
    assert run.status == nk.StatusKind.converged and run.history["loss"][-1] < 1e-11 * run.history["loss"][0]
    short = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(1 / LAM), max_steps=50)
    assert short.status == nk.StatusKind.not_converged and not short.ok
    assert str(short.status) == "not converged after 50 steps"
    flow = nk.simulate(NET, THETA, X, Y, nk.GradientFlow(), tol=1e-3)
    assert (
        flow.status == nk.StatusKind.converged and flow.history["loss"][-1] < 1e-5 * flow.history["loss"][0]
    )


def test_divergence_is_a_value():
    run = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(1e6 / LAM, 2000))
    assert not run.ok and run.status == nk.StatusKind.diverged
    assert "diverged by step" in run.status.message
    assert np.isfinite(run.history["loss"]).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.params))


def test_sgd_with_the_whole_batch_is_gradient_descent_and_its_key_decides():
    whole = nk.simulate(NET, THETA, X, Y, nk.SGD(0.3 / LAM, 8, 20), key=jax.random.key(0))
    descent = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(0.3 / LAM, 20))
    np.testing.assert_allclose(whole.history["loss"], descent.history["loss"], rtol=1e-9)
    small = [
        nk.simulate(NET, THETA, X, Y, nk.SGD(0.05 / LAM, 3, 20), key=jax.random.key(k)) for k in (1, 1, 2)
    ]
    np.testing.assert_array_equal(small[0].history["loss"], small[1].history["loss"])
    assert not np.array_equal(small[0].history["loss"], small[2].history["loss"])


def test_batch_gradients_are_unbiased():
    """One SGD step, averaged over keys, is one step of gradient descent (4 standard errors)."""
    lr = 0.2 / LAM

    def first_weight(key):
        return nk.simulate(NET, THETA, X, Y, nk.SGD(lr, 3, 1), key=key).params[1]["weight"][:, 0]

    moved = np.stack([first_weight(jax.random.key(k)) for k in range(60)])
    expected = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(lr, 1)).params[1]["weight"][:, 0]
    sem = moved.std(axis=0, ddof=1) / np.sqrt(len(moved))
    assert (np.abs(moved.mean(axis=0) - expected) <= 4 * sem).all()


def test_runs_inside_the_callers_jit_and_vmap():
    def final(theta):
        return nk.simulate(NET, theta, X, Y, nk.GradientDescent(0.3 / LAM, 15)).params[0]["bias"]

    plain = nk.simulate(NET, THETA, X, Y, nk.GradientDescent(0.3 / LAM, 15)).params[0]["bias"]
    in_host = jax.jit(final)(jax.tree.map(np.float32, THETA))  # the caller's float32 parameters stay so
    assert in_host.dtype == np.float32
    np.testing.assert_allclose(in_host, plain, atol=1e-5)
    stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), THETA)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.vmap(final)(stacked)[1], plain, atol=1e-12)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.simulate(NET, THETA, X, Y, nk.Ridge(0.1)),
            "`algorithm` must have steps or a time.*got Ridge",
        ),
        (lambda: nk.simulate(NET, THETA, X, Y, nk.SGD(0.1, 3, 2)), "`SGD` draws batches: pass `key="),
        (
            lambda: nk.simulate(NET, THETA, X, Y, nk.SGD(0.1, 9, 2), key=jax.random.key(0)),
            "`batch_size` must be at most the number of points, 8; got 9",
        ),
        (
            lambda: nk.simulate(NET, THETA, X, Y[:3], nk.GradientFlow(1.0)),
            "`x` and `y` must have the same number of rows; got 8 and 3",
        ),
        (
            lambda: nk.simulate(NET, THETA, X, np.ones((8, 2)), nk.GradientFlow(1.0)),
            "`y` has 2 outputs per row; the model has 1",
        ),
        (
            lambda: nk.simulate(lambda p, x: x, THETA, X, Y, nk.GradientFlow(1.0)),
            "`model` must be a nearkernel model",
        ),
        (lambda: nk.Record({"loss": sum}), "`record` needs functions of the parameters"),
        (lambda: nk.Record(every=0), "`every` must be greater than 0"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
