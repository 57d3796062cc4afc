"""Inputs as the kernels of a table see them: standardized, or with every column made normal; kept in the seen range."""

import numpy as np
from scipy.special import ndtri

from ..data import deviation, pooled

_KNOTS = 256  # of a column's distribution
_SMALL = 1e-280  # deviation of a column


class Views:
    """Fitted to rows (n, d): the map of new rows to each view. Values beyond the range of the rows are moved to it.

    `shared`: all columns are divided by one deviation.
    """

    unit: np.ndarray | float = 1.0  # of the knots: 1 / (a distance of knots) is a number

    def __init__(self, x: np.ndarray, shared: bool = False):
        self.location = x.mean(axis=0)
        spread = deviation(x)
        self.varies = spread > 0
        if not self.varies.any():
            self.varies[:] = True  # nothing to learn from, but a kernel needs an input
        self.scale = np.where(spread > 0, spread, 1.0)
        if shared and spread.any():  # columns in one unit, such as pixels: dark ones are not blown up
            self.scale = np.full(len(spread), pooled(spread))
        self.low, self.high = x.min(axis=0), x.max(axis=0)
        self.unit = np.where(self.scale < _SMALL, self.scale, 1.0)
        self.knots, self.levels = zip(*map(_distribution, (x / self.unit).T), strict=True)
        made = self._normal(x)
        self.normal_location, normal_spread = made.mean(axis=0), made.std(axis=0)
        self.normal_scale = np.where(normal_spread > 1e-12, normal_spread, 1.0)

    def plain(self, x: np.ndarray) -> np.ndarray:
        """Mean 0 and variance 1 on the rows that were seen."""
        kept = np.clip(x, self.low, self.high)
        return ((kept - self.location) / self.scale)[:, self.varies]

    def normal(self, x: np.ndarray) -> np.ndarray:
        """Each column by its ranks as a normal variable, so that no value is far from the others."""
        return ((self._normal(x) - self.normal_location) / self.normal_scale)[:, self.varies]

    def _normal(self, x: np.ndarray) -> np.ndarray:
        columns = [np.interp(*each) for each in zip((x / self.unit).T, self.knots, self.levels, strict=True)]
        return np.stack(columns, axis=1)


def _distribution(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of a column and the normal quantiles of their middle ranks."""
    values, counts = np.unique(column, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * counts) / len(column)
    if len(values) > _KNOTS:
        chosen = np.unique(np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], _KNOTS)))
        chosen = chosen[chosen < len(values)]
        values, ranks = values[chosen], ranks[chosen]
    return values, ndtri(ranks)
