r"""One layer of finite width, as an operator on functions of the angle between two inputs.

Let u_i, v_i, i = 1 ... n, be independent pairs of standard normals of correlation cos(angle), and g the Gram matrix

    g11 = sum s(u_i)^2 / n,   g12 = sum s(u_i) s(v_i) / n,   g22 = sum s(v_i)^2 / n

of n neurons s that are linear on either side of 0. Since s(a z) = a s(z) for a > 0, deeper layers see no more of them
than lengths, which factor out, and the new angle c, cos(c) = g12 / sqrt(g11 g22). A layer maps a function f of the
angle to

    (T f)(angle) = E[sqrt(g11 g22) f(c)].

For f = (1 - cos(c)^2) h_k(cos(c)), with -1 <= k <= 1 and

    h_k(y) = int int over a, b > 0 of exp(-a^2 - 2 k y a b - b^2) = arccos(k y) / (2 sqrt(1 - k^2 y^2)),

g stands in an exponent, so that neurons factorize: E[exp(-sum over neurons)] = M^n, and M, of one neuron, is a sum of
Gaussian integrals over four quadrants, known in closed form. What remains is an integral over a and b. With 1 and
cos(c), these functions span what is smooth in c.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._run.precision import in_float64

_COUNT = 28
ANGLES = np.pi / 2 * (1 - np.cos(np.pi * (np.arange(_COUNT) + 0.5) / _COUNT))  # Chebyshev's nodes in (0, pi)
_U = np.concatenate([[np.inf, -np.inf], np.linspace(-5.0, 5.0, 29)])
# k = sign (1 - short) = -tanh(u)
_SIGN, _SHORT = np.where(_U > 0, -1.0, 1.0), 2 / (1 + np.exp(2 * np.abs(_U)))
SMOOTH = np.concatenate([[True, True], np.isfinite(_U)])  # functions that have a D f at angles 0 and pi
_SMALL = 1e-4


class Step(NamedTuple):
    """T f and D T f, with D = cos d/dcos, for the functions f of `family` at `ANGLES`: each (angles, functions)."""

    value: np.ndarray
    derived: np.ndarray


def family(angle: np.ndarray) -> np.ndarray:
    """1, cos and the functions of all k: (angles, functions)."""
    c, _, _, h = _family(angle)
    return np.hstack([np.ones_like(c), c, np.sin(angle)[:, None] ** 2 * h])


def derived_family(angle: np.ndarray) -> np.ndarray:
    """D of them, for angles between 0 and pi: (angles, functions)."""
    c, y, z, h = _family(angle)
    slope = np.where((z < _SMALL) & (y > 0), -(1 + 0.4 * z) / 6, (2 * y * h - 1) / (2 * z))
    derived = y * np.sin(angle)[:, None] ** 2 * slope - 2 * c**2 * h
    return np.hstack([np.zeros_like(c), c, derived])


def _family(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """c = cos(angle), y = k c, 1 - y^2 and h_k(c)."""
    angle = np.asarray(angle, np.float64)[:, None]
    c = np.cos(angle)
    y = _SIGN * (1 - _SHORT) * c
    z = np.maximum(_one_plus(angle, _SIGN, _SHORT, np) * _one_plus(angle, -_SIGN, _SHORT, np), 1e-300)
    return c, y, z, np.arctan2(np.sqrt(z), y) / (2 * np.sqrt(z))


def _one_plus(angle: Any, sign: Any, short: Any, xp: Any) -> Any:
    """1 + k cos(angle), k = sign (1 - short), to all digits."""
    near, far = 2 * xp.sin(angle / 2) ** 2, 2 * xp.cos(angle / 2) ** 2
    return xp.where(sign < 0, near + short * xp.cos(angle), far - short * xp.cos(angle))


@functools.lru_cache(maxsize=256)
@in_float64
def gram_step(width: int, left: float) -> Step:
    """The operator of `width` neurons with slopes 1 and `left`, |left| <= 1; to about 1e-8."""
    n = float(width)
    constant, linear = _of_constant(n, left, ANGLES, _GRID), _of_cosine(left)
    if width == 1:  # g has rank one
        rest = np.zeros((2, _COUNT, len(_U)))
    else:
        rest = np.array(_of_family(n, left, ANGLES, _GRID, (_SIGN, _SHORT)))
    columns = [np.column_stack([constant[d], linear[d], rest[d]]) for d in (0, 1)]
    return Step(columns[0], -columns[1] / np.tan(ANGLES)[:, None])


def _of_cosine(left: float) -> tuple[np.ndarray, np.ndarray]:
    """E[g12] = E[s(u) s(v)] and its derivative by the angle: the same at any width."""
    same, mixed = (1 + left**2) / (2 * np.pi), left / np.pi
    sine, cosine = np.sin(ANGLES), np.cos(ANGLES)
    value = same * (sine + (np.pi - ANGLES) * cosine) - mixed * (sine - ANGLES * cosine)
    return value, -(same * (np.pi - ANGLES) + mixed * ANGLES) * sine


def _grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b and weights of the integral over both, b < a counted twice: a b = exp(2 p) by equal steps of p,
    a / b = exp(t) by the double exponential rule, since k near -1 makes a ridge along a = b."""
    step_p, step_w = 0.25, 0.096
    p, w = np.arange(-10.0, 12.0, step_p)[:, None], np.arange(-3.0, 1.8, step_w)
    t = np.exp(np.pi / 2 * np.sinh(w))
    weights = 2 * step_p * step_w * np.pi / 2 * np.cosh(w) * t * np.exp(2 * p)
    return np.exp(p + t / 2), np.exp(p - t / 2), weights


_GRID = _grid()  # an argument below, or XLA would compute with it while it compiles


@jax.jit
def _of_family(n: Any, left: Any, angles: Any, grid: Any, ks: Any) -> tuple[jax.Array, jax.Array]:
    """T f for all k, and its derivative by the angle: each (angles, ks)."""

    def average(angle, sign, short):
        m = _neuron(angle, sign, short, left, n, grid)
        return jnp.sum(grid[2] * jnp.exp((n - 2) * jnp.log(m.one)) * (m.uu * m.vv - m.uv**2)) * (n - 1) / n

    each = _with_slope(average)  # one k a time: then the grid of a and b stays in the cache
    return jax.lax.map(lambda angle: jax.lax.map(lambda k: each(angle, *k), ks), angles)


@jax.jit
def _of_constant(n: Any, left: Any, angles: Any, grid: Any) -> tuple[jax.Array, jax.Array]:
    """E[sqrt(g11 g22)], and its derivative by the angle: h_0 is pi/4, and g11 g22 takes the place of det(g)."""

    def average(angle):
        m = _neuron(angle, 1.0, 1.0, left, n, grid)
        both = (n - 1) * m.uu * m.vv / m.one + m.uuvv
        return 4 / np.pi * jnp.sum(grid[2] * jnp.exp((n - 1) * jnp.log(m.one)) * both) / n

    return jax.lax.map(_with_slope(average), angles)


def _with_slope(function):
    def both(angle, *others):
        return jax.jvp(lambda at: function(at, *others), (angle,), (jnp.ones_like(angle),))

    return both


class _Neuron(NamedTuple):
    """E[w], E[s(u)^2 w], E[s(v)^2 w], E[s(u) s(v) w], E[s(u)^2 s(v)^2 w] of one neuron, with
    w = exp(-a^2 s(u)^2 - 2 k a b s(u) s(v) - b^2 s(v)^2)."""

    one: Any
    uu: Any
    vv: Any
    uv: Any
    uuvv: Any


def _neuron(angle: Any, sign: Any, short: Any, left: Any, n: Any, grid: Any) -> _Neuron:
    """Sums over the four quadrants of u and v, on the grid of a and b in units of 1/sqrt(n)."""
    a, b, k = grid[0] / jnp.sqrt(n), grid[1] / jnp.sqrt(n), sign * (1 - short)
    c, s = jnp.cos(angle), jnp.sin(angle)
    side = np.array([1.0, 1.0, -1.0, -1.0])[:, None, None]  # u v > 0 or < 0
    slope_u = jnp.stack([1.0, left, 1.0, left])[:, None, None]
    slope_v = jnp.stack([1.0, left, left, 1.0])[:, None, None]
    product = slope_u * slope_v
    # exp(-(u, v) P (u, v)) over u, v > 0, where s^2 P has the determinant s^2 size, the corner cross and by_u by_v.
    size = (
        1
        + 2 * (jnp.abs(slope_u) * a - jnp.abs(slope_v) * b) ** 2
        + 4 * jnp.abs(product) * a * b * _one_plus(angle, sign * jnp.sign(product), short, jnp)
        + 4 * (s * product * a * b) ** 2 * short * (2 - short)
    )
    cross = side * (2 * product * k * a * b * s * s - c)
    by_u, by_v = 1 + 2 * (slope_u * a * s) ** 2, 1 + 2 * (slope_v * b * s) ** 2
    value = jnp.arctan2(s * jnp.sqrt(size), cross) / jnp.sqrt(size)
    part = cross * s / (size * by_u * by_v)
    first = 0.5 * (part - value / size)  # derivative by size
    second = 0.75 * (value / size - part) / size - 0.5 * part * s * s / (by_u * by_v)
    quadrants = (
        value,
        -2 * first * by_v * slope_u**2,
        -2 * first * by_u * slope_v**2,
        side * product * (s - cross * value) / size,
        4 * (second * by_u * by_v + first * s * s) * product**2,
    )
    return _Neuron(*(each.sum(axis=0) / (2 * np.pi) for each in quadrants))
