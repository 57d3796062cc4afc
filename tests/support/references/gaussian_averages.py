"""Gaussian averages by dense composite quadrature, in NumPy alone: what the activations are tested against.

Nothing here is shared with the library: functions and slopes are written out by hand, panels shrink geometrically
towards every place where anything could happen, and nothing is adaptive.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import erf, expit, ndtr

_REACH = 13.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def _density(z):
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def _panels(centers: np.ndarray, finest: float, count: int, width: float) -> np.ndarray:
    """Sorted edges (..., e) over the Gaussian, each center (..., m) inside a nest of ever smaller panels."""
    nest = np.geomspace(finest, 2 * _REACH, count)
    nest = np.concatenate([-nest[::-1], [0.0], nest])
    around = (centers[..., :, None] + nest).reshape(*centers.shape[:-1], -1)
    even = np.linspace(-_REACH, _REACH, int(2 * _REACH / min(width, 1.0)) + 2)
    even = np.broadcast_to(even, (*centers.shape[:-1], len(even)))
    return np.sort(np.clip(np.concatenate([around, even], axis=-1), -_REACH, _REACH), axis=-1)


def _rule(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = 0.5 * np.diff(edges)[..., None]
    z = edges[..., :-1, None] + half + half * _NODES
    weights = half * _WEIGHTS * _density(z)
    return z.reshape(*edges.shape[:-1], -1), weights.reshape(*edges.shape[:-1], -1)


class Reference(NamedTuple):
    """A function with its first two derivatives; `kinks`: place -> jump of the slope; `period`, if it oscillates."""

    function: Callable
    slope: Callable
    curvature: Callable
    kinks: dict[float, float] = {}  # noqa: RUF012
    period: float = np.inf

    def centers(self, *roots: float) -> np.ndarray:
        """Where something happens, in units of the Gaussian."""
        return np.unique([at / root for root in roots for at in (0.0, *self.kinks)])

    def rule(self, *roots: float) -> tuple[np.ndarray, np.ndarray]:
        return _rule(_panels(self.centers(*roots), 1e-6, 120, self.period / (2 * max(roots))))

    def moments(self, q: float) -> tuple[float, float, float]:
        """E[s^2], E[s'^2], E[s s'']: a jump of the slope is a delta function in s''."""
        root = np.sqrt(q)
        z, weights = self.rule(root)
        s, slope = self.function(root * z), self.slope(root * z)
        deltas = sum(
            jump * float(self.function(np.array(at))) * _density(at / root) / root
            for at, jump in self.kinks.items()
        )
        return weights @ s**2, weights @ slope**2, weights @ (s * self.curvature(root * z)) + deltas

    def pair(self, q1: float, q2: float, gap: float) -> tuple[float, float]:
        """E[s(u) s(v)] and E[s'(u) s'(v)] at correlation 1 - gap: v given u inside, u outside."""
        root1, root2, c, sine = np.sqrt(q1), np.sqrt(q2), 1.0 - gap, np.sqrt(gap * (2.0 - gap))
        if gap in (0.0, 2.0):
            z, weights = self.rule(root1, c * root2)
            u, v = root1 * z, c * root2 * z
            return weights @ (self.function(u) * self.function(v)), weights @ (self.slope(u) * self.slope(v))
        if gap == 1.0:  # independent
            averages = []
            for f in (self.function, self.slope):
                means = [weights @ f(root * z) for root in (root1, root2) for z, weights in [self.rule(root)]]
                averages.append(means[0] * means[1])
            return tuple(averages)
        width = self.period / (2 * max(root1, root2))
        z, weights = _rule(_panels(self.centers(root1, root2 * c), 1e-7, 24, width))
        total = np.zeros(2)
        for part in np.array_split(np.arange(len(z)), 1 + len(z) // 500):
            centers = (self.centers(root2) - c * z[part, None]) / sine
            e, inner = _rule(_panels(centers, 1e-5, 24, width / sine))
            v = root2 * (c * z[part, None] + sine * e)
            for k, f in enumerate((self.function, self.slope)):
                total[k] += (weights[part] * f(root1 * z[part])) @ (inner * f(v)).sum(axis=1)
        return total[0], total[1]


def _sigmoid_curvature(z):
    return expit(z) * expit(-z) * (expit(-z) - expit(z))


def _silu_slope(z):
    return expit(z) * (1 + z * expit(-z))


def _silu_curvature(z):
    return expit(z) * expit(-z) * (2 + z * (expit(-z) - expit(z)))


def _tanh_slope(z):
    return 1.0 / np.cosh(np.minimum(np.abs(z), 300.0)) ** 2


def _zero(z):
    return np.zeros_like(z)


def _piecewise(right: float, left: float) -> Reference:
    return Reference(
        lambda z: np.where(z > 0, right * z, left * z),
        lambda z: np.where(z > 0, right, left),
        _zero,
        {0.0: right - left},
    )


def _power(p: int) -> Reference:
    return Reference(lambda z: z**p, lambda z: p * z ** (p - 1), lambda z: p * (p - 1) * z ** max(p - 2, 0))


def _elu_tail(z):
    return np.where(z > 0, 0.0, np.exp(np.minimum(z, 0.0)))


CLOSED = {
    "linear": Reference(lambda z: z, np.ones_like, _zero),
    "relu": _piecewise(1.0, 0.0),
    "leaky_relu(0.3)": _piecewise(1.0, 0.3),
    "abs": _piecewise(1.0, -1.0),
    "erf": Reference(
        erf,
        lambda z: 2 / np.sqrt(np.pi) * np.exp(-z * z),
        lambda z: -4 / np.sqrt(np.pi) * z * np.exp(-z * z),
    ),
    "gelu": Reference(
        lambda z: z * ndtr(z),
        lambda z: ndtr(z) + z * _density(z),
        lambda z: (2 - z * z) * _density(z),
    ),
    "sin": Reference(np.sin, np.cos, lambda z: -np.sin(z), period=2 * np.pi),
    "cos": Reference(np.cos, lambda z: -np.sin(z), lambda z: -np.cos(z), period=2 * np.pi),
    "gaussian": Reference(
        lambda z: np.exp(-z * z),
        lambda z: -2 * z * np.exp(-z * z),
        lambda z: (4 * z * z - 2) * np.exp(-z * z),
    ),
    "monomial(1)": _power(1),
    "monomial(2)": _power(2),
    "monomial(3)": _power(3),
    "monomial(6)": _power(6),
}
SMOOTH = {
    "tanh": Reference(np.tanh, _tanh_slope, lambda z: -2 * np.tanh(z) * _tanh_slope(z)),
    "sigmoid": Reference(expit, lambda z: expit(z) * expit(-z), _sigmoid_curvature),
    "silu": Reference(lambda z: z * expit(z), _silu_slope, _silu_curvature),
    "softplus": Reference(lambda z: np.logaddexp(0.0, z), expit, lambda z: expit(z) * expit(-z)),
}
CALLABLES = {
    "hard_tanh": Reference(
        lambda z: np.clip(z, -1.0, 1.0),
        lambda z: np.where(np.abs(z) < 1.0, 1.0, 0.0),
        _zero,
        {-1.0: 1.0, 1.0: -1.0},
    ),
    "elu": Reference(
        lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0.0))),
        lambda z: np.where(z > 0, 1.0, np.exp(np.minimum(z, 0.0))),
        _elu_tail,
        {0.0: 0.0},
    ),
    "wavy": Reference(
        lambda z: np.sin(3 * z) + 0.1 * z**2,
        lambda z: 3 * np.cos(3 * z) + 0.2 * z,
        lambda z: 0.2 - 9 * np.sin(3 * z),
        period=2 * np.pi / 3,
    ),
}
