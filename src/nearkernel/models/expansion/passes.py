"""Derivative passes of any model, compiled: each for a batch of weights (R, m) and directions (R, P).

A pass returns (outputs (R, m) or None, parameters (R, P) or None). `mode` says how a curve through parameter space is
followed: by Taylor series, by nested derivatives, or by a model cut off after its second degree.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.jet import jet
from jax.flatten_util import ravel_pytree

from ..._base.types import Params
from ..base import AbstractModel


def flat(model, params, x):
    """The model as a function of one vector of parameters, and that vector."""
    theta, unravel = ravel_pytree(params)
    return lambda t: model(unravel(t), x).reshape(-1), theta


def along(function, direction):
    return lambda t: jax.jvp(function, (t,), (direction,))[1]


def _coefficients(function, theta, moved, order, mode):
    """z_1 .. z_order of z(theta + t moved_0 + t^2 moved_1) = z_0 + t z_1 + ..., up to order 3."""
    if mode == "taylor":
        series = [math.factorial(k) * step for k, step in enumerate(moved, start=1)]
        series += [jnp.zeros_like(theta)] * (order - len(series))
        terms = jet(function, (theta,), (series,))[1]
        return [value / math.factorial(k) for k, value in enumerate(terms, start=1)]
    first = along(function, moved[0])
    twice = along(first, moved[0])
    terms = [first(theta), 0.5 * twice(theta)]
    if len(moved) > 1:
        terms[1] += along(function, moved[1])(theta)
    if order > 2:
        cube = 0.0 if mode == "quadratic" else along(twice, moved[0])(theta) / 6
        terms.append(along(first, moved[1])(theta) + cube)
    return terms


def _push(model, params, x, weights, directions):
    function, theta = flat(model, params, x)
    return jax.vmap(jax.linearize(function, theta)[1])(*directions), None


def _pull(model, params, x, weights, directions):
    function, theta = flat(model, params, x)
    return None, jax.vmap(jax.vjp(function, theta)[1])(*weights)[0]


def _bend(model, params, x, weights, directions):
    function, theta = flat(model, params, x)
    return jax.vmap(lambda u, v: along(along(function, u), v)(theta))(*directions), None


def _twist(model, params, x, weights, directions):
    function, theta = flat(model, params, x)
    return jax.vmap(lambda u: along(along(along(function, u), u), u)(theta))(*directions), None


def _bend_pull(model, params, x, weights, directions):
    function, theta = flat(model, params, x)
    return None, jax.vmap(lambda p, v: jax.grad(lambda t: p @ along(function, v)(t))(theta))(
        *weights, *directions
    )


def _bend_pull_sum(model, params, x, weights, directions):
    """sum_r H[p_r] v_r, (1, P): one gradient for all."""
    function, theta = flat(model, params, x)

    def weighted(t):
        return jnp.sum(weights[0] * jax.vmap(jax.linearize(function, t)[1])(directions[0]))

    return None, jax.grad(weighted)(theta)[None]


def _curve(mode, model, params, x, weights, directions):
    function, theta = flat(model, params, x)
    order = len(directions) + 1
    return jax.vmap(lambda *w: _coefficients(function, theta, w, order, mode)[-1])(*directions), None


def _curved(mode, model, params, x, weights, directions):
    """What `_curve` gives, and the gradient that curvature adds, from one evaluation."""
    function, theta = flat(model, params, x)
    order = len(directions)

    def both(r, w):
        def weighted(t):
            terms = _coefficients(function, t, w, order + 1, mode)
            if order == 1:
                return r[0] @ terms[0], terms[-1]
            # Without a third degree, the curvature that the path itself adds to z_2 has no gradient.
            second = along(function, w[1])(t) if mode == "quadratic" else terms[1]
            return r[1] @ terms[0] + r[0] @ second, terms[-1]

        gradient, last = jax.grad(weighted, has_aux=True)(theta)
        return last, gradient

    return jax.vmap(both)(weights, directions)


PASSES: dict[str, Callable] = {
    "push": jax.jit(_push),
    "pull": jax.jit(_pull),
    "bend": jax.jit(_bend),
    "twist": jax.jit(_twist),
    "bend_pull": jax.jit(_bend_pull),
    "bend_pull_sum": jax.jit(_bend_pull_sum),
    **{f"curve, {mode}": jax.jit(functools.partial(_curve, mode)) for mode in ("nested", "quadratic")},
    **{f"curved, {m}": jax.jit(functools.partial(_curved, m)) for m in ("taylor", "nested", "quadratic")},
}


def mode_for(model: AbstractModel, params: Params, x: np.ndarray, degree: int) -> str:
    """Taylor series where JAX knows those of all operations of this model; it lacks a few."""
    if degree == 2:
        return "quadratic"
    function, theta = flat(model, params, x)
    try:
        jax.eval_shape(lambda t: _coefficients(function, t, (t,), 3, "taylor"), theta)
    except Exception:  # an operation without a rule fails in its own way
        return "nested"
    return "taylor"
