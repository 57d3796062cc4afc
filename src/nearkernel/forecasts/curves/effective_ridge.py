r"""The effective ridge kappa of m examples and p random features, and the error that follows from it.

With z(kappa) = sum_i lam_i/(lam_i + kappa), the degrees of freedom, a ridge s acts as

    s = kappa (m - z)(p - z)/p,          infinitely many features: s = kappa (m - z).

The error is bilinear in ridges. With kappa'_j = kappa_j (p - z_j)/p and
A(kappa) = noise + sum_i v_i^2 kappa/(lam_i + kappa),

    E = sum_jk w_j w_k N_jk / D_jk,   N_jk = (kappa'_k A_j - kappa'_j A_k) / (kappa'_k - kappa'_j),
    D_jk = 1 - (kappa'_k z_k - kappa'_j z_j) / (m (kappa'_k - kappa'_j));

on the diagonal, with q = sum L^2, B = noise + sum v^2 (1 - L)^2, L = lam/(lam + kappa):
N = A - (A - B)(p - z)/(p - q), D = 1 - (q (p - 2 z) + z^2)/(m (p - q)).
"""

import abc
import math
from typing import NamedTuple

import numpy as np
import scipy.optimize

from ...dynamics.algorithms.ridges import Ridges

_STEPS = 8  # along the arc from a real strength to a complex one


class Moments(NamedTuple):
    """At parameters theta (k,)."""

    kappa: np.ndarray
    z: np.ndarray
    a: np.ndarray
    q: np.ndarray
    b: np.ndarray


class Degrees(NamedTuple):
    """kappa and z at parameters theta (k,), and their derivatives by theta."""

    kappa: np.ndarray
    z: np.ndarray
    dkappa: np.ndarray
    dz: np.ndarray


class AbstractMoments(abc.ABC):
    """A task, by a spectrum (theta is kappa) or by one kernel matrix (theta is its ridge)."""

    trace: float
    most: float  # degrees of freedom at kappa = 0

    @abc.abstractmethod
    def at(self, theta: np.ndarray) -> Moments: ...

    @abc.abstractmethod
    def degrees(self, theta: np.ndarray) -> Degrees: ...


def effective(task: AbstractMoments, strengths: np.ndarray, m: float, p: float) -> Moments:
    """The moments at every strength; kappa = 0 is theta = 0."""
    theta = np.array([_real(task, abs(s), m, p) for s in strengths], dtype=strengths.dtype)
    if np.iscomplexobj(strengths):
        for share in np.arange(1, _STEPS + 1) / _STEPS:
            target = np.abs(strengths) * np.exp(1j * share * np.angle(strengths))
            theta = _newton(task, theta, target, m, p)
    return task.at(theta)


def _short(found: Degrees, m: float, p: float) -> tuple[np.ndarray, np.ndarray]:
    """kappa (m - z)(p - z)/p, and its derivative by theta."""
    free = 1.0 if math.isinf(p) else (p - found.z) / p
    value = found.kappa * (m - found.z) * free
    slope = found.dkappa * (m - found.z) * free - found.kappa * found.dz * free
    return value, slope if math.isinf(p) else slope - found.kappa * (m - found.z) * found.dz / p


def _newton(task, theta: np.ndarray, strengths: np.ndarray, m: float, p: float) -> np.ndarray:
    for _ in range(60):
        value, slope = _short(task.degrees(theta), m, p)
        step = (value - strengths) / slope
        theta = theta - step
        if np.all(np.abs(step) <= 1e-13 * np.abs(theta)):
            break
    return theta


def _real(task: AbstractMoments, strength: float, m: float, p: float) -> float:
    """theta > 0 where all of z stays below m and p; 0 if nothing is left to learn."""
    if math.isinf(strength):
        return math.inf
    few = min(m, p)
    free = lambda t: few - float(task.degrees(np.array([t])).z[0])
    high = (strength + task.trace) / few
    while free(high) <= 0:
        high *= 2
    low = 0.0
    if task.most > few:  # theta below which z would exceed the smaller of m and p
        small = high
        while free(small) > 0:
            small /= 4
        low = float(
            np.exp(scipy.optimize.brentq(lambda u: free(np.exp(u)), np.log(small), np.log(4 * small)))
        )
    if strength == 0:
        return low
    above = lambda t: float(_short(task.degrees(np.array([t])), m, p)[0][0]) - strength
    while above(high) <= 0:
        high *= 2
    start = low * (1 + 1e-12) if low else high
    while not low and above(start) > 0:
        start /= 4
    if above(start) >= 0:
        return start
    return float(
        np.exp(scipy.optimize.brentq(lambda u: above(np.exp(u)), np.log(start), np.log(high), xtol=1e-14))
    )


def error_of(found: Moments, ridges: Ridges, m: float, p: float) -> float:
    """E for a sum of ridges."""
    w = ridges.weights
    if len(w) == 1:
        return float(_diagonal(found, m, p)[0].real)
    free = np.ones_like(found.z) if math.isinf(p) else (p - found.z) / p
    prime = found.kappa * free
    total = 0.0
    for conjugate in (False, True):
        other = np.conj if conjugate else (lambda v: v)
        prime2, a2, z2 = other(prime), other(found.a), other(found.z)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = prime2[None, :] - prime[:, None]
            above = (prime2[None, :] * found.a[:, None] - prime[:, None] * a2[None, :]) / apart
            below = 1 - (prime2[None, :] * z2[None, :] - prime[:, None] * found.z[:, None]) / (m * apart)
            pairs = above / below
        if not conjugate:
            np.fill_diagonal(pairs, _diagonal(found, m, p))
        total += 0.5 * float((np.outer(w, other(w)) * pairs).sum().real)
    return total


def _diagonal(found: Moments, m: float, p: float) -> np.ndarray:
    z, q, a, b = found.z, found.q, found.a, found.b
    with np.errstate(divide="ignore", invalid="ignore"):
        if math.isinf(p):
            below = 1 - q / m
            return np.where(below == 0, np.inf, b / below)
        above = a - (p - z) / (p - q) * (a - b)
        below = 1 - (q * (p - 2 * z) + z**2) / (m * (p - q))
        return np.where(below == 0, np.inf, above / below)
