"""Averages of smooth activations by quadrature: no more than three nested dimensions, and no matrix inverted.

The inputs at hand are written as z = L e with independent normal e and L a pivoted Cholesky factor, so that equal,
opposite or nearly equal inputs only have fewer or thinner dimensions. Equally spaced nodes converge exponentially
for smooth functions. The last input is averaged over its own noise first, into a table, and interpolated from it.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...activations.base import AbstractActivation
from .base import Averages, Wanted, fours_of

_ORDERS = 6  # derivatives 0 to 5
_PAIR_TOLERANCE, _FOUR_TOLERANCE = 1e-11, 1e-8
_CHUNK = 4096  # function values in one compiled call
_POINTS = 60_000  # nodes interpolated at a time
_WIDEST = 0.7  # spacing that the Gaussian itself needs


class Smooth:
    """One activation for variances up to `largest`: its derivatives, and the nodes that they need."""

    def __init__(self, activation: AbstractActivation, largest: float):
        self.scale = float(np.sqrt(largest))
        self._compiled = stacked_derivatives(activation)
        self._pair_rule = self._resolution(_PAIR_TOLERANCE, _hard_pairs)
        self._four_rule = self._resolution(_FOUR_TOLERANCE, _hard_fours)
        self._step, self._table = self._raw_table()
        z = np.linspace(0.0, 4.0 * self.scale, 200)
        self._has_parity = _has_parity(*self.derivatives(np.stack([z, -z]))[0])

    def derivatives(self, z: np.ndarray) -> np.ndarray:
        """s, s', ..., s^(5) at z: (6, *shape)."""
        flat = np.ravel(z)
        padded = np.zeros(-(-flat.size // _CHUNK) * _CHUNK)
        padded[: flat.size] = flat
        parts = [np.asarray(self._compiled(part)) for part in padded.reshape(-1, _CHUNK)]
        return np.concatenate(parts, axis=1)[:, : flat.size].reshape(_ORDERS, *np.shape(z))

    def averages(self, kernel: np.ndarray, wanted: "Wanted | None" = None) -> Averages:
        """All averages under N(0, kernel); of four inputs those that are `wanted`, the others 0."""
        n = len(kernel)
        pairs = np.empty((_ORDERS, _ORDERS, n, n))
        for a in range(n):
            for b in range(a + 1):
                found = self._pair(kernel[np.ix_((a, b), (a, b))])
                pairs[:, :, a, b], pairs[:, :, b, a] = found, found.T
        return Averages(pairs, fours_of(n, lambda four: self.table(kernel, four), wanted))

    def table(self, kernel: np.ndarray, four: tuple[int, ...]) -> np.ndarray:
        """The averages at the inputs `four` under N(0, kernel), (4, 4, 4, 4)."""
        return self._four(kernel[np.ix_(four, four)])

    def _resolution(self, tolerance: float, products: Callable) -> "Rule":
        """The widest rule by which the averages of `products` of one input have settled."""

        def averages(spacing: float, reach: float) -> np.ndarray:
            z, weights = Rule(spacing, reach).nodes(1.0)
            return np.array(
                [[p @ weights, np.abs(p) @ weights] for p in products(self.derivatives(self.scale * z))]
            )

        def settled(coarse: np.ndarray, fine: np.ndarray) -> bool:
            size = fine[:, 1] + 1e-3 * fine[:, 1].max()  # what is small may have lost its digits
            return bool((np.abs(coarse - fine)[:, 0] <= tolerance * size + 1e-300).all())

        spacing, reach = _WIDEST, 6.0
        while reach < 20 and not settled(averages(0.2, reach), averages(0.2, reach + 1.0)):
            reach += 1.0
        fine = averages(spacing, reach)
        while True:
            coarse, fine = fine, averages(spacing / 1.25, reach)
            if settled(coarse, fine):
                return Rule(spacing, reach)
            spacing /= 1.25
            if spacing * 2000 < reach:
                raise ValueError(
                    f"`activation` changes too fast for a variance of {self.scale**2:.3g}: reduce `weight_var` or `x`."
                )

    def _pair(self, kernel: np.ndarray) -> np.ndarray:
        """(6, 6): E[s^(i)_0 s^(j)_1]."""
        order, root = pivoted_root(kernel)
        (e1, w1), (e2, w2) = (self._pair_rule.nodes(size) for size in self._sizes(root))
        first = self.derivatives(root[0, 0] * e1) * w1
        second = self.derivatives(root[1, 0] * e1[:, None] + root[1, 1] * e2) @ w2
        found = first @ second.T
        return found if order[0] == 0 else found.T

    def _sizes(self, root: np.ndarray) -> np.ndarray:
        """How far each dimension of e moves the inputs, relative to the largest deviation."""
        return np.abs(root).max(axis=0) / self.scale

    def _four(self, kernel: np.ndarray) -> np.ndarray:
        """(4, 4, 4, 4): E[s^(i)_0 s^(j)_1 s^(k)_2 s^(l)_3], for orders whose sum is even."""
        order, root = pivoted_root(kernel)
        (e1, w1), (e2, w2), (e3, w3) = (self._four_rule.nodes(size) for size in self._sizes(root)[:3])
        last = self._table if root[3, 3] == 0 else self._averaged_table(root[3, 3])
        i, j, radius = self._disc(e1, e2)
        first = self._interpolated(self._table, root[0, 0] * e1).T[:, i]
        second = self._interpolated(self._table, root[1, 0] * e1[i] + root[1, 1] * e2[j]).T
        weights = w1[i] * w2[j] * np.where(self._has_parity & (e1[i] > 0), 2.0, 1.0)
        outer = (first[:, None] * (second * weights)).reshape(16, -1)
        base3, base4 = (root[k, 0] * e1[i] + root[k, 1] * e2[j] for k in (2, 3))
        total = np.zeros((16, 16))
        at = 0
        while at < len(i):  # outward: what is left of the ball for e3 shrinks
            left = np.sqrt(max(self._four_rule.reach**2 - radius[at] ** 2, 0.0))
            inside = np.abs(e3) <= max(left, 1e-9)
            part = slice(at, at + max(1, _POINTS // int(inside.sum())))
            at = part.stop
            s3 = (
                self._interpolated(self._table, base3[part, None] + root[2, 2] * e3[inside])
                * w3[inside, None]
            )
            s4 = self._interpolated(last, base4[part, None] + root[3, 2] * e3[inside])
            inner = np.matmul(s3.swapaxes(-1, -2), s4)
            total += outer[:, part] @ inner.reshape(-1, 16)
        return total.reshape(4, 4, 4, 4).transpose(np.argsort(order))

    def _disc(self, e1: np.ndarray, e2: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of nodes within the reach, from the middle outward; of an odd or even function half of them do."""
        radius = np.hypot(e1[:, None], e2)
        kept = radius <= self._four_rule.reach
        if self._has_parity:
            kept &= e1[:, None] >= 0
        i, j = np.nonzero(kept)
        outward = np.argsort(radius[i, j], kind="stable")
        return i[outward], j[outward], radius[i, j][outward]

    def _raw_table(self) -> tuple[float, np.ndarray]:
        """Spacing and table from which s to s''' are interpolated to the tolerance."""
        step = 0.1 * min(self.scale, 1.0)
        while True:
            grid = self._grid(step)
            values = self.derivatives(grid)
            self._step, table = step, _quintic(values, step)
            middle = 0.5 * (grid[1:] + grid[:-1])
            exact = self.derivatives(middle)[:4].T
            error = np.abs(self._interpolated(table, middle) - exact).max(axis=0)
            resolved = error <= 0.01 * _FOUR_TOLERANCE * np.maximum(np.abs(exact).max(axis=0), 1e-300)
            if resolved.all() or step < 1e-3 * self.scale:
                return step, table
            step /= 2

    def _grid(self, step: float) -> np.ndarray:
        count = int(np.ceil(self.scale * self._four_rule.reach / step))
        return step * np.arange(-count, count + 1)

    def _averaged_table(self, width: float) -> np.ndarray:
        """The same for E[s(z + width e)] and its derivatives."""
        e, w = self._four_rule.nodes(width / self.scale)
        return _quintic(self.derivatives(self._grid(self._step)[:, None] + width * e) @ w, self._step)

    def _interpolated(self, table: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(*shape, 4): s to s''' at z; beyond the reach, where no weight is, the value at its end."""
        last = table.shape[1]
        position = np.clip(z / self._step + 0.5 * last, 0.0, last)
        index = np.minimum(position.astype(np.intp), last - 1)
        t = (position - index)[..., None]
        found = table[5].take(index, axis=0)
        for k in range(4, -1, -1):
            found *= t
            found += table[k].take(index, axis=0)
        return found


@functools.lru_cache(maxsize=32)
def stacked_derivatives(activation: AbstractActivation) -> Callable:
    """All derivatives at once, compiled once for all layers."""
    functions: list[Any] = [activation.__call__]
    for _ in range(_ORDERS - 1):
        functions.append(_slope(functions[-1]))
    return jax.jit(lambda z: jnp.stack([function(z) for function in functions]))


def _slope(function):
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]


class Rule(NamedTuple):
    """Equally spaced nodes: `spacing` for a dimension that moves an input by the whole deviation, up to `reach`."""

    spacing: float
    reach: float

    def nodes(self, size: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and Gaussian weights that sum to 1; the less the dimension moves the inputs, the fewer."""
        if size == 0.0:
            return np.zeros(1), np.ones(1)
        spacing = min(self.spacing / size**0.75, _WIDEST)
        count = int(np.ceil(self.reach / spacing))
        e = spacing * np.arange(-count, count + 1)
        weights = np.exp(-0.5 * e * e)
        return e, weights / weights.sum()


def _hard_pairs(s: np.ndarray) -> list[np.ndarray]:
    return list(s**2)


def _hard_fours(s: np.ndarray) -> list[np.ndarray]:
    return [s[0] ** 4, s[1] ** 4, s[0] * s[1] ** 2 * s[2], s[1] ** 2 * s[2] ** 2, s[1] ** 3 * s[3]]


def _has_parity(plus: np.ndarray, minus: np.ndarray) -> bool:
    size = 1e-13 * max(np.abs(plus).max(), np.abs(minus).max())
    return bool((np.abs(plus - minus) <= size).all() or (np.abs(plus + minus) <= size).all())


def _quintic(values: np.ndarray, step: float) -> np.ndarray:
    """(6, intervals, 4): powers of t in [0, 1] that match s^(i), s^(i+1), s^(i+2) at both ends, i = 0 .. 3."""
    f, g, h = values[:4], step * values[1:5], 0.5 * step**2 * values[2:6]
    f0, f1, g0, g1, h0, h1 = (a[:, k : k - 1 or None] for a in (f, g, h) for k in (0, 1))
    rise = f1 - f0
    c3 = 10 * rise - 6 * g0 - 4 * g1 - 3 * h0 + h1
    c4 = -15 * rise + 8 * g0 + 7 * g1 + 3 * h0 - 2 * h1
    c5 = 6 * rise - 3 * (g0 + g1) - h0 + h1
    return np.ascontiguousarray(np.stack([f0, g0, h0, c3, c4, c5]).transpose(0, 2, 1))


def pivoted_root(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`order` and a lower triangular L with kernel[order][:, order] = L L^T; columns that rounding made are 0."""
    n = len(kernel)
    left, order, root = kernel.astype(np.float64).copy(), np.arange(n), np.zeros((n, n))
    floor = 1e-13 * float(np.diagonal(kernel).max())
    for k in range(n):
        best = k + int(np.argmax(np.diagonal(left)[k:]))
        if left[best, best] <= floor:
            break
        for array in (left, left.T, root, order):
            array[[k, best]] = array[[best, k]]
        root[k:, k] = left[k:, k] / np.sqrt(left[k, k])
        left[k:, k:] -= np.outer(root[k:, k], root[k:, k])
    return order, root
