r"""Fluctuations around the limit of one hidden layer: the constant c of the covariance c/width, without any draw.

A network of N neurons is an empirical measure of neurons, and its trained outputs are a functional f of that measure.
With the influence psi(neuron) = df / d(weight of the neuron), which holds both what the neuron adds itself and how all
others respond to the change of the residual that it makes on the way,

    f_N = f + 1/N sum_i [psi(i) - <psi>] + O(1/N),    c = <psi psi^T> - <psi> <psi>^T.

One backward pass through training gives psi of one output for all neurons of the cloud.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._run.memory import require_fits
from ...activations.base import AbstractActivation
from ...dynamics.algorithms.sgd import SGD
from ...dynamics.simulation.steps import batch_rows
from .drivers import Flow
from .problem import Problem

NEURONS, SCRAMBLES = 2048, 2


class _Setting(NamedTuple):
    """What is fixed in a compiled training."""

    activation: AbstractActivation
    loss: Any
    weight_var: float
    bias_var: float
    richness: float
    centered: bool
    flows: bool
    batch_size: int | None


def has_response(problem: Problem) -> bool:
    """Whether influences are known: one hidden layer, whose slopes do not jump."""
    return problem.layout.depth == 1 and problem.layout.activations[0].smooth


def response_constants(problem: Problem, times: np.ndarray) -> np.ndarray:
    """c (m * out, m * out) of each scramble; `times` of a flow are the moments to go through."""
    require_fits(
        8 * NEURONS * (problem.xi.shape[1] + problem.y.shape[1] + 2) * (len(times) + 8)
        + 8 * 8 * NEURONS * len(problem.both),
        f"influences of {NEURONS} neurons over {len(times)} moments",
        "give `draws`, which draws networks instead",
    )
    return np.array([_constant(problem, times, scramble) for scramble in range(SCRAMBLES)])


def _constant(problem: Problem, times: np.ndarray, scramble: int) -> np.ndarray:
    network, chosen, layout = (
        problem.sampled(scramble, problem.tol, NEURONS),
        problem.algorithm,
        problem.layout,
    )
    driver = problem.driver()
    flows = isinstance(driver, Flow)
    setting = _Setting(
        layout.activations[0], problem.loss[0], layout.weight_vars[1], layout.bias_vars[1], layout.richness,
        problem.centered,
        flows, getattr(chosen, "batch_size", None),
    )  # fmt: skip
    rates = problem.speed * np.diff(times) if isinstance(driver, Flow) else driver.rates
    weights = np.asarray(network.clouds[0].weights, np.float64)
    start = tuple(np.asarray(part, np.float64) for part in (network.first, network.readout))
    momentum = float(chosen.momentum) if not flows else 0.0  # type: ignore[attr-defined]
    key = problem.loss[1] if isinstance(chosen, SGD) and chosen.batch_size is not None else jax.random.key(0)
    n = len(problem.x)
    data = problem.xi[:n], problem.y, problem.xi[n:]
    psi = np.asarray(_influences(setting, weights, start, data, rates, (momentum, problem.decay), key))
    around = psi - (psi @ weights)[:, None]
    return (around * weights) @ around.T


@jax.jit(static_argnums=0)
def _influences(setting, weights, start, data, rates, damping, key):
    """(m * out, M)."""
    trained, pull = jax.vjp(lambda w: _trained(setting, w, start, data, rates, damping, key).ravel(), weights)
    return jax.lax.map(lambda one: pull(one)[0], jnp.eye(trained.size))


def _trained(setting, weights, start, data, rates, damping, key):
    """Outputs at new points, (m, out), of a cloud with these weights."""
    xi, y, xi_new = data
    momentum, decay = damping
    root, gamma = setting.weight_var**0.5, setting.richness
    state = (*start, jnp.zeros(y.shape[1]))

    def outputs(state, points):
        first, readout, bias = state
        return (root * (setting.activation(points @ first) * weights) @ readout.T + bias) / gamma

    zero, zero_new = (outputs(state, points) * setting.centered for points in (xi, xi_new))

    def force(state, step):
        first, readout, _ = state
        error = jax.grad(setting.loss)(outputs(state, xi) - zero, y)
        if setting.batch_size is not None:
            rows = batch_rows(key, step, len(y), setting.batch_size)
            error = jnp.zeros_like(error).at[rows].set(error[rows] * (len(y) / setting.batch_size))
        after, slope = jax.jvp(setting.activation, (xi @ first,), (jnp.ones((len(xi), first.shape[1])),))
        gradient = root * slope * (error @ readout)
        return (
            gamma * xi.T @ gradient,
            gamma * root * error.T @ after,
            gamma * setting.bias_var * error.sum(axis=0),
        )

    moved = lambda state, change, amount: jax.tree.map(lambda a, b: a + amount * b, state, change)

    def stage(carry, at):
        state, velocity = carry
        step, rate = at
        if setting.flows:
            one = force(state, step)
            two = force(moved(state, one, -rate / 2), step)
            three = force(moved(state, two, -rate / 2), step)
            four = force(moved(state, three, -rate), step)
            for change, share in ((one, 1.0), (two, 2.0), (three, 2.0), (four, 1.0)):
                state = moved(state, change, -rate * share / 6)
            return (state, velocity), None
        velocity = jax.tree.map(lambda v, g: momentum * v + rate * g, velocity, force(state, step))
        state = jax.tree.map(lambda a: (1.0 - decay) * a, state)
        return (moved(state, velocity, -1.0), velocity), None

    still = jax.tree.map(jnp.zeros_like, state)
    steps = jnp.arange(len(rates), dtype=jnp.uint32)
    (state, _), _ = jax.lax.scan(jax.checkpoint(stage), (state, still), (steps, jnp.asarray(rates)))
    return outputs(state, xi_new) - zero_new
