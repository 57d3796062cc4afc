r"""Sums and integrals over a long time, from values at few moments.

A rule is (points, weights): sum_{j < L} u^{L-1-j} p(j), or integral_0^L exp(-lam (L - t)) p(t) dt, equals
weights @ p(points) for every polynomial p of low degree, one row of weights for each u or lam. A rule of length 2L is
two of length L, put back onto a few Chebyshev points: log2(L) cheap doublings, stable at any length.
"""

import numpy as np

_DIRECT = 16  # a sum this short is done term by term
_POINTS = 12
_GAUSS = np.polynomial.legendre.leggauss(12)  # for a span of at most one decay time


def lagrange(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """L (len(at), len(nodes)): values at `nodes` -> the interpolating polynomial's values at `at`."""
    scale = 4.0 / max(np.ptp(nodes), 1e-300)  # keeps products of differences near 1
    gaps = scale * (nodes[:, None] - nodes)
    np.fill_diagonal(gaps, 1.0)
    weights = 1.0 / gaps.prod(axis=1)
    apart = at[:, None] - nodes
    hit = apart == 0
    ratio = weights / np.where(hit, 1.0, apart)
    found = ratio / ratio.sum(axis=1, keepdims=True)
    return np.where(hit.any(axis=1, keepdims=True), hit.astype(float), found)


def chebyshev(start: float, end: float, count: int = _POINTS) -> np.ndarray:
    """Chebyshev points of [start, end], both ends included."""
    return (start + end) / 2 - (end - start) / 2 * np.cos(np.pi * np.arange(count) / (count - 1))


def _compressed(points: np.ndarray, weights: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
    if len(points) <= 2 * _POINTS:
        return points, weights
    nodes = chebyshev(0.0, end)
    return nodes, weights @ lagrange(nodes, points)


def sum_rule(factor: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """For sum_{j < length} factor^(length-1-j) p(j)."""
    if length <= _DIRECT:
        powers = np.arange(length)
        return powers.astype(float), factor[:, None] ** powers[::-1]
    half = length // 2
    points, weights = sum_rule(factor, half)
    points = np.concatenate([points, points + half])
    weights = np.concatenate([weights * factor[:, None] ** half, weights], axis=1)
    if length % 2:
        points = np.append(points, length - 1.0)
        weights = np.concatenate([weights * factor[:, None], np.ones((len(factor), 1))], axis=1)
    return _compressed(points, weights, length - 1.0)


def integral_rule(rate: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """For integral_0^length exp(-rate (length - t)) p(t) dt."""
    if rate.max(initial=0.0) * length <= 1.0:
        points, weights = length * (_GAUSS[0] + 1) / 2, length * _GAUSS[1] / 2
        return points, weights * np.exp(-rate[:, None] * (length - points))
    half = length / 2
    points, weights = integral_rule(rate, half)
    decay = np.exp(-rate[:, None] * half)
    return _compressed(
        np.concatenate([points, points + half]), np.concatenate([weights * decay, weights], axis=1), length
    )
