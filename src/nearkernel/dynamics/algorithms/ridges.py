r"""An algorithm as a sum of ridges: what holds for ridge regression then holds for every time of training.

The factor that training leaves of a residual is written as

$$r(\lambda) = \operatorname{Re} \sum_j \frac{w_j s_j}{\lambda + s_j}, \qquad
\sum_j \operatorname{Re} w_j = r(0) = 1,$$

with complex strengths $s_j$ and weights $w_j$. Trained outputs are then exactly the same sum of ridge regressions,
$z = \operatorname{Re} \sum_j w_j z_{s_j}$, and every law that is linear (or bilinear) in ridge predictions extends to
them.

- Gradient flow: $e^{-\lambda t}$ by the parabola of Weideman and Trefethen, 16 pairs of conjugate strengths: 1e-14.
- Gradient descent: $(1 - \eta\lambda)^t = e^{-t s}$ with $s = -\ln(1 - \eta\lambda)$, on the same parabola. Where
  $\eta\lambda$ may exceed 1 it serves the square of $1 - \eta\lambda$, and each of its poles is two.
- Few steps, or momentum $b$: a circle around the origin of the plane of $x$, in
  $\sum_t r_t x^t = (1 - b x) / [(1 - x)(1 - b x) + \eta\lambda x]$.
"""

import math
from typing import NamedTuple

import numpy as np

_NODES = 32  # of the parabola: 3^-32 is rounding
_FEW_STEPS = 16
_GROWTH = 1e3  # of x^-t on the circle: three digits are lost to rounding
_MOST_ON_CIRCLE = 1000  # steps; there are three poles a step


class Ridges(NamedTuple):
    r"""A sum of ridges, $r(\lambda) = \operatorname{Re} \sum_j w_j s_j / (\lambda + s_j)$.

    **Fields:** `strengths` $s_j$ (k,), `weights` $w_j$ (k,), complex; one real pair for a ridge.
    """

    strengths: np.ndarray
    weights: np.ndarray


def one_ridge(strength: float) -> Ridges:
    """A ridge itself; of infinite strength, no training at all."""
    return Ridges(np.array([float(strength)]), np.ones(1))


def ridges_of_flow(time: float) -> Ridges:
    """exp(-lam time), time > 0."""
    nodes, weights = _parabola()
    return Ridges(nodes / time, 2 * weights / nodes)


def ridges_of_descent(lr: float, steps: int, momentum: float, lam_max: float) -> Ridges | None:
    """The polynomial of `steps` >= 1 on [0, lam_max]; None where there are too many steps with momentum."""
    if momentum or steps < _FEW_STEPS:
        return _on_circle(lr, steps, momentum) if steps <= _MOST_ON_CIRCLE else None
    nodes, weights = _parabola()
    if lr * lam_max < 1:
        nodes = nodes / steps
        strengths = np.expm1(nodes) / lr
        return Ridges(strengths, 2 * weights * np.exp(nodes) / (steps * lr * strengths))
    half = steps // 2
    nodes = nodes / half
    root = np.exp(nodes / 2)  # poles in u = 1 - lr lam at u = root and u = -root
    weights = weights * root**2 / (half * lr)
    plus, minus = (weights / 2, -weights / 2) if steps % 2 else (weights / (2 * root),) * 2
    strengths = np.concatenate([np.expm1(nodes / 2), -(root + 1)]) / lr
    return Ridges(strengths, 2 * np.concatenate([plus, -minus]) / strengths)


def _parabola() -> tuple[np.ndarray, np.ndarray]:
    """exp(-s) = 2 Re sum_j weights[j] / (nodes[j] + s) for s >= 0."""
    angle = np.pi * (2 * np.arange(_NODES // 2) + 1) / _NODES
    nodes = _NODES * (0.1309 - 0.1194 * angle**2 + 0.25j * angle)
    return nodes, np.exp(nodes) * (-0.2388 * angle + 0.25j) / 1j


def _on_circle(lr: float, steps: int, momentum: float) -> Ridges:
    growth = min(math.log(1.5), math.log(_GROWTH) / steps)
    pairs = (math.ceil(36 / growth) + steps) // 2 + 1
    x = np.exp(1j * np.pi * (2 * np.arange(pairs) + 1) / (2 * pairs) - growth)
    return Ridges((1 - x) * (1 - momentum * x) / (lr * x), x**-steps / (pairs * (1 - x)))
