"""Functions of the user, such as losses and schedules: what they must return, and one line if they do not."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support import helpers

X, Y, NEW = helpers.points(8, 3), np.sin(np.arange(8.0)), helpers.points(4, 3)
NET = nk.MLP(3, (16,), 1, "tanh")
PARAMS = NET.init(jax.random.key(0))
RICH = nk.MLP(3, (16,), 1, "tanh", bias_var=0.0, parametrization="mean_field")
STEPS = nk.GradientDescent(0.01, 3)
FEW = nk.MeanField(neurons=64, scrambles=2)
USES = {
    "simulate": lambda loss: nk.simulate(NET, PARAMS, X, Y, STEPS, loss=loss),
    "simulate, traced": lambda loss: jax.jit(
        lambda y: nk.simulate(NET, PARAMS, X, y, STEPS, loss=loss).params
    )(Y),
    "solve": lambda loss: nk.solve(nk.kernels.RBF(1.0), X, Y, STEPS, loss=loss),
    "forecast": lambda loss: nk.forecast(
        NET, X, Y, STEPS, NEW, loss=loss, key=0, theory=nk.InfiniteWidth(samples=4)
    ),
    "rich": lambda loss: nk.forecast(RICH, X, Y, STEPS, NEW, loss=loss, theory=FEW),
    "inspect": lambda loss: nk.inspect(NET, PARAMS, X, Y, loss=loss, steps=3),
    "Hessian": lambda loss: nk.geometry.Hessian(NET, PARAMS, X, Y, loss),
    "moments": lambda loss: nk.theory.gradient_moment(NET, PARAMS, X, Y, 2, loss),
}
NOT_JAX = "must be written with jax.numpy"
LOSSES = {
    "one argument": (lambda z: jnp.sum(z), r"`loss` must be a JAX function loss\(z, y\)"),
    "NumPy": (lambda z, y: np.square(np.asarray(z) - y).sum(), f"`loss` {NOT_JAX}"),
    "math": (lambda z, y: math.exp(z[0, 0]), f"`loss` {NOT_JAX}"),
    "if": (lambda z, y: jnp.sum(z) if z[0, 0] > 0 else 0.0, f"`loss` {NOT_JAX}"),
    "per point": (
        lambda z, y: (z - y) ** 2,
        r"`loss\(z, y\)` must return one real number; it returns an array",
    ),
    "None": (lambda z, y: None, r"`loss\(z, y\)` must return one real number; it returns None"),
    "text": (lambda z, y: "a", r"`loss\(z, y\)` must return one real number; it returns 'a'"),
    "shapes": (lambda z, y: jnp.sum(z @ y), "`loss` fails: TypeError: dot_general"),
    "its own error": (lambda z, y: {}["a"], "`loss` fails: KeyError"),
}
NOT_FINITE = {
    "nan": (lambda z, y: jnp.nan * jnp.sum(z), "`loss` returns nan at the outputs before training"),
    "infinite": (lambda z, y: jnp.inf + jnp.sum(z), "`loss` returns inf at the outputs before training"),
    "slope": (lambda z, y: jnp.sum(jnp.sqrt(0 * z)), "`loss` has a derivative that is not finite"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_that_is_not_one_number_costs_one_line(use, name):
    loss, message = LOSSES[name]
    with pytest.raises((ValueError, TypeError), match=message) as error:
        USES[use](loss)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("use", sorted(set(USES) - {"simulate, traced"}))
@pytest.mark.parametrize("name", NOT_FINITE)
def test_a_loss_must_be_finite_before_training(use, name):
    loss, message = NOT_FINITE[name]
    with pytest.raises(ValueError, match=message):
        USES[use](loss)


@pytest.mark.parametrize("use", USES)
def test_a_sound_loss_is_taken(use):
    USES[use](lambda z, y: 0.5 * jnp.sum((z - y) ** 2))


def test_a_loss_that_becomes_infinite_later_is_a_status():
    run = nk.simulate(NET, PARAMS, X, Y, nk.GradientDescent(1e3, 30), loss=lambda z, y: jnp.sum((z - y) ** 4))
    assert not run.ok and "no longer finite" in run.status.message


SCHEDULES = {
    "negative": (lambda step: -1.0, "at step 0 it returns -1"),
    "negative later": (lambda step: 1.0 - step, "at step 2 it returns -1"),
    "nan": (lambda step: jnp.nan, "at step 0 it returns nan"),
    "infinite": (lambda step: 1 / step, "at step 0 it returns inf"),
    "None": (lambda step: None, r"`schedule\(step\)` must return one real number; it returns None"),
    "array": (lambda step: jnp.ones(3), r"must return one real number; it returns an array of shape \(3,\)"),
    "text": (lambda step: "a", "must return one real number; it returns 'a'"),
    "truth": (lambda step: True, "must return one real number; it returns True"),
    "two arguments": (lambda step, epoch: 1.0, r"`schedule` must be a JAX function schedule\(step\)"),
    "math": (lambda step: math.cos(step), f"`schedule` {NOT_JAX}"),
    "NumPy": (lambda step: np.cos(np.asarray(step)), f"`schedule` {NOT_JAX}"),
    "if": (lambda step: 1.0 if step < 2 else 0.5, f"`schedule` {NOT_JAX}"),
    "its own error": (lambda step: {}["a"], "`schedule` fails: KeyError"),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_bad_schedule_is_refused_where_it_is_given(name):
    schedule, message = SCHEDULES[name]
    with pytest.raises((ValueError, TypeError), match=message) as error:
        nk.SGD(0.02, 2, 4, schedule=schedule)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("schedule", [lambda step: 1 / (1 + step), lambda step: 0, lambda step: 0.5])
def test_a_sound_schedule_is_taken(schedule):
    sgd = nk.SGD(0.02, None, 4, schedule=schedule)
    expected = [0.02 * schedule(step) for step in range(4)]
    np.testing.assert_allclose(sgd.rates(), expected, rtol=1e-6)
    assert nk.simulate(NET, PARAMS, X, Y, sgd).ok


def test_schedules_are_made_and_used_while_tracing():
    def end(scale, schedule):
        sgd = nk.SGD(0.02, None, 3, schedule=schedule)
        return nk.simulate(NET, PARAMS, X, scale * Y, sgd).params[1]["weight"]

    plain = end(1.0, lambda step: 0.5 / (1 + step))
    inside = jax.jit(lambda a: end(a, lambda step: 0.5 / (1 + step)))(1.0)
    closed = jax.jit(lambda a: end(a, lambda step: 0.5 * a / (1 + step)))(1.0)
    np.testing.assert_allclose(inside, plain, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(closed, plain, rtol=1e-5, atol=1e-6)


BAD_OBSERVABLES = {
    "NumPy": (lambda params: np.sum(np.asarray(params[0]["weight"])), f"`observable` {NOT_JAX}"),
    "two arguments": (lambda params, x: 1.0, "`observable` must be a JAX function observable"),
    "None": (lambda params: None, "`observable` must return an array or a tree of arrays; got None"),
    "text": (lambda params: "a", "`observable` must return an array or a tree of arrays; got 'a'"),
}


@pytest.mark.parametrize("name", BAD_OBSERVABLES)
def test_a_bad_observable_costs_one_line(name):
    observable, message = BAD_OBSERVABLES[name]
    with pytest.raises(TypeError, match=message):
        nk.measure(observable, NET, 4, 0)
    with pytest.raises(TypeError, match=message):
        nk.simulate(NET, PARAMS, X, Y, STEPS, nk.Record({"a": observable}))


@pytest.mark.parametrize(
    "call",
    [
        lambda: nk.solve(nk.FeatureModel(lambda x: np.sin(np.asarray(x))), X, Y),
        lambda: nk.kernels.FeatureKernel(lambda x: np.sin(np.asarray(x)))(X),
        lambda: nk.kernels.EmpiricalNTK(
            nk.from_function(lambda p, x: np.asarray(x) @ np.asarray(p)), np.ones(3)
        )(X),
        lambda: nk.theory.representer(
            nk.kernels.RBF(1.0), X, Y, 0.1, lambda f, y: np.square(np.asarray(f) - y).sum()
        ),
    ],
)
def test_other_functions_must_be_written_with_jax_too(call):
    with pytest.raises(TypeError, match=NOT_JAX):
        call()


def test_the_loss_of_a_representer_must_be_finite():
    with pytest.raises(ValueError, match="is not finite at outputs 0"):
        nk.theory.representer(nk.kernels.RBF(1.0), X, Y, 0.1, lambda f, y: jnp.nan * jnp.sum(f))
