r"""Gaussian averages of any callable by its Hermite series.

With $a_k(q) = \mathbb{E}[s(\sqrt q\, z)\, h_k(z)]$, $h_k$ the normalized Hermite polynomials, Mehler's formula gives

$$\mathbb{E}[s(u)\, s(v)] = \sum_k a_k(q_1)\, a_k(q_2)\, c^k, \qquad
\mathbb{E}[s'(u)\, s'(v)] = \frac{1}{\sqrt{q_1 q_2}} \frac{d}{dc}\, \mathbb{E}[s(u)\, s(v)]:$$

the integrals are done once per input, not once per pair. For smooth functions the series converges at
every correlation; for kinked ones, or far beyond the scale of the function, it needs many terms or does not end. A
table (`_table.py`) does better there, and slow quadrature where that does not converge either.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import array_of, called
from ..._base.namespace import namespace
from ..._base.types import Array
from ..._run.blas import one_thread
from ..._run.precision import is_traced, working_dtype
from ..base import AbstractActivation, Moments, Rows
from .breaks import breaks_of
from .chebyshev import interpolated
from .on_numpy import on_numpy, slope_of
from .panels import NODES, WEIGHTS, Panels, cached_panels
from .quadrature import pair_nodes, pair_quadrature
from .sums import CHUNK, FEW, sums
from .table import Span, Table

REACH = 12.0  # exp(-REACH^2 / 2) = 5e-32: no more Gaussian beyond
_TOLERANCE = {8: 1e-11, 4: 1e-8}  # by bytes of a number
_SMALLEST_Q = 1e-20
_TRACED_Q = 64.0  # variances that traced calls are made for: theirs are not known
_LADDER = (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_MOST_TERMS = 128  # beyond which a table costs less
_ONE = Span(1.0, 1.0)
_MOST_SHARED_NODES = 20_000
_APART = 0.04  # of logarithms of variances that count as the same range


@functools.lru_cache(maxsize=32)
def shared_nodes(spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Equally spaced nodes and Gaussian weights: for smooth functions no rule converges faster."""
    z = spacing * np.arange(-np.ceil(REACH / spacing), np.ceil(REACH / spacing) + 1)
    return z, spacing * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


@functools.lru_cache(maxsize=32)
def weighted_hermite(spacing: float, terms: int) -> tuple[np.ndarray, np.ndarray]:
    """(nodes, weight * h_k(nodes) for k < terms)."""
    z, weights = shared_nodes(spacing)
    table = np.empty((terms, len(z)))
    table[0], table[1] = weights, weights * z
    for k in range(1, terms - 1):
        table[k + 1] = (z * table[k] - np.sqrt(k) * table[k - 1]) / np.sqrt(k + 1.0)
    return z, table


def nodes_per_row(panels: Panels, q: Array) -> tuple[Array, Array]:
    """Nodes and Gaussian weights (m, n) for each variance: panels of the function and of the Gaussian."""
    xp = namespace(q)
    even, own, nodes, rule = _columns(q, np.linspace(-REACH, REACH, 49), panels.edges, NODES, WEIGHTS)
    base = xp.broadcast_to(even, (49, q.size))
    own = xp.clip(own / xp.sqrt(q), -REACH, REACH)
    edges = xp.sort(xp.concatenate([base, own]), axis=0)
    half = 0.5 * xp.diff(edges, axis=0)[:, None]
    z = (edges[:-1, None] + half) + half * nodes
    weights = half * rule * xp.exp(-0.5 * z * z) / float(np.sqrt(2 * np.pi))
    return z.reshape(-1, q.size), weights.reshape(-1, q.size)


def _columns(q: Array, *arrays: np.ndarray) -> list[np.ndarray]:
    """Each array as a column of the dtype of `q`: a caller's float32 stays float32."""
    return [array[:, None].astype(q.dtype, copy=False) for array in arrays]


class Series(AbstractActivation):
    """Any callable s, traceable by JAX, with its averages by Hermite series.

    Inside a caller's `jit`, `grad` or `vmap` the variances are not known: 128 terms are kept, without quadrature. This
    is accurate for smooth functions at variances of a few units, and for kinked functions at correlations below 0.9.

    **Fields:** `function`; `name`, for messages; `parity`, which powers of c occur beyond the first ("odd", "even" or
    "all"); `terms`, the number of powers that are kept; `spacing` of the quadrature nodes that all rows share (0: each
    row has its own, as kinks need); `converged`, whether the series holds up to correlation 1; `span`, the variances it
    is prepared for; `tabled`, whether outside of JAX a table is to be used instead.
    """

    depends_on_range: ClassVar[bool] = True

    function: Callable = eqx.field(static=True)
    name: str = eqx.field(static=True)
    parity: str = eqx.field(static=True)
    terms: int = eqx.field(static=True, default=128)
    spacing: float = eqx.field(static=True, default=0.0625)
    converged: bool = eqx.field(static=True, default=True)
    span: Span = eqx.field(static=True, default=_ONE)
    tabled: bool = eqx.field(static=True, default=False)

    def __call__(self, z: Array) -> Array:
        return self.function(z)

    @property
    def breaks(self) -> tuple[float, ...]:
        return breaks_of(self.function).every

    @property
    def kinks(self) -> tuple[float, ...]:
        return breaks_of(self.function).of_slope

    def panels(self, q_max: float) -> Panels:
        """The function in pieces, on the range that variances up to `q_max` reach."""
        reach = 2.0 ** np.ceil(np.log2(REACH * max(np.sqrt(q_max), 1.0)))
        return cached_panels(on_numpy(self.function), float(reach), self.name)

    def prepared(self, q: np.ndarray, pairs: bool = True) -> "Series":
        """This activation with the number of terms and the nodes that the range of `q` needs."""
        low, high = (max(float(bound), _SMALLEST_Q) for bound in (q.min(), q.max()))
        if low < high:
            low, high = _rounded(low, np.floor), _rounded(high, np.ceil)
        else:
            low = high = _rounded(low, np.round)
        return _prepared(self, low, high, pairs, _TOLERANCE[working_dtype().itemsize])

    def fitted(self, low: float, high: float, pairs: bool, tolerance: float) -> "Series":
        """This activation with the nodes and terms that variances from `low` to `high` need.

        `pairs`: whether also for averages over two inputs, to `tolerance`; see `prepared`.
        """
        samples = np.geomspace(low, high, 5 if low < high else 1)
        spacing = self._converged_spacing(samples)
        if not pairs:
            return self.with_terms(2, spacing)
        for terms in _LADDER if spacing else (64, 256, 512):
            dense = min(spacing, 2.0 ** np.floor(np.log2(2.0 / np.sqrt(terms))))  # h_k needs nodes of its own
            trial = self.with_terms(terms, dense)
            converged = trial._tail(samples) <= tolerance
            if converged:
                break
        span = Span.around(low, high)
        dear = not converged or terms > _MOST_TERMS
        return self.with_terms(terms, trial.spacing, converged, span, dear and self._table(span).converged)

    def with_terms(
        self, terms: int, spacing: float, converged: bool = True, span: Span = _ONE, tabled: bool = False
    ) -> "Series":
        """The same function with other settings of its series."""
        return Series(self.function, self.name, self.parity, terms, float(spacing), converged, span, tabled)

    def merged(self, others: Sequence[AbstractActivation]) -> "Series":
        alike = [other for other in others if isinstance(other, Series)]
        terms, spacing = max(other.terms for other in alike), min(other.spacing for other in alike)
        span = Span(min(other.span.low for other in alike), max(other.span.high for other in alike))
        tabled = any(other.tabled for other in alike) and self._table(span).converged
        return self.with_terms(terms, spacing, all(other.converged for other in alike), span, tabled)

    def by_table(self) -> bool:
        return self.tabled

    def _table(self, span: Span) -> Table:
        return _table(self.function, span.low, span.high)

    def table_rows(self, q: Array) -> Rows:
        asked, q = q, np.maximum(q, _SMALLEST_Q)
        value, slope = interpolated(lambda q: np.stack(self._energies(q)), q.ravel()).reshape(2, *q.shape)
        size = np.sqrt(self._towards_zero(asked, q, value))
        return {"size": size, "norm": np.sqrt(value), "slope": slope, "from": np.sqrt(q)}

    def table_pair(self, rows1: Rows, rows2: Rows, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        names = ("from", "norm", "slope")
        one, two = ([np.asarray(rows[name]) for name in names] for rows in (rows1, rows2))
        outer = gap.ndim == 2 and one[0].shape == (len(gap), 1) and two[0].shape == (1, gap.shape[1])
        if not outer:
            one, two = ([np.broadcast_to(a, gap.shape).ravel() for a in side] for side in (one, two))
        norms = one[1] * two[1], np.sqrt(one[2] * two[2])
        shape, gap = gap.shape, gap if outer else gap.ravel()
        value, slope = self._table(self.span).averages(one[0] ** 2, two[0] ** 2, gap, norms)
        same = (gap == 0.0) & (one[0] == two[0])  # known to all digits
        value, slope = (np.where(same, 1.0, a).reshape(shape) for a in (value, slope))
        return np.maximum(1.0 - value, 0.0), slope * norms[1].reshape(np.shape(norms[1]) if outer else shape)

    def _converged_spacing(self, q: np.ndarray) -> float:
        """The widest spacing that halving does not change; 0 if there is none, as for kinks."""
        narrowest = self.panels(float(q.max())).narrowest / np.sqrt(q.max())
        spacing = 2.0 ** np.floor(np.log2(np.clip(narrowest, 1e-9, 1.0) / 2))
        while spacing * _MOST_SHARED_NODES > 2 * REACH:
            coarse, fine = (self.with_terms(2, h)._energies(q) for h in (spacing, spacing / 2))
            if all((np.abs(a - b) <= 1e-13 * b).all() for a, b in zip(coarse, fine, strict=True)):
                return spacing
            spacing /= 2
        return 0.0

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

    def pair_nodes(self, q1: float, q2: float, gap: float) -> Iterator[tuple[np.ndarray, ...]]:
        """Nodes of both inputs, (m,) and (m, k), and weights (m, k), for variances `q1`, `q2` and `gap`, in chunks."""
        q1, q2 = max(q1, _SMALLEST_Q), max(q2, _SMALLEST_Q)
        return pair_nodes(self.panels(max(q1, q2)), q1**0.5, q2**0.5, gap)

    def on_numpy(self) -> tuple[Callable, Callable]:
        """s and s' of NumPy arrays."""
        return on_numpy(self.function), on_numpy(slope_of(self.function))

    def _nodes(self, q: Array) -> tuple[Array, Array]:
        if self.spacing:
            return tuple(_columns(q, *shared_nodes(self.spacing)))  # type: ignore[return-value]
        return nodes_per_row(self.panels(_TRACED_Q if is_traced(q) else float(q.max())), q)

    def _derivatives(self, q: Array) -> tuple[Callable, Callable, Callable]:
        """s, s' and s'' for the kind of array that `q` is."""
        functions = self.function, slope_of(self.function), slope_of(slope_of(self.function))
        return tuple(map(on_numpy, functions)) if isinstance(q, np.ndarray) else functions  # type: ignore[return-value]

    def _energies(self, q: Array) -> tuple[Array, Array]:
        """E[s^2] and E[s'^2] for flat q."""
        function, first, _ = self._derivatives(q)
        z, weights = self._nodes(q)
        u = namespace(q).sqrt(q) * z
        return (weights * function(u) ** 2).sum(axis=0), (weights * first(u) ** 2).sum(axis=0)

    def moments(self, q: Array) -> Moments:
        xp = namespace(q)
        shape, asked, q = q.shape, q.ravel(), xp.maximum(q, _SMALLEST_Q).ravel()
        of_value, of_slope = self._energies(q)
        function, _, second = self._derivatives(q)
        z, weights = self._nodes(q)
        u = xp.sqrt(q) * z
        value = function(u)
        if self.spacing:
            curvature = (weights * value * second(u)).sum(axis=0)
        else:  # a kink has an infinite second derivative: integrate it by parts
            origin = function(xp.zeros_like(u))
            excess = (weights * (value - origin) * (value + origin) * (z * z - 1.0)).sum(axis=0)
            curvature = excess / (2 * q) - of_slope
        of_value = self._towards_zero(asked, q, of_value)
        return Moments(*(a.reshape(shape) for a in (of_value, of_slope, curvature)))

    def mean(self, q: Array) -> Array | None:
        if self.parity == "odd" and on_numpy(self.function)(np.zeros(1))[0] == 0.0:
            return None
        xp = namespace(q)
        shape, q = q.shape, xp.maximum(q, _SMALLEST_Q).ravel()
        return (interpolated(self._means, q) if xp is np else self._means(q)).reshape(shape)

    def _means(self, q: Array) -> Array:
        """E[s], (1, n)."""
        z, weights = self._nodes(q)
        return (weights * self._derivatives(q)[0](namespace(q).sqrt(q) * z)).sum(axis=0, keepdims=True)

    def _towards_zero(self, asked: Array, q: Array, value: Array) -> Array:
        """E[s^2] at variances `asked` below the smallest that is integrated, `q`: a line down to s(0)^2."""
        xp = namespace(q)
        origin = self._derivatives(q)[0](xp.zeros_like(q)) ** 2
        return xp.where(asked < q, origin + xp.maximum(value - origin, 0.0) * (asked / q), value)

    def coefficients(self, q: Array) -> Array:
        """$a_k$ at variances `q` (n,) for $k$ below the number of terms: (terms, n)."""
        xp = namespace(q)
        function = self._derivatives(q)[0]
        if self.spacing:
            z, table = weighted_hermite(self.spacing, self.terms)
            return table.astype(q.dtype, copy=False) @ function(_columns(q, z)[0] * xp.sqrt(q))
        own, weights = self._nodes(q)

        def step(carry, k):
            before, now = carry
            after = (own * now - k**0.5 * before) / (k + 1.0) ** 0.5
            return (now, after), now.sum(axis=0)

        carry = (xp.zeros_like(own), weights * function(xp.sqrt(q) * own))
        if xp is jnp:
            return jax.lax.scan(step, carry, jnp.arange(self.terms, dtype=q.dtype))[1]
        coefficients = np.empty((self.terms, q.size))
        for k in range(self.terms):
            carry, coefficients[k] = step(carry, float(k))
        return coefficients

    def _tail(self, q: np.ndarray) -> float:
        """How much of E[s^2] and E[s'^2] the kept terms miss, estimated from the last ones and from the sum."""
        energy, (value, slope) = self.coefficients(q) ** 2, self._energies(q)
        late = 3 * self.terms // 4

        def missing(part, whole):
            beyond = np.maximum(part[late:].sum(axis=0), np.abs(whole - part.sum(axis=0)) - 1e-13 * whole)
            return float((beyond / np.maximum(whole, 1e-300)).max())

        by_slope = energy * np.arange(self.terms)[:, None] / q
        return max(missing(energy, value), missing(by_slope, slope))

    def rows(self, q: Array) -> Rows:
        flat = self._flat_rows(q.ravel())
        return {name: value.reshape(*value.shape[:-1], *q.shape) for name, value in flat.items()}

    def _row_averages(self, q: Array) -> Array:
        """E[s^2], E[s'^2] and a_k: (2 + terms, n)."""
        return namespace(q).concatenate([namespace(q).stack(self._energies(q)), self.coefficients(q)])

    def _flat_rows(self, q: Array) -> Rows:
        xp = namespace(q)
        asked, q = q, xp.maximum(q, _SMALLEST_Q)
        made = interpolated(self._row_averages, q) if xp is np else self._row_averages(q)
        value, slope, a = made[0], made[1], made[2:]
        start, step = _POWERS[self.parity]
        tail = a[start::step]
        tail = xp.pad(tail, ((0, -len(tail) % (FEW[0] if len(tail) <= FEW[0] else CHUNK)), (0, 0)))
        true = self._towards_zero(asked, q, value)
        some = true > 0  # the derivative of a root at 0 is infinite, and never needed
        return {
            "size": xp.where(some, xp.sqrt(xp.where(some, true, 1.0)), 0.0),
            "norm": xp.sqrt(value),
            "slope": slope,
            "inverse_root": 1.0 / xp.sqrt(q),
            "a0": a[0],
            "a1": a[1],
            "tail": tail,
        }

    def pair(self, rows1: Rows, rows2: Rows, gap: Array) -> tuple[Array, Array]:
        start, step = _POWERS[self.parity]
        c = 1.0 - gap
        w = c**step
        value, slope = sums(rows1["tail"], rows2["tail"], w)
        linear = rows1["a1"] * rows2["a1"]
        slope = linear + start * c ** (start - 1) * value + c ** (start + step - 1) * step * slope
        value = rows1["a0"] * rows2["a0"] + c * linear + c**start * value
        size = rows1["norm"] * rows2["norm"]
        out_gap = jnp.where(size > 0, jnp.maximum(1.0 - value / jnp.where(size > 0, size, 1.0), 0.0), 0.0)
        return out_gap, slope * rows1["inverse_root"] * rows2["inverse_root"]


@functools.lru_cache(maxsize=512)
def _prepared(activation: Series, low: float, high: float, pairs: bool, tolerance: float) -> Series:
    """Layer after layer, and call after call, asks for nearly the same range."""
    return activation.fitted(low, high, pairs, tolerance)


@functools.lru_cache(maxsize=16)
def _table(function: Callable, low: float, high: float) -> Table:
    with one_thread():
        return Table(
            [on_numpy(function), on_numpy(slope_of(function))], np.array(breaks_of(function).every), low, high
        )


def _rounded(q: float, to: Callable) -> float:
    """A variance a few percent away, so that few distinct ones occur."""
    return float(np.exp(to(np.log(q) / _APART) * _APART))


_POWERS = {"all": (2, 1), "even": (2, 2), "odd": (3, 2)}  # first power and stride beyond the linear term


def _traced_shape(function: Callable, z: np.ndarray, name: str) -> tuple[int, ...]:
    call = f"{name}(z)"
    return jax.eval_shape(lambda traced: array_of(called(function, call, traced), call), z).shape


def series(function: Callable, name: str) -> Series:
    """A callable as an activation: finds its kinks and its parity."""
    z = np.linspace(0.05, 5.0, 64)
    square = z.reshape(8, 8)
    shape = _traced_shape(function, square, name)
    if shape != square.shape:
        raise ValueError(f"`{name}` must act elementwise: it maps shape {square.shape} to {shape}.")
    run = on_numpy(function)
    plus, minus = run(z), run(-z)
    if not np.allclose(plus[:20], run(z[:20]), rtol=1e-9, equal_nan=True):
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
    expansion = Series(function, name, parity)
    for kink in expansion.panels(1.0).kinks:
        step = 1e-8 * max(1.0, abs(kink))
        if abs(np.subtract(*run(np.array([kink + step, kink - step])))) > 1e-3 * np.abs(plus).max():
            raise ValueError(
                f"`{name}` jumps at {kink:.6g}: its tangent kernel is infinite. Use a continuous function."
            )
    return expansion if expansion.panels(1.0).narrowest > 1e-3 else expansion.with_terms(expansion.terms, 0.0)
