r"""The law of a product of independent gamma variables, which is Meijer's G function, by its logarithm.

For g_j ~ Gamma(a_j), the density of ln(g_1 ... g_m) at ln z is G(z; a) / prod_j Gamma(a_j), where

    G(z; a) = G^(m,0)_(0,m)(z | a_1 ... a_m) = 1/(2 pi i) int prod_j Gamma(a_j + s) z^-s ds.

The logarithm K(s) of the integrand is convex on the real axis right of the poles; let c be its minimum, the saddle
point. The contour s = c + i t - k t^2 with k = -K'''/(6 K'') has the curvature of steepest descent there. In units
of 1/sqrt(K'') the integrand along it is close to a Gaussian for nearly all parameters and z, so that one rule of 75
nodes serves, and nothing can overflow: what is summed is at most about 1. Only where one light parameter and many heavy
ones have the same weight the parabola runs too far to the left; there it is straightened to a hyperbola. The
trapezoidal rule converges exponentially; its distance from the rule of half as many nodes is the error estimate, which
is far too careful.
"""

from typing import NamedTuple

import numpy as np
import scipy.special as special

_STEP = 0.12  # of the contour, in units of 1/sqrt(K'')
_PARABOLA, _HYPERBOLA = (0.0, 9.0), (1.0, 42.0)  # how fast it straightens, and how far it reaches
_GOOD = 1e-11
_CHUNK = 4000  # arguments at a time: 75 complex numbers each
_HIGHEST = 200.0  # ln z per parameter; beyond it the density is less than exp(-1e80), and 0
_POWERS = [(-1) ** k / (k * (k - 1)) for k in range(11, 1, -1)]


class LogDensity(NamedTuple):
    """Logarithm of the density at every ln z, its derivative by ln z, an estimate of its error; arrays like ln z."""

    value: np.ndarray
    slope: np.ndarray
    error: np.ndarray


def log_gamma_product(log_z: np.ndarray, shapes: np.ndarray) -> LogDensity:
    """The density of ln(g_1 ... g_m) at `log_z` (any shape), for g_j ~ Gamma(a_j), a_j > 0 the `shapes` (m,)."""
    log_z = np.asarray(log_z, dtype=np.float64)
    a, counts = np.unique(np.asarray(shapes, dtype=np.float64), return_counts=True)
    beyond = log_z > _HIGHEST * counts.sum()
    parts = [
        _log_density(part, a, counts.astype(np.float64))
        for part in np.array_split(np.where(beyond, 0.0, log_z).ravel(), log_z.size // _CHUNK + 1)
    ]
    value, slope, error = (np.concatenate(column).reshape(log_z.shape) for column in zip(*parts, strict=True))
    return LogDensity(np.where(beyond, -np.inf, value), np.where(beyond, -np.inf, slope), error)


def _log_density(log_z: np.ndarray, a: np.ndarray, counts: np.ndarray) -> LogDensity:
    # A contour that runs astray is not used.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        first = _along_contour(log_z, a, counts, *_PARABOLA)
    poor = np.flatnonzero(~(first.error <= _GOOD))
    if not len(poor):
        return first
    second = _along_contour(log_z[poor], a, counts, *_HYPERBOLA)
    better = ~(first.error[poor] <= second.error)
    for old, new in zip(first, second, strict=True):
        old[poor] = np.where(better, new, old[poor])
    return first


def _along_contour(
    log_z: np.ndarray, a: np.ndarray, counts: np.ndarray, straight: float, reach: float
) -> LogDensity:
    lift = _saddle(log_z, a, counts)  # distance of the saddle from the first pole, which does not cancel
    saddle = lift - a[0]
    b = (a - a[0])[:, None] + lift
    second = counts @ special.polygamma(1, b)
    third = counts @ special.polygamma(2, b)
    w = np.arange(reach / _STEP)[:, None] * _STEP
    bend = -third / (6 * second**1.5)  # k in units of 1/sqrt(K'')
    root = np.sqrt(1 + (straight * w) ** 2)
    move = (1j * w - 2 * bend * w * w / (1 + root)) / np.sqrt(second)  # s - c
    terms = np.exp(sum(n * _excess(base, move, base + move) for n, base in zip(counts, b, strict=True)))
    terms = terms * (1 + 2j * bend * w / root)
    terms[0] *= 0.5  # the other half of the contour is the complex conjugate
    total, coarse = terms.real.sum(axis=0), 2 * terms[::2].real.sum(axis=0)
    shift = (terms * move).real.sum(axis=0) / total
    ends = np.broadcast_to(a[:, None], b.shape)
    # How far ln Gamma at a_j is above its tangent at b_j.
    heights = np.stack([_excess(base, -saddle, end) for base, end in zip(b, ends, strict=True)])
    value = -(counts @ heights) + np.log(_STEP * total / np.pi) - 0.5 * np.log(second)
    sizes = np.abs(special.gammaln(b)) + np.abs(special.gammaln(a))[:, None]
    rounding = 1e-15 * (counts @ np.minimum(sizes, np.abs(heights) + np.abs(saddle)) + np.abs(log_z) + 1)
    error = np.abs(1 - coarse / total) + np.abs(terms[-1]) / total + rounding
    return LogDensity(value, -(saddle + shift), error)


def _saddle(log_z: np.ndarray, a: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """x > 0 with sum_j digamma(a_j - a_min + x) = ln z.

    The left side is increasing and concave, so that Newton's steps from below stay below.
    """

    def short(x):
        return counts @ special.digamma((a - a[0])[:, None] + x) - log_z

    at_one = short(np.ones_like(log_z))
    # Below 1 the left side is at most its value at 1 with the pole put in by hand: that bound has a root.
    x = np.where(at_one > 0, counts[0] / (np.maximum(at_one, 0) + counts[0]), 1.0)
    for _ in range(500):
        step = -short(x) / (counts @ special.polygamma(1, (a - a[0])[:, None] + x))
        x = np.maximum(x + step, 0.5 * x)
        if np.all(np.abs(step) <= 1e-12 * x):
            break
    return x


def _excess(b: np.ndarray, d: np.ndarray, end: np.ndarray) -> np.ndarray:
    """ln Gamma(end) - ln Gamma(b) - d digamma(b), end = b + d, without cancellation where b is large."""
    x = d / b
    near = (b > 100) & (np.abs(x) < 0.5)  # else the difference is not small beside its parts
    far = ~near
    b = np.broadcast_to(b, x.shape)
    found = np.empty_like(x)
    gamma = special.loggamma if np.iscomplexobj(x) else special.gammaln
    found[far] = gamma(end[far]) - special.gammaln(b[far]) - d[far] * special.digamma(b[far])
    x, b, d = x[near], b[near], d[near]
    small = np.abs(x) < 0.02
    log = np.log1p(x)
    bow = np.where(small, x * x * np.polyval(_POWERS, x), (1 + x) * log - x)  # (1 + x) ln(1 + x) - x
    stirling = _stirling(b + d) - _stirling(b) + d * (1 / 12 - 1 / (120 * b * b)) / b**2
    found[near] = b * bow - 0.5 * (log - x) + stirling
    return found


def _stirling(b: np.ndarray) -> np.ndarray:
    inverse = 1 / (b * b)
    return (1 / 12 - inverse * (1 / 360 - inverse / 1260)) / b
