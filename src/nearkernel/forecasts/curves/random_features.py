"""Random features in place of their mean kernel: the error at m examples and p features from one kernel matrix."""

import math
import numbers
from typing import Any

import numpy as np

from ..._base.check import listed, positive, whole
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from .effective_ridge import AbstractMoments, Degrees, Moments, effective, error_of
from .subset_error import Pool


class PoolMoments(AbstractMoments):
    """Estimates from a pool of n points; theta is the ridge g, and kappa = 1/tr (K + g)^-1."""

    def __init__(self, pool: Pool):
        self.pool = pool
        self.trace, self.most = float(pool.lam.sum()), float(pool.n)
        self._inside = (pool.inside**2).sum(axis=1)
        self._outside = float((pool.outside**2).sum())

    def at(self, theta: np.ndarray) -> Moments:
        pool, a = self.pool, self.pool.shares(theta)
        first, second = a.sum(axis=0) + pool.null, (a**2).sum(axis=0) + pool.null
        return Moments(
            kappa=theta / first,
            z=pool.n - first,
            a=(self._inside @ a + self._outside) / first,
            q=pool.n - first**2 / second,
            b=(self._inside @ a**2 + self._outside) / second,
        )

    def degrees(self, theta: np.ndarray) -> Degrees:
        pool, a = self.pool, self.pool.shares(theta)
        first, second = a.sum(axis=0) + pool.null, (a**2).sum(axis=0) + pool.null
        return Degrees(theta / first, pool.n - first, second / first**2, (second - first) / theta)


def degrees_of_freedom(pool: Pool, z: float) -> float:
    """The effective ridge kappa at which the kernel has z < n degrees of freedom."""
    return float(effective(PoolMoments(pool), np.zeros(1), z, math.inf).kappa[0])


def checked_sizes(sizes: ArrayLike) -> np.ndarray:
    """(k,) integers of at least 1; one integer is a list of one."""
    several = [sizes] if isinstance(sizes, numbers.Real) else listed(sizes, "sizes", "[100, 200]")
    rounded = lambda size: int(size) if isinstance(size, float) and size.is_integer() else size
    array = np.array([whole(rounded(size), "sizes", 1) for size in several])
    if not array.size:
        raise ValueError("`sizes` must be a list of integers of at least 1; got none.")
    return array


@in_float64
def with_features(curve: Any, count: Any, sizes: ArrayLike) -> np.ndarray:
    """The error at `sizes` with `count` random features; at most n."""
    p = positive(count, "count", finite=False)
    m_all = checked_sizes(sizes)
    if m_all.max() > curve.n:
        raise ValueError(f"`sizes` must be integers from 1 to the number of rows, {curve.n}.")
    task = PoolMoments(curve.pool)
    found = []
    for m in m_all:
        ridges = curve.at_size.ridges(m)
        strengths = np.where(ridges.strengths == 0, curve.pool.floor, ridges.strengths)
        few, all_ = (error_of(effective(task, strengths, m, each), ridges, m, each) for each in (p, math.inf))
        # The law for infinitely many features is better known, from leave-one-out: the ratio corrects this one.
        found.append(few / all_ * curve.pool.errors(ridges, int(m))[0].sum(axis=1).mean())
    return np.array(found)
