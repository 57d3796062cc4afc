"""Whether the derivative of a model jumps, found on a path of its parameters rather than in its code.

On a step h of the path theta + t v, outputs z and their slopes g = dz/dt obey

    z_1 - z_0 = h (g_0 + g_1) / 2 + O(h^3),    g_1 - g_0 = h (g'_0 + g'_1) / 2 + O(h^3)

where they are smooth. The step at which this fails most is halved again and again: what is left falls to rounding if
outputs and slopes are smooth, and stays if one of them jumps. Guards that no value reaches, such as the zero below a
variance, do not count, whatever the code says.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...models.base import AbstractModel, Params

_STEPS, _HALVINGS = 16, 24
_SEED = 0x6B696E6B  # not one that parameters are drawn by: a path along them only scales them
_JUMP: dict[type, float] = {np.float64: 1e-7, np.float32: 1e-3}  # smallest, beside the largest slope


class _Point(NamedTuple):
    """`t`, outputs, their slopes, and the slopes of these."""

    t: float
    z: np.ndarray
    slope: np.ndarray
    bend: np.ndarray


@in_float64
def jumps(model: AbstractModel, params: Params, x: np.ndarray) -> bool | None:
    """Whether outputs at `x` or their slopes jump as all parameters move by about their size; None if not known."""
    rng = np.random.default_rng(_SEED)
    direction = jax.tree.map(lambda leaf: _size(leaf) * rng.normal(size=np.shape(leaf)), params)

    def at(t: float) -> _Point:
        return _Point(t, *map(np.asarray, _along(model, params, direction, x, t)))

    try:
        path = [at(t) for t in np.linspace(-1.0, 1.0, _STEPS + 1)]
    except TypeError:  # a function with a backward of its own has no forward mode
        return None
    if not all(np.isfinite(part).all() for point in path for part in point[1:]):
        return None
    steepest = max(np.abs(point.slope).max() for point in path)
    return bool(_left_over(path, at) > _JUMP[_precision(path[0].z)] * steepest)


def _left_over(path: list[_Point], at: Callable[[float], _Point]) -> float:
    """Of the step that is least smooth, halved."""
    a, b = max(itertools.pairwise(path), key=lambda step: _misfit(*step))
    for _ in range(_HALVINGS):
        middle = at(0.5 * (a.t + b.t))
        a, b = max((a, middle), (middle, b), key=lambda step: _misfit(*step))
    return _misfit(a, b)


def _misfit(a: _Point, b: _Point) -> float:
    half = 0.5 * (b.t - a.t)
    of_outputs = np.abs(b.z - a.z - half * (a.slope + b.slope)).max()
    return float(max(of_outputs, np.abs(b.slope - a.slope - half * (a.bend + b.bend)).max()))


def _size(leaf: ArrayLike) -> float:
    """Root mean square; of zeros, such as a fresh bias, a tenth."""
    return float(np.sqrt(np.mean(np.square(np.asarray(leaf, dtype=np.float64))))) or 0.1


def _precision(z: np.ndarray) -> type:
    """float32 if all of `z` are numbers of it: then they were computed in it."""
    return np.float32 if np.array_equal(z, z.astype(np.float32)) else np.float64


@jax.jit
def _along(model, params, direction, x, t):
    def outputs(t):
        moved = jax.tree.map(lambda p, d: p + t * jnp.asarray(d, p.dtype), params, direction)
        return model(moved, x)

    def slope(t):
        return jax.jvp(outputs, (t,), (jnp.ones_like(t),))

    (z, first), (_, second) = jax.jvp(slope, (t,), (jnp.ones_like(t),))
    return z, first, second
