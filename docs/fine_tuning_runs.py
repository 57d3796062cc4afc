"""Networks trained for real: pre-training, and gradient descent, SGD and Adam with all outputs on the way."""

import jax
import jax.numpy as jnp
from fine_tuning_networks import TRAIN

PRE_STEPS, PRE_RATE, PRE_BATCH = 300, 3e-3, 64
BATCH, SLOWER = 10, 2  # SGD takes steps `SLOWER` times as small, and as many more
ADAM_RATE = 2e-3


def adam_step(params, gradient, moments, step, rate):
    first, second = moments
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, gradient)
    corrected = rate * jnp.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    params = jax.tree.map(lambda p, m, v: p - corrected * m / (jnp.sqrt(v) + 1e-8), params, first, second)
    return params, (first, second)


def pretrained(model, x, y, loss):
    """A compiled function of parameters and a key: after Adam on batches of the mean loss."""

    @jax.jit
    def run(params, key):
        def step(state, t):
            params, moments = state
            rows = jax.random.randint(jax.random.fold_in(key, t), (PRE_BATCH,), 0, len(x))
            gradient = jax.grad(lambda p: loss(model(p, x[rows]), y[rows]) / PRE_BATCH)(params)
            return adam_step(params, gradient, moments, t, PRE_RATE), None

        zeros = jax.tree.map(jnp.zeros_like, params)
        return jax.lax.scan(step, (params, (zeros, zeros)), jnp.arange(PRE_STEPS))[0][0]

    return run


def trainers(model, loss, steps):
    """By name, compiled functions of parameters, rows, targets, rate and key: all outputs after each step."""

    def gradient(params, x, y):
        return jax.grad(lambda p: loss(model(p, x), y))(params)

    def descent(params, rows, y, rate, key):
        def step(params, _):
            moved = jax.tree.map(lambda p, g: p - rate * g, params, gradient(params, rows[:TRAIN], y))
            return moved, model(moved, rows)

        return jax.lax.scan(step, params, None, steps)[1]

    def sgd(params, rows, y, rate, key):
        def step(params, t):
            batch = jax.random.permutation(jax.random.fold_in(key, t), TRAIN)[:BATCH]
            slope = gradient(params, rows[batch], y[batch])
            factor = rate / SLOWER * TRAIN / BATCH
            return jax.tree.map(lambda p, g: p - factor * g, params, slope), None

        return model(jax.lax.scan(step, params, jnp.arange(SLOWER * steps))[0], rows)

    def adam(params, rows, y, rate, key):
        def step(state, t):
            params, moments = state
            slope = gradient(params, rows[:TRAIN], y)
            params, moments = adam_step(params, slope, moments, t, ADAM_RATE)
            return (params, moments), model(params, rows)

        zeros = jax.tree.map(jnp.zeros_like, params)
        return jax.lax.scan(step, (params, (zeros, zeros)), jnp.arange(steps))[1]

    return {name: jax.jit(each) for name, each in (("descent", descent), ("sgd", sgd), ("adam", adam))}
