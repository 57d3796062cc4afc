r"""What a neuron does to Gaussian inputs: the contract of every activation.

Let $u$ and $v$ be centered Gaussians with variances $q_1$, $q_2$ and correlation $c = 1 - \text{gap}$. Functions take
the *gap* instead of $c$: near $c = 1$ the angle is $\sqrt{2\, \text{gap}}$, and $1 - c$ would have lost half of its
digits there.
"""

import abc
from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import numpy as np

from .._base.check import finite_result, numeric, shown
from .._base.types import Array, ArrayLike
from .._run.precision import in_float64
from .averages.breaks import breaks_of

Rows = dict[str, Array]


class Moments(eqx.Module):
    r"""Gaussian averages over one input $z \sim \mathcal{N}(0, q)$; each field has the shape of `q`.

    **Fields:** `value` $\mathbb{E}[s^2]$; `slope` $\mathbb{E}[s'^2]$; `curvature` $\mathbb{E}[s s'']$.
    """

    value: Array
    slope: Array
    curvature: Array


class AbstractActivation(eqx.Module):
    """An elementwise function s with its Gaussian averages."""

    depends_on_range: ClassVar[bool] = False  # whether `prepared` does anything

    @abc.abstractmethod
    def __call__(self, z: Array) -> Array:
        """s(z), elementwise; traceable by JAX."""

    @abc.abstractmethod
    def moments(self, q: Array) -> Moments:
        r"""$\mathbb{E}[s^2]$, $\mathbb{E}[s'^2]$ and $\mathbb{E}[s s'']$ for inputs of variance `q`."""

    @abc.abstractmethod
    def rows(self, q: Array) -> Rows:
        r"""The contribution of one input of variance `q` to a pair, with inputs on the last axis.

        It contains at least "size", the root of $\mathbb{E}[s^2]$, and "slope", $\mathbb{E}[s'^2]$.
        """

    @abc.abstractmethod
    def pair(self, rows1: Rows, rows2: Rows, gap: Array) -> tuple[Array, Array]:
        r"""1 minus the correlation of $s(u)$ and $s(v)$, and $\mathbb{E}[s'(u)\, s'(v)]$.

        `rows1` and `rows2` broadcast against `gap`.
        """

    @abc.abstractmethod
    def mean(self, q: Array) -> Array | None:
        r"""$\mathbb{E}[s]$ at the variance `q`; None for odd functions, for which it is zero."""

    @property
    def breaks(self) -> tuple[float, ...]:
        """Where some derivative of s jumps, in ascending order: () if all are continuous."""
        return breaks_of(self).every

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where the slope of s jumps, in ascending order: (0.0,) for relu, () for tanh and elu."""
        return breaks_of(self).of_slope

    @property
    def smooth(self) -> bool:
        """Whether the slope is continuous: there are no `kinks`."""
        return not self.kinks

    def prepared(self, q: np.ndarray, pairs: bool = True) -> "AbstractActivation":
        """This activation prepared for variances within the range of `q` (concrete, not traced).

        Without `pairs` it is prepared for `moments` only, which takes less work.
        """
        return self

    def merged(self, others: "Sequence[AbstractActivation]") -> "AbstractActivation":
        """An activation prepared for the ranges of this one and of `others`, the same function."""
        return self

    def trusted_correlation(self) -> float:
        """The largest absolute correlation for which `pair` is accurate; beyond it, use `quadrature`."""
        return 1.0

    def quadrature(self, q1: np.ndarray, q2: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Same as `pair`, for variances `q1`, `q2` and `gap` elementwise, where `pair` is not accurate."""
        raise TypeError(f"{type(self).__name__} is exact in closed form: it has no quadrature.")

    def by_table(self) -> bool:
        """Whether, outside of JAX, `table_rows` and `table_pair` are to be used instead of `rows` and `pair`."""
        return False

    def table_rows(self, q: Array) -> Rows:
        """Same as `rows`, for `table_pair`; with "from", the root of `q`."""
        raise TypeError(f"{type(self).__name__} is exact in closed form: it has no table.")

    def table_pair(self, rows1: Rows, rows2: Rows, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Same as `pair`, in NumPy, from `table_rows`: `rows1`, `rows2` and `gap` of the pairs.

        It is fastest for rows (n1, 1) and (1, n2).
        """
        raise TypeError(f"{type(self).__name__} is exact in closed form: it has no table.")


def _require_activation(activation: object) -> None:
    if not isinstance(activation, AbstractActivation):
        raise TypeError(
            f"`activation` must be an activation, e.g. nk.activations.get('relu'); got {shown(activation)}."
        )


@in_float64
def moments(activation: AbstractActivation, q: ArrayLike) -> Moments:
    r"""$\mathbb{E}[s^2]$, $\mathbb{E}[s'^2]$ and $\mathbb{E}[s s'']$ of `activation` for $z \sim \mathcal{N}(0, q)$.

    They are NumPy arrays in the shape of `q`.
    """
    _require_activation(activation)
    q = numeric(q, "q")
    if np.any(q < 0):
        raise ValueError("`q` is a variance and must be at least 0.")
    ready = activation.prepared(np.ravel(q), pairs=False)
    averages = ready.moments(q) if ready.depends_on_range else _moments(ready, q)  # series work in NumPy
    return finite_result(jax.tree.map(np.asarray, averages), "`q` is")


_moments = jax.jit(lambda activation, q: activation.moments(q))


_pair = jax.jit(lambda activation, rows1, rows2, gap: activation.pair(rows1, rows2, gap))


@in_float64
def dual(
    activation: AbstractActivation,
    q1: ArrayLike,
    q2: ArrayLike,
    correlation: ArrayLike | None = None,
    *,
    gap: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""$\mathbb{E}[s(u)\, s(v)]$ and $\mathbb{E}[s'(u)\, s'(v)]$ for Gaussians $u$, $v$ with variances `q1`, `q2`.

    **Arguments:** `activation`; `q1`, `q2`; either `correlation` in [-1, 1] or, close to 1, `gap` = 1 - correlation
    in [0, 2]. All arrays broadcast against each other.

    **Returns:** two NumPy arrays. Errors are relative to $\sqrt{\mathbb{E}[s(u)^2]\, \mathbb{E}[s(v)^2]}$, and to the
    same with $s'$ for the second array: below 1e-12 for closed forms, 1e-10 for smooth and 1e-6 for kinked functions.
    """
    _require_activation(activation)
    if (correlation is None) == (gap is None):
        raise ValueError("`dual` needs either `correlation` or `gap`, not both.")
    gap = 1.0 - numeric(correlation, "correlation") if gap is None else numeric(gap, "gap")
    if np.any((gap < 0) | (gap > 2)):
        raise ValueError("`correlation` must lie in [-1, 1] (`gap` in [0, 2]).")
    q1, q2, gap = np.broadcast_arrays(numeric(q1, "q1"), numeric(q2, "q2"), gap)
    if np.any(q1 < 0) or np.any(q2 < 0):
        raise ValueError("`q1` and `q2` are variances and must be at least 0.")
    value, slope = finite_result(dual_of(activation, q1.ravel(), q2.ravel())(gap.ravel()), "`q1` or `q2` is")
    return value.reshape(gap.shape), slope.reshape(gap.shape)


def dual_of(activation: AbstractActivation, q1: np.ndarray, q2: np.ndarray) -> Callable:
    """`dual` of flat variances as a function of flat gaps: what depends on variances alone is done once.

    The function may be asked for some of the pairs only, by their indices.
    """
    ready = activation.prepared(np.concatenate([q1, q2]))
    rows_of = ready.table_rows if ready.by_table() else ready.rows
    rows1 = rows_of(q1)
    rows2 = rows1 if np.array_equal(q1, q2) else rows_of(q2)
    size = np.asarray(rows1["size"] * rows2["size"])

    def run(gap: np.ndarray, which: slice | np.ndarray = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        if ready.by_table():
            one, two = ({name: a[which] for name, a in rows.items()} for rows in (rows1, rows2))
            out_gap, slope = ready.table_pair(one, two, gap[which])
            return size[which] * (1.0 - out_gap), slope
        # Of all pairs: one shape to compile.
        out_gap, slope = (np.array(a) for a in _pair(ready, rows1, rows2, gap))
        wanted = np.zeros(len(gap), bool)
        wanted[which] = True
        far = wanted & (np.abs(1.0 - gap) > ready.trusted_correlation())
        if far.any():
            out_gap[far], slope[far] = ready.quadrature(q1[far], q2[far], gap[far])
        return (size * (1.0 - out_gap))[which], slope[which]

    return run
