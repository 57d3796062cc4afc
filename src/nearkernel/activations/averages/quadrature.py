"""E[s(u) s(v)] one pair at a time, for any function, variance and correlation: slow and sure.

u = sqrt(q1) z outside, v given u inside. Panels end at the function's own edges, seen from u and from v,
and grow geometrically around the places where v crosses a feature of the function, which the inner average
rounds off over a width of sqrt(1 - c^2).
"""

from collections.abc import Callable, Iterator

import numpy as np

from .panels import NODES, WEIGHTS, Panels

_REACH = 10.0
_BASE = np.linspace(-_REACH, _REACH, 11)
_AROUND = np.array([-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0])
_CHUNK = 2_000_000  # function values at a time


def _gaussian_nodes(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and Gaussian weights on the panels between sorted `edges` (..., e)."""
    half = 0.5 * np.diff(edges)[..., None]
    z = (edges[..., :-1, None] + half) + half * NODES
    weights = half * WEIGHTS * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return z.reshape(*edges.shape[:-1], -1), weights.reshape(*edges.shape[:-1], -1)


def _edges(*groups: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(*(g.shape[:-1] for g in groups))
    every = [np.broadcast_to(g, (*shape, g.shape[-1])) for g in groups]
    return np.sort(np.clip(np.concatenate(every, axis=-1), -_REACH, _REACH), axis=-1)


def pair_quadrature(
    function: Callable, slope: Callable, panels: Panels, q1: np.ndarray, q2: np.ndarray, gap: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E[s(u) s(v)] and E[s'(u) s'(v)], elementwise over the flat arrays `q1`, `q2`, `gap`."""
    value, of_slope = np.empty(len(gap)), np.empty(len(gap))
    for m in range(len(gap)):
        value[m], of_slope[m] = _one_pair(function, slope, panels, np.sqrt(q1[m]), np.sqrt(q2[m]), gap[m])
    return value, of_slope


def _one_pair(function, slope, panels: Panels, root1: float, root2: float, gap: float) -> tuple[float, float]:
    total_value = total_slope = 0.0
    for u, v, weights in pair_nodes(panels, root1, root2, gap):
        total_value += function(u) @ (weights * function(v)).sum(axis=1)
        total_slope += slope(u) @ (weights * slope(v)).sum(axis=1)
    return float(total_value), float(total_slope)


def pair_nodes(panels: Panels, root1: float, root2: float, gap: float) -> Iterator[tuple[np.ndarray, ...]]:
    """Chunks of nodes u (m,), v (m, k) and weights (m, k) for a pair with deviations `root1`, `root2`."""
    c, sine = 1.0 - gap, np.sqrt(max(gap * (2.0 - gap), 0.0))
    own, seen = panels.edges / root1, panels.edges / root2
    if abs(c) > 1e-3:
        crossings = panels.features()[:, None] / (root2 * c) + _AROUND * (sine / abs(c))
        outer = _edges(_BASE, own, seen / c, crossings.ravel())
    else:
        outer = _edges(_BASE, own)
    z, weights = _gaussian_nodes(np.unique(outer))
    if sine == 0.0:
        yield root1 * z, (root2 * c * z)[:, None], weights[:, None]
        return
    step = max(1, _CHUNK // (len(NODES) * (len(seen) + len(_BASE))))
    for at in range(0, len(z), step):
        part = slice(at, at + step)
        inner = _edges(_BASE, (seen - c * z[part, None]) / sine)
        e, inner_weights = _gaussian_nodes(inner)
        yield root1 * z[part], root2 * (c * z[part, None] + sine * e), weights[part, None] * inner_weights
