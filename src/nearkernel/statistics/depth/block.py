r"""How signals, gradients and angles change in a deep network that repeats one block of layers.

$K$ is the variance of the block's outputs, the same at all positions of a large image (borders of padded convolutions
are ignored). A block maps it to $K' = F(K)$, with $\chi_\parallel = F'(K)$; $\chi_\perp$ is the growth of
squared gradients, and of small squared distances.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import scipy.optimize

from ..._base.check import positive, whole
from ..._base.result import Result
from ..._run.precision import in_float64
from ...models.containers.sequential import Sequential
from ...models.layers.base import AbstractLayer, AbstractWideLayer, LayerError, located
from ...models.layers.conv import AbstractFilter
from ...models.layers.dense import Dense
from ...models.networks.network import leaves
from .block_map import gaps_after, step, variance_after

ORDERED, CRITICAL, CHAOTIC = "ordered", "critical", "chaotic"
NEAR_ONE = 1e-6
_STEP = 1e-3  # relative, of differences of fourth order
_ITERATIONS = 40
_LARGEST, _SMALLEST = 1e12, 1e-12
_BISECTIONS = 50
_CELLS = 33  # factors tried at once
_FURTHER, _FAR = 4.0, 1e5  # where a growing variance is looked at once more


class BlockFlow(Result, eqx.Module):
    """How signals, gradients and angles change from block to block in a deep network of equal blocks.

    **Fields:** `kernel`, the limiting variance of an input of unit variance (0 or inf if it vanishes or grows
    forever); `growth` K'/K, `chi_par` dK'/dK and `chi_perp`, the growth of squared gradients, in the limit of many
    blocks; `phase`: "ordered", "critical" or "chaotic" by `chi_perp`; `message`, a one-line summary.
    """

    kernel: float
    growth: float
    chi_par: float
    chi_perp: float
    phase: str = eqx.field(static=True)
    message: str = eqx.field(static=True)
    _block: Sequential = eqx.field(repr=False)

    @in_float64
    def run(
        self, depth: int, kernel: float = 1.0, correlation: float = 0.5
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The (variance, squared gradient, correlation) after 0, 1, ... `depth` blocks, each (depth + 1,).

        The first block has inputs of variance `kernel` and `correlation`. The squared gradient belongs to
        the current block's outputs, with respect to the inputs of the first block.
        """
        k, gap = np.array([positive(kernel, "kernel")]), np.array([1.0 - float(correlation)])
        found, gradient = [(k[0], 1.0, 1.0 - gap[0])], 1.0
        for _ in range(whole(depth, "depth", 1)):
            after, chi = step(self._block, k)
            gap = gaps_after(self._block, k)(gap)
            k, gradient = after, gradient * float(chi[0])
            found.append((k[0], gradient, 1.0 - gap[0]))
        signal, squared, alike = np.array(found).T
        return signal, squared, alike

    @in_float64
    def critical_factor(self) -> float:
        """The factor on every `weight_var` of the block that makes `chi_perp` 1; if several do, the one nearest to 1.

        It is nan if there is none between 0.01 and 100.
        """
        factors = np.geomspace(1e-2, 1e2, 81)

        def off(factors: np.ndarray) -> np.ndarray:
            return _ends(_scaled(self._block, factors), len(factors)).chi_perp - 1.0

        found = off(factors)
        critical = np.abs(found) < NEAR_ONE
        crossing = np.flatnonzero(found[:-1] * found[1:] < 0)
        at = [*factors[critical], *np.sqrt(factors[crossing] * factors[crossing + 1])]
        if not at:
            return float("nan")
        nearest = int(np.argmin(np.abs(np.log(at))))
        if nearest < critical.sum():
            return float(at[nearest])
        low = crossing[nearest - critical.sum()]
        ends = np.log(factors[low]), np.log(factors[low + 1])
        return float(np.exp(scipy.optimize.brentq(lambda u: off(np.exp([u]))[0], *ends, xtol=1e-13)))

    @property
    def depth_scale(self) -> float:
        """Blocks over which the angle of two inputs converges; inf at criticality, nan if variances do not converge."""
        with jax.enable_x64(True):
            end = Ends(*(np.array([v]) for v in (self.kernel, self.growth, self.chi_par, self.chi_perp)))
            return float(correlation_at_the_end(self._block, end)[1][0])

    @in_float64
    def factor_for(self, depth: int, growth: float = math.e, kernel: float = 1.0) -> float:
        """The factor on every `weight_var` for which squared gradients grow by `growth` over `depth` blocks.

        Use it for residual blocks, whose branches must shrink with depth, about as 1/depth. `kernel` is the
        initial variance. It is nan if no factor between 1e-8 and 100 works.
        """
        depth, aim = whole(depth, "depth", 1), math.log(positive(growth, "growth"))
        start = positive(kernel, "kernel")
        low, high = math.log(1e-8), math.log(1e2)
        while True:
            factors = np.exp(np.linspace(low, high, _CELLS))
            over = _log_gradient(_scaled(self._block, factors), depth, np.full(_CELLS, start)) - aim
            at = np.flatnonzero((over[:-1] < 0) & (over[1:] >= 0))
            if len(at) == 0:
                return float("nan")
            left, right = over[at[0]], over[at[0] + 1]
            low, high = np.log(factors[at[0]]), np.log(factors[at[0] + 1])
            if high - low < 1e-3:
                return float(np.exp(low - left * (high - low) / (right - left)))


def _log_gradient(layers: Sequential, depth: int, k: np.ndarray) -> np.ndarray:
    """The logarithm of squared gradients after so many blocks; where variances overflow, infinity."""
    total = np.zeros(len(k))
    for _ in range(depth):
        after, chi = step(layers, k)
        total = np.where(after < _LARGEST, total + np.log(np.maximum(chi, 1e-300)), np.inf)
        k = np.minimum(after, _LARGEST)
    return total


def block_flow(block: Any) -> BlockFlow:
    """See `critical`."""
    layers = checked_block(block)
    end = _ends(layers, 1)
    phase = str(phases(end.chi_perp)[0])
    kernel, growth, chi_par, chi_perp = (float(field[0]) for field in end)
    return BlockFlow(kernel, growth, chi_par, chi_perp, phase, _words(end, phase), layers)


def phases(chi_perp: np.ndarray) -> np.ndarray:
    return np.where(chi_perp > 1 + NEAR_ONE, CHAOTIC, np.where(chi_perp < 1 - NEAR_ONE, ORDERED, CRITICAL))


def _words(end: "Ends", phase: str) -> str:
    kernel, growth, _, perp = (float(field[0]) for field in end)
    if np.isinf(kernel) and growth > 1 + NEAR_ONE:
        advice = "divide `weight_var` by the number of blocks"
        signal = f"the variance grows by a factor of {growth:.6g} per block: {advice}"
    elif np.isinf(kernel):
        signal = "the variance grows, but its relative growth tends to 0"
    elif kernel == 0:
        signal = f"the variance vanishes, by a factor of {growth:.6g} per block"
    else:
        signal = f"the variance converges to {kernel:.8g}"
    gradient = (
        "keep their size" if abs(perp - 1) < NEAR_ONE else f"change by a factor of {perp:.6g} per block"
    )
    return f"{phase}: {signal}; squared gradients {gradient}."


def checked_block(block: Any) -> Sequential:
    """The layers of a block as infinitely many channels see them, without positions; raises if they do not repeat."""
    given = [block] if isinstance(block, AbstractLayer) else list(block)
    for i, layer in enumerate(given):
        if not isinstance(layer, AbstractLayer):
            raise TypeError(f"`block[{i}]` must be a layer of nk.layers; got {layer!r}.")
    layers = Sequential(given)
    for leaf in leaves(layers):
        if not isinstance(leaf, AbstractWideLayer) or leaf.need(False) or leaf.rank(1) != 1:
            raise ValueError(f"`block` has {leaf!r}, which mixes positions: its effect depends on the image.")
    layers = _mapped(layers, lambda f: Dense(f.width, f.weight_var, f.bias_var), AbstractFilter)
    widths = [leaf.width for leaf in leaves(layers) if isinstance(leaf, Dense)]
    if not widths:
        raise ValueError("`block` must contain weights: add a Dense or Conv layer.")
    shape = (widths[-1],)
    with located("block", layers):
        after = layers.shape(shape)
    if after != shape:
        raise ValueError(f"`block` maps {shape[0]} channels to {after[0]}, so it cannot be repeated.")
    return _ending_gaussian(layers).limit(shape)


def _ending_gaussian(layers: Sequential) -> Sequential:
    """The same cycle of layers, from one sum over channels to the next."""
    problem: Exception = ValueError()
    for k in range(len(layers.layers)):
        turned = Sequential((*layers.layers[k:], *layers.layers[:k]))
        try:
            if turned.after("gaussian") == "gaussian":
                return turned
        except LayerError as error:
            problem = problem if k else error
    raise ValueError(
        f"`block` cannot be repeated: {problem}" if str(problem) else "`block` does not end in weights."
    )


def _mapped(layers: Sequential, change: Any, kind: type) -> Sequential:
    is_kind = lambda node: isinstance(node, kind)
    return jax.tree.map(lambda node: change(node) if is_kind(node) else node, layers, is_leaf=is_kind)


def _with_variances(layer: Dense, weight_var: Any, bias_var: Any) -> Dense:
    return eqx.tree_at(lambda d: (d.weight_var, d.bias_var), layer, (weight_var, bias_var))


def _scaled(layers: Sequential, factors: np.ndarray) -> Sequential:
    """A block per factor on its weight variances."""
    ones = np.ones_like(factors)
    return _mapped(layers, lambda d: _with_variances(d, d.weight_var * factors, d.bias_var * ones), Dense)


def varied(layers: Sequential, weight_var: np.ndarray, bias_var: np.ndarray) -> Sequential:
    """A block per pair of variances, for all of its weights and biases."""
    return _mapped(layers, lambda d: _with_variances(d, weight_var, bias_var), Dense)


class Ends(NamedTuple):
    """Where inputs end up: arrays (cells,), see `BlockFlow`."""

    kernel: np.ndarray
    growth: np.ndarray
    chi_par: np.ndarray
    chi_perp: np.ndarray


def _ends(layers: Sequential, cells: int) -> Ends:
    """After so many blocks that variances have come to rest, or that it shows how they grow."""
    k = _first(layers) * np.ones(cells)
    for _ in range(_ITERATIONS):
        before, k = k, np.clip(variance_after(layers, k), _SMALLEST, _LARGEST)
        if np.all(np.abs(k - before) <= 1e-14 * k):
            break
    k = _at_rest(layers, k)
    change = variance_after(layers, k) - k
    rests = np.abs(change) <= 1e-10 * k
    k = np.where(~rests & (change < 0), _SMALLEST, k)
    after, chi_perp = step(layers, k)
    growth = after / k
    grows = ~rests & (change > 0)
    if grows.any():  # by a factor, or by a power of the depth, which has no factor in the end
        k = np.where(grows, np.maximum(_FURTHER * k, _FAR), k)
        later, chi_later = step(layers, k)
        growth = np.where(grows, _limit(growth, later / k), growth)
        chi_perp = np.where(grows, _limit(chi_perp, chi_later), chi_perp)
    values = [variance_after(layers, k * (1 + m * _STEP)) for m in (-2, -1, 1, 2)]
    chi_par = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * _STEP * k)
    kernel = np.where(grows, np.inf, np.where(k <= 2 * _SMALLEST, 0.0, k))
    return Ends(kernel, growth, chi_par, chi_perp)


def _limit(now: np.ndarray, later: np.ndarray) -> np.ndarray:
    """1 for factors that come closer to 1 as the variance grows."""
    return np.where(np.abs(later - 1) < 0.75 * np.abs(now - 1), 1.0, later)


def ends_of(layers: Sequential, weight_var: np.ndarray, bias_var: np.ndarray) -> Ends:
    """For each pair of variances, given to all weights and biases of a block."""
    return _ends(varied(layers, weight_var, bias_var), len(weight_var))


def _first(layers: Sequential) -> np.ndarray:
    """The variance behind the first weights, of inputs of unit mean square."""
    dense = next(leaf for leaf in reversed(list(leaves(layers))) if isinstance(leaf, Dense))
    return np.asarray(dense.bias_var + dense.weight_var, np.float64)


def _at_rest(layers: Sequential, k: np.ndarray) -> np.ndarray:
    """Where the flow comes to rest slowly, the fixed point itself by secant steps; elsewhere as it is."""
    change = lambda k: variance_after(layers, k) - k
    before, now = k * 1.001, k
    left, off = change(before), change(now)
    for _ in range(50):
        if np.all(np.abs(off) <= 1e-14 * now):
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            new = now - off * (now - before) / (off - left)
        new = np.where(np.isfinite(new) & (new > 0.5 * now) & (new < 2 * now), new, now)
        before, left, now = now, off, new
        off = change(now)
    return np.where(np.abs(off) <= 1e-10 * now, now, k)


def correlation_at_the_end(layers: Sequential, ends: Ends) -> tuple[np.ndarray, np.ndarray]:
    """The correlation of two inputs in the end (1 where chi_perp <= 1), and over how many blocks it gets there."""
    lost = ~np.isfinite(ends.kernel) | (ends.kernel <= 0)
    correlation, slope = np.where(lost & (ends.chi_perp >= 1), np.nan, 1.0), ends.chi_perp.copy()
    cells = ~lost & (ends.chi_perp > 1 + NEAR_ONE)
    if cells.any():
        at = np.where(cells, ends.kernel, 1.0)
        low, high = np.full(len(at), 1e-9), np.full(len(at), 2.0)
        after = gaps_after(layers, at)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            grows = after(middle) > middle
            low, high = np.where(grows, middle, low), np.where(grows, high, middle)
        near = [after(low * (1 + m * _STEP)) for m in (-2, -1, 1, 2)]
        correlation[cells] = 1.0 - low[cells]
        slope[cells] = ((near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * _STEP * low))[cells]
    return correlation, depth_scale(correlation, slope)


def depth_scale(correlation: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Over how many layers a correlation gets to its end, from the slope of its map there; nan where it has no end."""
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.where(np.abs(slope - 1) < NEAR_ONE, np.inf, -1.0 / np.log(np.abs(slope)))
    return np.where(np.isnan(correlation) & (slope > 1 + NEAR_ONE), np.nan, depth)
