"""Networks trained to the ridge solution: half the squared error, and half the ridge times the squared distance from
the initial weights. Nesterov's method takes as many steps as the root of what plain gradient descent needs."""

import functools
import math
from typing import NamedTuple

import jax


class Pace(NamedTuple):
    """Learning rate and momentum, and in how many parts of `PART` steps the slowest direction settles, if in few."""

    lr: float
    momentum: float
    parts: int


PART = 50  # steps between two looks
MOST_PARTS = 20


def pace(largest: float, ridge: float) -> Pace:
    """For this largest eigenvalue of the kernel, with a margin for networks whose kernel is larger."""
    lr = 0.5 / (largest + ridge)
    slowest = math.sqrt(lr * ridge)
    parts = min(MOST_PARTS, max(4, math.ceil(5 / slowest / PART)))
    return Pace(lr, (1 - slowest) / (1 + slowest), parts)


@functools.partial(jax.jit, static_argnums=8)
def descended(net, state, start, x, targets, weights, ridge, pace, steps=PART):
    """Parameters of networks side by side, now and one step ago, some steps later.

    `targets` (networks, n, out); `weights` (n,) of the rows.
    """

    def loss(theta, start, targets):
        moved = jax.tree.map(lambda a, b: ((a - b) ** 2).sum(), theta, start)
        wrong = (weights[:, None] * (net(theta, x) - targets) ** 2).sum()
        return 0.5 * wrong + 0.5 * ridge * sum(jax.tree.leaves(moved))

    def step(state, _):
        theta, before = state
        ahead = jax.tree.map(lambda a, b: a + pace.momentum * (a - b), theta, before)
        slope = jax.vmap(jax.grad(loss))(ahead, start, targets)
        return (jax.tree.map(lambda a, b: a - pace.lr * b, ahead, slope), theta), None

    return jax.lax.scan(step, state, None, steps)[0]
