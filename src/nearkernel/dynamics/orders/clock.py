"""Time as gradient descent and gradient flow count it, cut into panels that grow in length.

Training slows down as it proceeds, so a dozen moments between S and 3S see all that happens there.

Sums and integrals over a panel come from values at these moments. A rule is (points, weights): sum_{j < L} u^{L-1-j}
p(j), or integral_0^L exp(-lam (L - t)) p(t) dt, equals weights @ p(points) for every polynomial p of low degree, one
row of weights for each u or lam. A rule of length 2L is two of length L, put back onto a few Chebyshev points: log2(L)
cheap doublings, stable at any length.
"""

import abc
import dataclasses
import math
from collections.abc import Iterator

import numpy as np

_NODES = 12
_FIRST_STEPS = 16  # every step up to here is a node: nothing is smooth yet
_RATIO = 3  # of the ends of a panel
_SOON_GONE = 0.25  # a mode of this size has left nothing after the first steps, whatever its sign
_DECAYS = 25.0  # e-foldings of the slowest mode after which training is over
_DIRECT = 16  # a sum this short is done term by term
_RULE_POINTS = 12
_GAUSS = np.polynomial.legendre.leggauss(12)  # for a span of at most one decay time


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
    """Moments of one panel, its two ends among them, and the weights that accumulate values at them.

    `decay` (q, R) since the panel's start, and `weights` (q, q, R): what the value at node j adds until node i.
    """

    nodes: np.ndarray
    decay: np.ndarray
    weights: np.ndarray

    def accumulate(self, before: np.ndarray, values: np.ndarray) -> np.ndarray:
        """At every node (q, R), from what there was at the panel's start (R,) and `values` (q, R) at the nodes."""
        return self.decay * before + np.einsum("ijr,jr->ir", self.weights, values)


class AbstractClock(abc.ABC):
    """Of an algorithm on the eigenvalues `lam`; `end` is the time at which training stops or is over.

    `count` moments of a panel: fewer are faster and less exact.
    """

    end: float

    def __init__(self, lam: np.ndarray, count: int):
        self.lam, self.count = lam, count

    @abc.abstractmethod
    def decay(self, nodes: np.ndarray) -> np.ndarray:
        """What is left of the residual of each mode, (q, R)."""

    @abc.abstractmethod
    def filter(self, nodes: np.ndarray) -> np.ndarray:
        """(1 - decay) / lam, (q, R)."""

    @abc.abstractmethod
    def panels(self) -> Iterator[tuple[Panel, Panel]]:
        """Panels from 0 to `end`, each as the modes see it and as a mode that does not decay sees it (R = 1)."""


class FlowClock(AbstractClock):
    def __init__(self, lam: np.ndarray, time: float, count: int = _NODES):
        super().__init__(lam, count)
        self.end = _DECAYS / lam.min() if math.isinf(time) else time

    def decay(self, nodes: np.ndarray) -> np.ndarray:
        return np.exp(-nodes[:, None] * self.lam)

    def filter(self, nodes: np.ndarray) -> np.ndarray:
        return -np.expm1(-nodes[:, None] * self.lam) / self.lam

    def panels(self) -> Iterator[tuple[Panel, Panel]]:
        start, length = 0.0, 1.0 / self.lam.max()
        while start < self.end:
            stop = min(start + length, self.end)
            nodes = chebyshev(start, stop, self.count)
            yield self._panel(nodes, self.lam), self._panel(nodes, np.zeros(1))
            start, length = stop, (_RATIO - 1) * stop

    def _panel(self, nodes: np.ndarray, rate: np.ndarray) -> Panel:
        since = nodes - nodes[0]
        weights = np.zeros((len(nodes), len(nodes), len(rate)))
        for i in range(1, len(nodes)):
            points, rule = integral_rule(rate, since[i])
            weights[i] = (rule @ lagrange(since, points)).T
        return Panel(nodes=nodes, decay=np.exp(-since[:, None] * rate), weights=weights)


class StepClock(AbstractClock):
    """Steps of gradient descent. Modes with lr lam > 1 change sign at each, so even and odd steps are told apart."""

    def __init__(self, lam: np.ndarray, lr: float, steps: float, count: int = _NODES):
        super().__init__(lam, count)
        self.lr, self.factor = lr, 1.0 - lr * lam
        self.first = _FIRST_STEPS if count >= _NODES else count
        self.stride = 2 if self.factor.min() < -_SOON_GONE else 1
        rate = min(lr * lam.min(), 2 - lr * lam.max(), 0.9)  # a step leaves 1 - rate of the slowest mode
        self.end = math.ceil(_DECAYS / -math.log1p(-rate)) + 1 if math.isinf(steps) else steps

    def decay(self, nodes: np.ndarray) -> np.ndarray:
        return self.factor ** nodes[:, None]

    def filter(self, nodes: np.ndarray) -> np.ndarray:
        small = self.factor > 0
        slow = -np.expm1(nodes[:, None] * np.log(np.where(small, self.factor, 1.0)))
        return np.where(small, slow, 1.0 - self.decay(nodes)) / self.lam

    def panels(self) -> Iterator[tuple[Panel, Panel]]:
        start = 0
        while start < self.end:
            stop = int(min(max(start + self.first, _RATIO * start), self.end))
            nodes = self._nodes(start, stop)
            yield self._panel(nodes, self.factor), self._panel(nodes, np.ones(1))
            start = stop

    def _nodes(self, start: int, stop: int) -> np.ndarray:
        if stop - start <= self.first * self.stride:
            return np.arange(start, stop + 1)
        nodes = {start, stop}
        for parity in range(self.stride):
            first, last = start + parity, stop - (stop - start - parity) % self.stride
            middle = chebyshev(0, (last - first) // self.stride, self.count)
            nodes.update(first + self.stride * np.round(middle).astype(int))
        return np.array(sorted(nodes))

    def _panel(self, nodes: np.ndarray, factor: np.ndarray) -> Panel:
        since = nodes - nodes[0]
        weights = np.zeros((len(nodes), len(nodes), len(factor)))
        for parity in range(self.stride):
            own = np.flatnonzero(since % self.stride == parity)
            places = (since[own] - parity) / self.stride
            for i in range(1, len(nodes)):
                count = -(-(since[i] - parity) // self.stride)  # how many of this parity come before node i
                if count <= 0:
                    continue
                left = since[i] - 1 - parity - self.stride * (count - 1)
                points, rule = sum_rule(factor**self.stride, int(count))
                weights[i, own] = (factor[:, None] ** left * (rule @ lagrange(places, points))).T
        return Panel(nodes=nodes, decay=factor ** since[:, None], weights=self.lr * weights)


def lagrange(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """L (len(at), len(nodes)): values at `nodes` -> the interpolating polynomial's values at `at`."""
    scale = 4.0 / max(np.ptp(nodes), 1e-300)  # keeps products of differences near 1
    gaps = scale * (nodes[:, None] - nodes)
    np.fill_diagonal(gaps, 1.0)
    weights = 1.0 / gaps.prod(axis=1)
    apart = at[:, None] - nodes
    hit = apart == 0
    ratio = weights / np.where(hit, 1.0, apart)
    between = ratio / ratio.sum(axis=1, keepdims=True)
    return np.where(hit.any(axis=1, keepdims=True), hit.astype(float), between)


def chebyshev(start: float, end: float, count: int = _RULE_POINTS) -> np.ndarray:
    """Chebyshev points of [start, end], both ends included."""
    return (start + end) / 2 - (end - start) / 2 * np.cos(np.pi * np.arange(count) / (count - 1))


def _compressed(points: np.ndarray, weights: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
    if len(points) <= 2 * _RULE_POINTS:
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
