"""Functions of many variances from their values at few: averages over Gaussians are analytic in the variance."""

from collections.abc import Callable

import numpy as np

_NODES = (12, 24, 48, 96)
_ROUNDING = 2e-15


def interpolated(function: Callable[[np.ndarray], np.ndarray], q: np.ndarray) -> np.ndarray:
    """function(q), (rows, n), for positive `q` (n,): by Chebyshev polynomials of log q.

    They are used if their coefficients fall to rounding errors, relative to the largest value; otherwise, or if
    there are too few `q` to gain by it, the function is called for all of them.
    """
    logs = np.log(q)
    middle, half = 0.5 * (logs.max() + logs.min()), 0.5 * np.ptp(logs) + 1e-9
    for nodes in _NODES:
        if 2 * nodes > len(q):
            break
        angles = np.pi * (np.arange(nodes) + 0.5) / nodes
        values = function(np.exp(middle + half * np.cos(angles)))
        series = values @ np.cos(np.outer(angles, np.arange(nodes))) * (2.0 / nodes)
        series[:, 0] *= 0.5
        late = np.abs(series[:, 3 * nodes // 4 :]).max()
        if late <= _ROUNDING * np.abs(values).max():
            at = np.arccos(np.clip((logs - middle) / half, -1.0, 1.0))
            return series @ np.cos(np.outer(np.arange(nodes), at))
    return function(q)
