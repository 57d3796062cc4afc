"""A log-concave law on the line, on a grid: integrals, distribution function, draws."""

from collections.abc import Callable

import equinox as eqx
import numpy as np
from scipy.interpolate import CubicSpline

_DROP = 42.0  # of the log density at the ends of the grid, below its peak
_NODES = 801


class LogConcave(eqx.Module):
    """Nodes (k,) and weights (k,) that sum to 1: the trapezoidal rule, exact to rounding for smooth integrands.

    **Fields:** `nodes`; `weights`; `log_mass`, the logarithm of the integral of the density before it was normalized.
    """

    nodes: np.ndarray
    weights: np.ndarray
    log_mass: float

    def mean(self, function: Callable[[np.ndarray], np.ndarray]) -> float:
        return float(self.weights @ function(self.nodes))

    def cdf(self, at: np.ndarray) -> np.ndarray:
        lowest, highest = self.nodes[0], self.nodes[-1]
        return np.clip(self._spline()(np.clip(at, lowest, highest)), 0.0, 1.0)

    def quantile(self, q: np.ndarray) -> np.ndarray:
        """The nodes where the distribution function is `q`, by its inverse on a grid a hundred times as fine."""
        fine = np.linspace(self.nodes[0], self.nodes[-1], 100 * len(self.nodes))
        return np.interp(q, np.maximum.accumulate(self._spline()(fine)), fine)

    def _spline(self) -> CubicSpline:
        step = self.nodes[1] - self.nodes[0]
        return CubicSpline(self.nodes, self.weights / step).antiderivative()


def log_concave(log_density: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> LogConcave:
    """The law with this log density (vectorized, concave, not normalized), whose peak is between `low` and `high`."""
    for _ in range(12):
        grid = np.linspace(low, high, 33)
        values = log_density(grid)
        at = int(values.argmax())
        peak, best = float(grid[at]), float(values[at])
        low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, 32)])
        if values.max() - values.min() < 1e-3:
            break
    left = _where_it_fell(log_density, peak, best, -max(high - low, 1e-12 * abs(peak)))
    right = _where_it_fell(log_density, peak, best, max(high - low, 1e-12 * abs(peak)))
    nodes = np.linspace(left, right, _NODES)
    values = log_density(nodes)
    weights = np.exp(values - values.max())
    mass = weights.sum()
    return LogConcave(nodes, weights / mass, float(values.max() + np.log(mass * (nodes[1] - nodes[0]))))


def _where_it_fell(
    log_density: Callable[[np.ndarray], np.ndarray], peak: float, best: float, step: float
) -> float:
    """A point on the side of `step` where the log density is between `_DROP` and a little more below its peak."""
    powers = peak + step * 2.0 ** np.arange(64)
    fallen = int(np.argmax(log_density(powers) < best - _DROP))
    near, far = (peak if fallen == 0 else powers[fallen - 1]), powers[fallen]
    for _ in range(3):
        grid = np.linspace(near, far, 9)
        first = max(int(np.argmax(log_density(grid) < best - _DROP)), 1)
        near, far = grid[first - 1], grid[first]
    return float(far)
