"""The loops of training, compiled: a group of steps a record."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import observed as observed_by
from ...models.base import AbstractModel, Params
from ...models.expansion.derivatives import jacobian
from ...models.networks.scaled import Scaled
from ...models.params import root_factors
from ..algorithms.adaptive import Adam, Optax
from ..algorithms.divergence import rounding_of
from ..algorithms.ode import integrate
from ..algorithms.sgd import SGD
from ..algorithms.spectral import AbstractAlgorithm

_PRODUCTS = 6  # with the Hessian, for its largest eigenvalue
_SHORTEST = 2e-3  # of the fastest time scale: the shortest step of a flow
_ROUNDING = 1e-14  # of a gradient


NAMED = ("outputs", "features", "kernel", "weights")  # what a run may keep by name, on its training inputs


class Problem(eqx.Module):
    """A model with its data; `lr_factors` (or None) scale the gradient of each parameter; `start`, where it begins."""

    model: AbstractModel
    x: jax.Array
    y: jax.Array
    lr_factors: Params | float | None
    start: Params

    def loss(self, loss, params, rows=slice(None)):
        return loss(self.model(params, self.x[rows]), self.y[rows])

    def weighted_loss(self, loss, params, weights):
        """The loss of each point times its weight."""
        each = jax.vmap(lambda z, y: loss(z[None], y[None]))(self.model(params, self.x), self.y)
        return jnp.sum(weights * each)

    def scaled(self, gradient):
        if self.lr_factors is None:
            return gradient
        return jax.tree.map(lambda factor, g: factor * g, self.lr_factors, gradient)

    def moving(self, tree):
        """A tree like the parameters, 0 where they do not train: where a centered model started."""
        return self.model.whole(self.model.moving(tree)[1]) if isinstance(self.model, Scaled) else tree

    def decayed(self, params, algorithm: SGD):
        """`params` that train are nearer to 0 or to their start; a start that is kept is not."""
        share = algorithm.lr * algorithm.weight_decay
        at_start = algorithm.decay_to == "start"
        moving = jax.tree.map(jnp.subtract, params, self.start) if at_start else self.moving(params)
        return jax.tree.map(lambda p, m: (p - share * m).astype(p.dtype), params, moving)


class State(NamedTuple):
    """Parameters, their velocity (of Adam both means, of optax its state), and the time or steps so far."""

    params: Params
    velocity: Params
    time: jax.Array


def rest_of(algorithm: AbstractAlgorithm, params: Params) -> Params:
    """The velocity of a state at rest."""
    if isinstance(algorithm, Optax):
        return algorithm.transformation.init(params)
    rest = jax.tree.map(jnp.zeros_like, params)
    return (rest, rest) if isinstance(algorithm, Adam) else rest


def batch_rows(key, step, n: int, size: int) -> jax.Array:
    """The points that SGD looks at in a step: the same for the same `key`, whoever asks."""
    return jax.random.choice(jax.random.fold_in(key, step), n, (size,), replace=False)


def observed(
    what: str | Callable[[Params], jax.Array],
    model: AbstractModel,
    params: Params,
    x: jax.Array,
    lr_factors: Params | None,
) -> Params:
    """The value of a function of the parameters, or of what a name stands for; features have root `lr_factors`."""
    if not isinstance(what, str):
        return observed_by(what, params)
    if what == "weights":
        return params
    if what == "outputs":
        return model(params, x)
    features, roots = jacobian(model, params, x), root_factors(lr_factors, params)
    features = features if roots is None else features * roots
    return features if what == "features" else jnp.tensordot(features, features, axes=([2], [2]))


def _norm(tree) -> jax.Array:
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def _observe(problem, loss, observables, state) -> dict:
    """A record without a step after it."""
    value, gradient = jax.value_and_grad(lambda p: problem.loss(loss, p))(state.params)
    return _row(problem, observables, state, value, gradient)


def _row(problem, observables, state, value, gradient) -> dict:
    row = {"time": state.time, "loss": value, "gradient": _norm(gradient)}
    here = problem.model, state.params, problem.x, problem.lr_factors
    return row | {name: observed(what, *here) for name, what in observables}


observe = jax.jit(_observe, static_argnums=(1, 2))


@jax.jit(static_argnums=(1, 2, 6, 7))
def descend(problem: Problem, loss, observables, algorithm, key, state: State, groups: int, inner: int):
    """`groups` records, each followed by `inner` steps: (state, rows)."""
    drawn = isinstance(algorithm, SGD | Optax) and algorithm.random
    momentum = getattr(algorithm, "momentum", 0.0)

    def gradient(state):
        step, n = state.time.astype(jnp.uint32), len(problem.x)
        size = getattr(algorithm, "batch_size", None)
        if size is None:
            value, slope = jax.value_and_grad(lambda p: problem.loss(loss, p))(state.params)
        elif isinstance(algorithm, SGD) and algorithm.batches == "bernoulli":
            taken = jax.random.bernoulli(jax.random.fold_in(key, step), size / n, (n,))
            value, slope = jax.value_and_grad(lambda p: problem.weighted_loss(loss, p, taken * (n / size)))(
                state.params
            )
        else:
            rows = batch_rows(key, step, n, size)
            value, slope = jax.value_and_grad(lambda p: problem.loss(loss, p, rows))(state.params)
            slope = jax.tree.map(lambda g: g * (n / size), slope)
        if isinstance(algorithm, SGD) and algorithm.noise:
            slope = _with_noise(slope, algorithm.noise, jax.random.fold_in(jax.random.fold_in(key, 1), step))
        return value, slope

    def transformed(state, slope):
        updates, inner = algorithm.transformation.update(slope, state.velocity, state.params)
        updates = problem.scaled(
            problem.moving(updates)
        )  # decay within an optimizer leaves a kept start alone
        params = jax.tree.map(lambda p, u: (p + u).astype(p.dtype), state.params, updates)
        inner = jax.tree.map(lambda new, old: jnp.asarray(new, jnp.result_type(old)), inner, state.velocity)
        return State(params, inner, state.time + 1)

    def adapted(state, slope):
        pairs = zip(jax.tree.leaves(slope), *map(jax.tree.leaves, state.velocity), strict=True)
        mixed = [
            (
                algorithm.beta1 * m + (1 - algorithm.beta1) * g,
                algorithm.beta2 * v + (1 - algorithm.beta2) * g**2,
            )
            for g, m, v in pairs
        ]
        tree = jax.tree.structure(slope)
        moves = [algorithm.direction(means, state.time) for means in mixed]
        step = problem.scaled(jax.tree.unflatten(tree, moves))
        params = jax.tree.map(lambda p, s: (p - algorithm.lr * s).astype(p.dtype), state.params, step)
        means = tuple(jax.tree.unflatten(tree, part) for part in zip(*mixed, strict=True))
        means = jax.tree.map(lambda new, old: new.astype(old.dtype), means, state.velocity)
        return State(params, means, state.time + 1)

    def move(state, slope):
        if isinstance(algorithm, Adam):
            return adapted(state, slope)
        if isinstance(algorithm, Optax):
            return transformed(state, slope)
        rate = algorithm.rate(state.time) if isinstance(algorithm, SGD) else algorithm.lr

        def stepped(v, g):  # the caller's parameters keep their dtype, whatever that of the learning rate
            return (momentum * v - rate * g).astype(v.dtype)

        step = jax.tree.map(stepped, state.velocity, problem.scaled(slope))
        params = problem.decayed(state.params, algorithm) if isinstance(algorithm, SGD) else state.params
        return State(jax.tree.map(jnp.add, params, step), step, state.time + 1)

    def group(state, _):
        value, slope = gradient(state)
        if drawn:
            row = _observe(problem, loss, observables, state)
        else:
            row = _row(problem, observables, state, value, slope)
        state = move(state, slope)
        return jax.lax.fori_loop(1, inner, lambda _, s: move(s, gradient(s)[1]), state), row

    return jax.lax.scan(group, state, length=groups)


def _with_noise(tree: Params, scale: float | jax.Array, key: jax.Array) -> Params:
    leaves, shape = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    drawn = [
        leaf + (scale * jax.random.normal(k, leaf.shape, leaf.dtype)).astype(leaf.dtype)
        for leaf, k in zip(leaves, keys, strict=True)
    ]
    return jax.tree.unflatten(shape, drawn)


def _curvature(gradient, params) -> jax.Array:
    """The largest eigenvalue of the Hessian, roughly: by a few products with it, from the gradient on."""

    def turn(_, carried):
        direction, _ = carried
        size = _norm(direction)
        unit = jax.tree.map(lambda d: d / jnp.where(size > 0, size, 1.0), direction)
        direction = jax.jvp(gradient, (params,), (unit,))[1]
        return direction, _norm(direction)

    return jax.lax.fori_loop(0, _PRODUCTS, turn, turn(0, (gradient(params), jnp.asarray(0.0))))[1]


@jax.jit(static_argnums=(1, 2))
def flow(problem: Problem, loss, observables, friction, state: State, times: jax.Array):
    """Gradient flow through `times` (the first is now): (state at the last, last finite state, rows, success).

    Gradients of kinked networks jump. Where a trajectory slides along a jump, steps that resolve it would never end;
    those of a small part of the fastest time scale do, like small steps of gradient descent.
    """
    gradient = lambda p: problem.scaled(jax.grad(lambda p: problem.loss(loss, p))(p))
    pull = jax.grad(lambda p: jnp.vdot(problem.model(p, problem.x), problem.y))(state.params)
    least = _ROUNDING * jnp.maximum(_norm(gradient(state.params)), _norm(problem.scaled(pull)))
    rate = _curvature(gradient, state.params)
    if friction is not None:
        rate = jnp.maximum(jnp.sqrt(rate), friction)

    def field(position):
        params, velocity = position
        force = jax.tree.map(jnp.negative, gradient(params))
        if friction is None:  # what is left of a gradient by rounding would only keep steps short
            moves = _norm(force) > least
            force = jax.tree.map(lambda f: jnp.where(moves, f, 0.0), force)
            return force, jax.tree.map(jnp.zeros_like, velocity)
        return velocity, jax.tree.map(lambda f, v: f - friction * v, force, velocity)

    shortest = jnp.where(rate > 0, _SHORTEST / jnp.where(rate > 0, rate, 1.0), 0.0)
    dtype = jnp.result_type(*jax.tree.leaves(state.params))
    times, rounding = times.astype(dtype), rounding_of(dtype)  # what a solver can reach
    (params, velocity), success = integrate(
        field,
        (state.params, state.velocity),
        times,
        rtol=max(1e-10, rounding),
        atol=max(1e-12, rounding / 64),
        shortest=shortest.astype(dtype),
    )
    states = State(params, velocity, times)
    rows = jax.lax.map(lambda s: _observe(problem, loss, observables, State(*s)), tuple(states))
    finite = jnp.isfinite(rows["loss"]) & jnp.isfinite(rows["gradient"])
    reached = jnp.maximum(jnp.sum(jnp.cumprod(finite)) - 1, 0)
    last = jax.tree.map(lambda leaf: leaf[-1], states)
    good = jax.tree.map(lambda leaf: leaf[reached], states)
    return last, good, rows, success & finite.all()
