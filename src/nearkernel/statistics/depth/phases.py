r"""Phases of deep networks: where they forget differences between inputs, and where they amplify them.

Deep in a network the variance is $K_* = C_b + C_W\, \mathbb{E}[s^2]$. There, $\chi_\perp < 1$ draws all inputs together
(ordered), $\chi_\perp > 1$ drives them apart to a correlation $c_* < 1$ (chaotic), and the critical line lies between.
"""

import functools
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from ..._base.check import numeric
from ..._base.result import Result
from ..._run.precision import in_float64
from ...activations.base import AbstractActivation, Moments, dual_of, moments
from ...activations.by_name import get
from ...models.layers.base import AbstractLayer
from .activation_class import Scan, scan
from .block import NEAR_ONE, checked_block, correlation_at_the_end, depth_scale, ends_of, phases, varied

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_STEPS = 55
_SAME = 1e-14  # relative


class PhaseDiagramResult(Result, eqx.Module):
    r"""Phases of an activation over `weight_vars` (m,) and `bias_vars` (k,).

    **Fields,** each (m, k): `kernel`, the limiting variance K* of an input of unit mean square (0 or inf if it
    vanishes or explodes); `chi_par`, `chi_perp` at $K_*$; `phase`: "ordered", "critical" or "chaotic" by $\chi_\perp$.
    `critical_line` (q, 2): pairs $C_W$, $C_b$ with $\chi_\perp = 1$, within the range of `bias_vars`. Computed on
    first use: `correlation`, the limiting correlation of two inputs; `depth_scale`, the number of layers over which it
    is reached.
    """

    weight_vars: np.ndarray
    bias_vars: np.ndarray
    kernel: np.ndarray
    chi_par: np.ndarray
    chi_perp: np.ndarray
    phase: np.ndarray
    critical_line: np.ndarray
    _activation: Any = eqx.field(repr=False)  # or the layers of a block

    @property
    def correlation(self) -> np.ndarray:
        return self._of_pairs[0]

    @property
    def depth_scale(self) -> np.ndarray:
        return self._of_pairs[1]

    @functools.cached_property
    def _of_pairs(self) -> tuple[np.ndarray, ...]:
        if not isinstance(self._activation, AbstractActivation):
            return _block_pairs(self._activation, self.weight_vars, self.bias_vars)
        cells = (self.kernel, self.chi_perp, *np.meshgrid(self.weight_vars, self.bias_vars, indexing="ij"))
        found = _pairs_at_the_end(self._activation, *(cell.ravel() for cell in cells))
        return tuple(each.reshape(self.kernel.shape) for each in found)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the growth of gradients against both variances, and the critical line, on Matplotlib's `axes`."""
        from ..._plots.phases import draw_phases

        return draw_phases(self.weight_vars, self.bias_vars, self.chi_perp, self.critical_line, axes)


@in_float64
def phase_diagram(activation: Any, weight_vars: Any, bias_vars: Any) -> PhaseDiagramResult:
    """Ordered and chaotic phases of deep networks with this `activation`, and the critical line between them.

    **Arguments:** `activation`, a name or a JAX function, or a block of layers, same as `critical`, whose weights and
    biases all have the variances of the diagram; `weight_vars` > 0 and `bias_vars` >= 0, each a vector.
    """
    weight_vars, bias_vars = _axis(weight_vars, "weight_vars", False), _axis(bias_vars, "bias_vars", True)
    if isinstance(activation, AbstractLayer | list | tuple):
        return _block_diagram(checked_block(activation), weight_vars, bias_vars)
    activation = get(activation)
    cells = np.meshgrid(weight_vars, bias_vars, indexing="ij")
    found = _at_the_end(activation, *(cell.ravel() for cell in cells))
    kernel, chi_par, chi_perp = (each.reshape(cells[0].shape) for each in found)
    line = _critical_line(activation, scan(activation), float(bias_vars.max()))
    return PhaseDiagramResult(
        weight_vars, bias_vars, kernel, chi_par, chi_perp, phases(chi_perp), line, activation
    )


def _block_diagram(block: Any, weight_vars: np.ndarray, bias_vars: np.ndarray) -> PhaseDiagramResult:
    """The same for a block of layers."""
    cells = np.meshgrid(weight_vars, bias_vars, indexing="ij")
    found = ends_of(block, *(cell.ravel() for cell in cells))
    kernel, _, chi_par, chi_perp = (each.reshape(cells[0].shape) for each in found)
    line = _block_line(block, weight_vars, bias_vars, chi_perp)
    return PhaseDiagramResult(
        weight_vars, bias_vars, kernel, chi_par, chi_perp, phases(chi_perp), line, block
    )


def _block_line(
    block: Any, weight_vars: np.ndarray, bias_vars: np.ndarray, chi_perp: np.ndarray
) -> np.ndarray:
    """Between neighboring weight variances where chi_perp passes 1, for each bias variance."""
    order = np.argsort(weight_vars)
    off = chi_perp[order] - 1.0
    at, bias = np.nonzero(off[:-1] * off[1:] < 0)
    low, high = weight_vars[order][at], weight_vars[order][at + 1]
    if not len(at):
        return np.empty((0, 2))
    ends, values = [low, high], [off[at, bias], off[at + 1, bias]]
    found, left = low, values[0]
    for count in range(_MOST_STEPS):
        if np.all((np.abs(left) < 1e-10) | (np.abs(ends[1] - ends[0]) <= 1e-10 * ends[1])):
            break
        # Halved now and then: it may jump.
        share = 0.5 if count % 3 == 2 else values[0] / (values[0] - values[1])
        found = ends[0] + share * (ends[1] - ends[0])
        end = ends_of(block, found, bias_vars[bias])
        left = np.where(np.isfinite(end.kernel), end.chi_perp - 1.0, np.maximum(end.chi_perp - 1.0, NEAR_ONE))
        first = left * values[0] > 0  # which end is replaced; the value at the other counts half
        ends = [np.where(first, found, ends[0]), np.where(first, ends[1], found)]
        values = [np.where(first, left, 0.5 * values[0]), np.where(first, 0.5 * values[1], left)]
    near = [ends_of(block, found * (1 + side), bias_vars[bias]).chi_perp for side in (-1e-8, 1e-8)]
    there = np.all(np.abs(np.array(near) - 1) < NEAR_ONE, axis=0)  # else it jumps past 1
    return np.column_stack([found, bias_vars[bias]])[there]


@in_float64
def _block_pairs(block: Any, weight_vars: np.ndarray, bias_vars: np.ndarray) -> tuple[np.ndarray, ...]:
    cells = [cell.ravel() for cell in np.meshgrid(weight_vars, bias_vars, indexing="ij")]
    found = correlation_at_the_end(varied(block, *cells), ends_of(block, *cells))
    return tuple(each.reshape(len(weight_vars), len(bias_vars)) for each in found)


def _axis(values: Any, name: str, zero: bool) -> np.ndarray:
    array = np.atleast_1d(numeric(values, name))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"`{name}` must be a vector with at least one value; got shape {array.shape}.")
    if (array < 0).any() or (not zero and (array == 0).any()):
        raise ValueError(
            f"`{name}` must be {'at least 0' if zero else 'greater than 0'}; got {array.min():g}."
        )
    return array


def _critical_line(activation: Any, seen: Scan, most_bias: float) -> np.ndarray:
    """chi_perp = 1 at K* = K gives C_W = 1/E[s'^2] and C_b = K - C_W E[s^2], one point a variance K."""

    def points(k: np.ndarray, at: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weight_var = 1.0 / np.maximum(at.slope, 1e-300)
        bias_var = k - weight_var * at.value
        rounding = 1e-9 * k
        return (
            weight_var,
            np.maximum(bias_var, 0.0),
            (bias_var >= -rounding) & (bias_var <= most_bias + rounding),
        )

    rough = np.flatnonzero(points(*seen)[2])
    if len(rough) == 0:
        return np.empty((0, 2))
    first, last = max(rough[0] - 1, 0), min(rough[-1] + 1, len(seen.k) - 1)
    k = np.geomspace(seen.k[first], seen.k[last], 300)
    weight_var, bias_var, kept = points(k, moments(activation, k))
    return np.column_stack([weight_var[kept], bias_var[kept]])


def correlation_length(activation: Any, weight_var: float, bias_var: float) -> float:
    """`depth_scale` at one pair of variances."""
    cells = np.array([float(weight_var)]), np.array([float(bias_var)])
    kernel, _, chi_perp = _at_the_end(activation, *cells)
    return float(_pairs_at_the_end(activation, kernel, chi_perp, *cells)[1][0])


def _at_the_end(activation, weight_var: np.ndarray, bias_var: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where an input of unit mean square ends up, for each pair of the flat arrays: K*, chi_par, chi_perp."""
    seen = scan(activation)
    kernel = _end_of_flow(activation, seen, weight_var, bias_var)
    at = moments(activation, np.where(np.isfinite(kernel), kernel, seen.k[-1]))
    return kernel, weight_var * (at.slope + at.curvature), weight_var * at.slope


@in_float64
def _pairs_at_the_end(activation, kernel, chi_perp, weight_var, bias_var) -> tuple[np.ndarray, np.ndarray]:
    """The correlation of two inputs in the end, and over how many layers it gets there."""
    correlation, slope = _end_of_correlation(activation, kernel, weight_var, bias_var, chi_perp)
    return correlation, depth_scale(correlation, slope)


def _end_of_flow(activation, seen: Scan, weight_var: np.ndarray, bias_var: np.ndarray) -> np.ndarray:
    """The fixed point of K' = C_b + C_W E[s^2] that the flow from K = C_b + C_W meets; 0 or inf if it meets none."""
    # The change of K in a layer, (cells, m).
    change = bias_var[:, None] + weight_var[:, None] * seen.moments.value - seen.k
    rounding = 1e-11 * seen.k
    start = np.clip(np.searchsorted(seen.k, bias_var + weight_var), 1, len(seen.k) - 1)
    grows = np.take_along_axis(change, start[:, None], 1)[:, 0] > 0
    kernel = np.where(grows, np.inf, 0.0)
    low, high = np.full((2, len(kernel)), np.nan)
    index = np.arange(len(seen.k))
    for cell, (at, up) in enumerate(zip(start, grows, strict=True)):
        if abs(change[cell, at]) <= rounding[at]:  # every K is fixed
            kernel[cell] = bias_var[cell] + weight_var[cell]
            continue
        beyond = (index > at) & (change[cell] < 0) if up else (index < at) & (change[cell] > 0)
        if beyond.any():
            end = index[beyond].min() - 1 if up else index[beyond].max()
            low[cell], high[cell] = seen.k[end], seen.k[end + 1]
    inside = np.isfinite(low)
    if inside.any():
        kernel[inside] = _root(activation, low[inside], high[inside], weight_var[inside], bias_var[inside])
    return kernel


def _root(activation, low, high, weight_var, bias_var) -> np.ndarray:
    """Where C_b + C_W E[s^2] - K falls through 0 between `low` and `high`: Newton's steps, halved if they leave."""
    ready = activation.prepared(np.concatenate([low, high]), pairs=False)
    average = ready.moments if ready.depends_on_range else functools.partial(moments, ready)
    k = np.sqrt(low * high)
    for _ in range(_MOST_STEPS):
        at = average(k)
        change = bias_var + weight_var * np.asarray(at.value) - k
        low, high = np.where(change > 0, k, low), np.where(change > 0, high, k)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = k - change / (weight_var * np.asarray(at.slope + at.curvature) - 1.0)
        before, k = k, np.where((newton >= low) & (newton <= high), newton, np.sqrt(low * high))
        if (np.abs(k - before) <= _SAME * before).all():
            break
    return k


def _end_of_correlation(activation, kernel, weight_var, bias_var, chi_perp) -> tuple[np.ndarray, np.ndarray]:
    """The stable fixed point of the correlation of two inputs of variance K*, and the slope of its map there."""
    correlation, slope = np.ones(len(kernel)), chi_perp.copy()
    lost = ~np.isfinite(kernel) | (kernel <= 0)
    correlation[lost] = np.where(chi_perp[lost] < 1, 1.0, np.nan)
    cells = np.flatnonzero(~lost & (chi_perp > 1 + NEAR_ONE))
    if len(cells) == 0:
        return correlation, slope
    correlation[cells], slope[cells] = _root_of_pairs(
        activation, kernel[cells], weight_var[cells], bias_var[cells]
    )
    return correlation, slope


def _root_of_pairs(activation, q, weight_var, bias_var) -> tuple[np.ndarray, np.ndarray]:
    """The correlation c with q c = C_b + C_W E[s(u) s(v)], and the slope of the map: Newton's steps, as in `_root`."""
    low, high, c = np.full(len(q), -1.0), np.full(len(q), 1.0 - 1e-9), np.zeros(len(q))
    slope, left = np.zeros(len(q)), np.arange(len(q))
    pair = dual_of(activation, q, q)
    for _ in range(_MOST_STEPS):
        value, own = pair(1.0 - c, left)
        slope[left] = weight_var[left] * own
        change = bias_var[left] + weight_var[left] * value - q[left] * c[left]
        up = change > 0
        low[left], high[left] = np.where(up, c[left], low[left]), np.where(up, high[left], c[left])
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = c[left] - change / (q[left] * (slope[left] - 1.0))
        inside = (newton >= low[left]) & (newton <= high[left])
        new = np.where(inside, newton, 0.5 * (low[left] + high[left]))
        moved = np.abs(new - c[left]) > 1e-13
        c[left], left = new, left[moved]
        if len(left) == 0:
            break
    return c, slope
