r"""Gaussian averages of any callable by its Hermite series.

With a_k(q) = E[s(sqrt(q) z) h_k(z)], h_k the normalized Hermite polynomials, Mehler's formula gives

    E[s(u) s(v)] = sum_k a_k(q1) a_k(q2) c^k,   E[s'(u) s'(v)] = its derivative by c / sqrt(q1 q2):

the integrals are done once per input, not once per pair. For smooth functions the series converges at
every correlation; for kinked ones, or far beyond the scale of the function, only below `trusted_correlation`,
and quadrature does the rest.
"""

import functools
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._precision import is_traced
from ._angle import safe_sqrt
from ._base import AbstractActivation, Moments, Rows
from ._panels import NODES, WEIGHTS, Panels, cached_panels
from ._quadrature import pair_quadrature

REACH = 12.0  # exp(-REACH^2 / 2) = 5e-32: no more Gaussian beyond
_TOLERANCE = 1e-11
_SMALLEST_Q = 1e-20
_CHUNK = 8
_LADDER = (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_MOST_SHARED_NODES = 20_000


@functools.lru_cache(maxsize=32)
def shared_nodes(width: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and Gaussian weights on equal panels of [-REACH, REACH]."""
    edges = np.linspace(-REACH, REACH, int(np.ceil(2 * REACH / width)) + 1)
    half = 0.5 * np.diff(edges)[:, None]
    z = ((edges[:-1, None] + half) + half * NODES).ravel()
    return z, (half * WEIGHTS).ravel() * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


@functools.lru_cache(maxsize=32)
def _weighted_hermite(width: float, terms: int) -> tuple[np.ndarray, np.ndarray]:
    """(nodes, weight * h_k(nodes) for k < terms)."""
    z, weights = shared_nodes(width)
    table = np.empty((terms, len(z)))
    table[0], table[1] = weights, weights * z
    for k in range(1, terms - 1):
        table[k + 1] = (z * table[k] - np.sqrt(k) * table[k - 1]) / np.sqrt(k + 1.0)
    return z, table


def nodes_per_row(panels: Panels, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Nodes and Gaussian weights (m, n) for each variance: panels of the function and of the Gaussian."""
    base = jnp.asarray(np.linspace(-REACH, REACH, 49))
    own = jnp.asarray(panels.edges)[:, None] / jnp.sqrt(q)
    edges = jnp.sort(
        jnp.concatenate([jnp.broadcast_to(base[:, None], (49, q.size)), jnp.clip(own, -REACH, REACH)]), axis=0
    )
    half = 0.5 * jnp.diff(edges, axis=0)[:, None]
    z = (edges[:-1, None] + half) + half * NODES[:, None]
    weights = half * WEIGHTS[:, None] * jnp.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return z.reshape(-1, q.size), weights.reshape(-1, q.size)


class Series(AbstractActivation):
    """Any callable s, traceable by JAX, with its averages by Hermite series.

    **Fields:** `function`; `name`, for messages; `parity`, which powers of c occur beyond the first
    ("odd", "even" or "all"); `terms`, how many powers are kept; `width`, of the shared quadrature panels
    (0: each row has its own nodes); `converged`, whether the series holds up to correlation 1.
    """

    depends_on_range: ClassVar[bool] = True

    function: Callable = eqx.field(static=True)
    name: str = eqx.field(static=True)
    parity: str = eqx.field(static=True)
    terms: int = eqx.field(static=True, default=128)
    width: float = eqx.field(static=True, default=0.25)
    converged: bool = eqx.field(static=True, default=True)

    def __call__(self, z: jax.Array) -> jax.Array:
        return self.function(z)

    def panels(self, q_max: float) -> Panels:
        reach = 2.0 ** np.ceil(np.log2(REACH * max(np.sqrt(q_max), 1.0)))
        return cached_panels(on_numpy(self.function), float(reach), self.name)

    def prepared(self, q: np.ndarray) -> "Series":
        """With the number of terms and the nodes that the range of `q` needs."""
        low, high = max(float(q.min()), _SMALLEST_Q), max(float(q.max()), _SMALLEST_Q)
        narrow = self.panels(high).narrowest
        width = 2.0 ** np.floor(np.log2(narrow / np.sqrt(high))) if narrow else 0.0
        if width * _MOST_SHARED_NODES < 2 * REACH * len(NODES):
            width = 0.0
        samples = np.geomspace(low, high, 5 if low < high else 1)
        for terms in _LADDER if width else (64, 256, 512):
            trial = Series(
                self.function, self.name, self.parity, terms, float(min(width, 0.5, 8 / np.sqrt(terms)))
            )
            if trial._tail(samples) <= _TOLERANCE:
                return trial
        return Series(self.function, self.name, self.parity, trial.terms, trial.width, converged=False)

    def trusted_correlation(self) -> float:
        return 1.0 if self.converged else float(1e-12 ** (1.0 / self.terms))

    def quadrature(self, q1: np.ndarray, q2: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q1, q2 = np.maximum(q1, _SMALLEST_Q), np.maximum(q2, _SMALLEST_Q)
        panels = self.panels(float(max(q1.max(), q2.max())))
        functions = on_numpy(self.function), on_numpy(slope_of(self.function))
        value, slope = pair_quadrature(*functions, panels, q1, q2, gap)
        same = np.zeros(len(gap))
        size = np.sqrt(
            pair_quadrature(*functions, panels, q1, q1, same)[0]
            * pair_quadrature(*functions, panels, q2, q2, same)[0]
        )
        return np.maximum(1.0 - value / np.where(size > 0, size, 1.0), 0.0), slope

    def _nodes(self, q: jax.Array) -> tuple[jax.Array, jax.Array]:
        if self.width:
            z, weights = shared_nodes(self.width)
            return jnp.asarray(z)[:, None], jnp.asarray(weights)[:, None]
        reach = 64.0 if is_traced(q) else float(jnp.max(q))
        return nodes_per_row(self.panels(reach), q)

    def moments(self, q: jax.Array) -> Moments:
        q = jnp.maximum(q, _SMALLEST_Q)
        z, weights = self._nodes(q.ravel())
        u = jnp.sqrt(q.ravel()) * z
        value, slope = self.function(u), slope_of(self.function)(u)
        if self.width:
            curvature = jnp.sum(weights * value * slope_of(slope_of(self.function))(u), axis=0)
        else:  # a kink has an infinite second derivative: integrate it by parts
            origin = self.function(jnp.zeros_like(u))
            curvature = jnp.sum(weights * (value - origin) * (value + origin) * (z * z - 1.0), axis=0) / (
                2 * q.ravel()
            )
            curvature = curvature - jnp.sum(weights * slope**2, axis=0)
        found = (jnp.sum(weights * value**2, axis=0), jnp.sum(weights * slope**2, axis=0), curvature)
        return Moments(*(a.reshape(q.shape) for a in found))

    def coefficients(self, q: jax.Array) -> jax.Array:
        """a_k(q) for k < terms: (terms, n)."""
        if self.width:
            z, table = _weighted_hermite(self.width, self.terms)
            return jnp.asarray(table) @ self.function(jnp.asarray(z)[:, None] * jnp.sqrt(q))
        own, weights = self._nodes(q)
        weighted = weights * self.function(jnp.sqrt(q) * own)

        def step(carry, k):
            before, now = carry
            after = (own * now - jnp.sqrt(k) * before) / jnp.sqrt(k + 1.0)
            return (now, after), jnp.sum(now, axis=0)

        start = (jnp.zeros_like(weighted), weighted)
        return jax.lax.scan(step, start, jnp.arange(self.terms, dtype=q.dtype))[1]

    def _tail(self, q: np.ndarray) -> float:
        """How much of E[s^2] and E[s'^2] the kept terms miss, estimated from the last ones and from the sum."""
        if self.width:
            z, table = _weighted_hermite(self.width, self.terms)
            u = z[:, None] * np.sqrt(q)
            weights = table[0][:, None]
            a = table @ on_numpy(self.function)(u)
            exact = [(weights * on_numpy(f)(u) ** 2).sum(0) for f in (self.function, slope_of(self.function))]
        else:
            a = np.asarray(self.coefficients(jnp.asarray(q)))
            moments = self.moments(jnp.asarray(q))
            exact = [np.asarray(moments.value), np.asarray(moments.slope)]
        kept = [a**2, a**2 * np.arange(self.terms)[:, None] / q]
        late = 3 * self.terms // 4
        return max(
            float((np.maximum(part[late:].sum(0), np.abs(whole - part.sum(0)) - 1e-13 * whole) / whole).max())
            for part, whole in zip(kept, exact, strict=True)
        )

    def rows(self, q: jax.Array) -> Rows:
        q = jnp.maximum(q, _SMALLEST_Q)
        a = self.coefficients(q)
        start, step = _POWERS[self.parity]
        tail = a[start::step]
        tail = jnp.pad(tail, ((0, -len(tail) % _CHUNK), (0, 0)))
        return {
            "size": safe_sqrt(self.moments(q).value),
            "inverse_root": 1.0 / jnp.sqrt(q),
            "a0": a[0],
            "a1": a[1],
            "tail": tail,
        }

    def pair(self, rows1: Rows, rows2: Rows, gap: jax.Array) -> tuple[jax.Array, jax.Array]:
        start, step = _POWERS[self.parity]
        c = 1.0 - gap
        w = c**step
        value, slope = _horner(rows1["tail"], rows2["tail"], w)
        linear = rows1["a1"] * rows2["a1"]
        slope = linear + start * c ** (start - 1) * value + c ** (start + step - 1) * step * slope
        value = rows1["a0"] * rows2["a0"] + c * linear + c**start * value
        size = rows1["size"] * rows2["size"]
        out_gap = jnp.where(size > 0, jnp.maximum(1.0 - value / jnp.where(size > 0, size, 1.0), 0.0), 0.0)
        return out_gap, slope * rows1["inverse_root"] * rows2["inverse_root"]


_POWERS = {"all": (2, 1), "even": (2, 2), "odd": (3, 2)}  # first power and stride beyond the linear term


def _horner(tail1: jax.Array, tail2: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    """sum_j t1_j t2_j w^j and its derivative by w; a few terms a pass, so that the pass stays in cache."""
    passes = len(tail1) // _CHUNK

    def body(i, carry):
        value, slope = carry
        at = (passes - 1 - i) * _CHUNK
        part1 = jax.lax.dynamic_slice_in_dim(tail1, at, _CHUNK)
        part2 = jax.lax.dynamic_slice_in_dim(tail2, at, _CHUNK)
        for j in range(_CHUNK - 1, -1, -1):
            slope = slope * w + value
            value = value * w + part1[j] * part2[j]
        return value, slope

    zero = jnp.zeros_like(w)
    return jax.lax.fori_loop(0, passes, body, (zero, zero))


def slope_of(function: Callable) -> Callable:
    """The elementwise derivative."""
    return _slope_of(function)


@functools.lru_cache(maxsize=128)
def _slope_of(function: Callable) -> Callable:
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]


@functools.lru_cache(maxsize=128)
def on_numpy(function: Callable) -> Callable[[np.ndarray], np.ndarray]:
    """`function` compiled for float64 NumPy arrays."""
    compiled = jax.jit(function)

    def run(z: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True), jax.ensure_compile_time_eval():  # also while the caller is being traced
            return np.asarray(compiled(z))

    return run


def _traced_shape(function: Callable, z: np.ndarray, name: str) -> tuple[int, ...]:
    try:
        return jax.eval_shape(lambda traced: function(traced), z).shape
    except (jax.errors.JAXTypeError, ValueError) as error:
        if isinstance(error, ValueError) and "truth value" not in str(error):
            raise
        raise TypeError(
            f"`{name}` must be written with jax.numpy (and without `if` on values), not NumPy."
        ) from None


def series(function: Callable, name: str) -> Series:
    """A callable as an activation: finds its kinks and its parity."""
    z = np.linspace(0.05, 5.0, 64)
    square = z.reshape(8, 8)
    shape = _traced_shape(function, square, name)
    if shape != square.shape:
        raise ValueError(f"`{name}` must act elementwise: it maps shape {square.shape} to {shape}.")
    run = on_numpy(function)
    plus, minus = run(z), run(-z)
    if not np.allclose(plus, run(square).ravel(), rtol=1e-9, equal_nan=True):
        raise ValueError(f"`{name}` must act elementwise: its value at one input changes with the others.")
    if not (np.isfinite(plus).all() and np.isfinite(minus).all()):
        raise ValueError(f"`{name}` is not finite between -5 and 5.")
    scale = 1e-14 * max(np.abs(plus).max(), np.abs(minus).max(), 1e-300)
    odd, even = 0.5 * (plus - minus), 0.5 * (plus + minus)
    parity = "all"
    if np.abs(odd / z - odd[0] / z[0]).max() <= 4 * scale / z[0]:
        parity = "even"
    elif np.abs(even - even[0]).max() <= 4 * scale:
        parity = "odd"
    found = Series(function, name, parity)
    return Series(function, name, parity, width=0.25 if found.panels(1.0).narrowest else 0.0)
