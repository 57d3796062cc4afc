r"""Kinks, and jumps of higher derivatives, as a sum of functions whose averages over two Gaussians are known.

Around a kink $a$ the function is $\sum_p c_p K_p(x - a)$ plus something smooth, with
$K_p(x) = x_+^p / p!\; e^{-x^2 / 2}$. Times the Gaussian of a pair, the exponentials are the Gaussian of another pair,
and averages of $x_+^p\, y_+^r$ follow from the probability of a quadrant by integration by parts.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from .grid import density
from .panels import NODES

ORDERS = 5  # K_0, ..., K_4: what is left has continuous derivatives up to the fourth
_LEGENDRE = np.polynomial.legendre.leggauss(20)
_STRONG = 0.925  # correlation beyond which the integral for a quadrant starts at 1, not at 0
_FAR = 37.0  # beyond, probabilities are 0
_FIT = 0.25  # from a kink to the farthest value that its derivatives are taken from
_FACTORIALS = np.array([1.0, 1.0, 2.0, 6.0, 24.0])


class Jumps(NamedTuple):
    """`kinks` (k,) and `sizes` (k, ORDERS), the factors of K_p."""

    kinks: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, function: Callable[[np.ndarray], np.ndarray], kinks: np.ndarray) -> "Jumps":
        """Those of a function whose kinks are known."""
        between = np.diff(kinks, prepend=-np.inf, append=np.inf)
        sizes = np.array(
            [
                _derivatives(function, kink, min(_FIT, 0.5 * right))
                - _derivatives(function, kink, -min(_FIT, 0.5 * left))
                for kink, left, right in zip(kinks, between[:-1], between[1:], strict=True)
            ]
        ).reshape(-1, ORDERS)
        # Derivatives of the exponential jump as well: K_p holds x^p (1 - x^2 / 2 + x^4 / 8).
        for p in range(2, ORDERS):
            sizes[:, p] += _FACTORIALS[p] / _FACTORIALS[p - 2] / 2 * sizes[:, p - 2]
            if p >= 4:
                sizes[:, p] -= _FACTORIALS[p] / _FACTORIALS[p - 4] / 8 * sizes[:, p - 4]
        return cls(kinks, sizes)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        values = np.zeros_like(x)
        for kink, sizes in zip(self.kinks, self.sizes, strict=True):
            y = x - kink
            polynomial = np.polynomial.polynomial.polyval(y, sizes / _FACTORIALS)
            values += np.where(y > 0, polynomial, 0.0) * np.exp(-0.5 * y * y)
        return values


def _derivatives(function: Callable, at: float, width: float) -> np.ndarray:
    """The first ORDERS derivatives at `at`, from values between it and `at` + `width`."""
    fit = np.polynomial.Polynomial.fit(NODES, function(at + 0.5 * width * (1 + NODES)), 11)
    return np.array([fit.deriv(p)(-1.0) * (2 / width) ** p for p in range(ORDERS)])


def averages(functions: list[Jumps], q1: np.ndarray, q2: np.ndarray, gap: np.ndarray) -> list[np.ndarray]:
    """E[J(u) J(v)] of each of `functions`, which have the same kinks; `q1`, `q2` and `gap` broadcast."""
    c = 1.0 - gap
    both, cov = q1 * q2, np.sqrt(q1 * q2) * c
    apart = both * gap * (2.0 - gap)  # determinant
    det = apart + q1 + q2 + 1.0
    root1, root2 = np.sqrt((apart + q1) / det), np.sqrt((apart + q2) / det)
    pair = _Pair(cov / det / (root1 * root2), np.sqrt(apart / det) / (root1 * root2))
    sums = [np.zeros(np.broadcast_shapes(q1.shape, q2.shape, gap.shape)) for _ in functions]
    for i, a in enumerate(functions[0].kinks):
        for j, b in enumerate(functions[0].kinks):
            h = ((q2 + 1.0) * a - cov * b) / (det * root1)
            k = ((q1 + 1.0) * b - cov * a) / (det * root2)
            size = np.exp(-0.5 * ((q2 + 1.0) * a * a + (q1 + 1.0) * b * b - 2 * cov * a * b) / det) / np.sqrt(
                det
            )
            moments = pair.moments(h, k)
            for jumps, total in zip(functions, sums, strict=True):
                for (p, r), moment in moments.items():
                    factor = jumps.sizes[i, p] * jumps.sizes[j, r]
                    if factor:
                        total += factor * size * root1**p * root2**r * moment
    return sums


class _Pair(NamedTuple):
    """Two standard normal variables: their correlation, and the root of 1 - correlation^2."""

    c: np.ndarray
    sine: np.ndarray

    def moments(self, h: np.ndarray, k: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
        """E[(x - h)_+^p (y - k)_+^r] / (p! r!) for all p and r below ORDERS."""
        integrals = {(0, 0): quadrant(h, k, self.c, self.sine)}
        integrals |= {(-1, r): value for r, value in enumerate(self._on_line(h, k))}
        integrals |= {(p, -1): value for p, value in enumerate(self._on_line(k, h))}
        for r in range(1, ORDERS):
            integrals[0, r] = (
                self.c * integrals[-1, r - 1]
                - k * integrals[0, r - 1]
                + (integrals[0, r - 2] if r > 1 else integrals[0, -1])
            ) / r
        for p in range(1, ORDERS):
            for r in range(ORDERS):
                integrals[p, r] = (
                    self.c * integrals[p - 1, r - 1] - h * integrals[p - 1, r] + integrals[p - 2, r]
                ) / p
        return {powers: integrals[powers] for powers in integrals if min(powers) >= 0}

    def _on_line(self, h: np.ndarray, k: np.ndarray) -> list[np.ndarray]:
        """E[(y - k)_+^r] / r! given x = h, times the density of x there."""
        sine = np.maximum(self.sine, 1e-40)
        sign = np.where(self.c < 0, -1.0, 1.0)
        # k - c h, where c has no digits left near 1
        at = (k - sign * h + sign * self.sine**2 / (1.0 + np.abs(self.c)) * h) / sine
        values = [density(at), ndtr(-at)]
        for r in range(1, ORDERS):
            values.append((-at * values[-1] + values[-2]) / r)
        return [density(h) * sine**r * value for r, value in enumerate(values[1:])]


def quadrant(h: np.ndarray, k: np.ndarray, c: np.ndarray, sine: np.ndarray) -> np.ndarray:
    """P(x > h, y > k) of standard normal variables, by the method of Drezner and Wesolowsky as improved by Genz."""
    h, k, c, sine = np.broadcast_arrays(np.clip(h, -_FAR, _FAR), np.clip(k, -_FAR, _FAR), c, sine)
    strong = np.abs(c) > _STRONG
    probability = np.empty(h.shape)
    for chosen, method in ((~strong, _weakly), (strong, _strongly)):
        probability[chosen] = method(*(a[chosen] for a in (h, k, c, sine)))
    return probability


def _weakly(h, k, c, sine) -> np.ndarray:
    """From independent variables on."""
    half, product, squares = 0.5 * np.arcsin(c), h * k, 0.5 * (h * h + k * k)
    total = np.zeros(h.shape)
    for node, weight in zip(*_LEGENDRE, strict=True):
        at = np.sin(half * (node + 1.0))
        total += weight * np.exp((at * product - squares) / (1.0 - at * at))
    return total * half / (2 * np.pi) + ndtr(-h) * ndtr(-k)


def _strongly(h, k, c, sine) -> np.ndarray:
    """From equal (or opposite) variables on; what is not smooth there is integrated by hand."""
    sign = np.where(c < 0, -1.0, 1.0)
    k = sign * k
    product, apart, square = h * k, (h - k) ** 2, np.maximum(sine, 1e-40) ** 2
    one, two = (4.0 - product) / 8.0, (12.0 - product) / 16.0
    total = sine * np.exp(-0.5 * (apart / square + product))
    total *= 1.0 - one * (apart - square) * (1.0 - two * apart / 5.0) / 3.0 + one * two * square**2 / 5.0
    root = np.sqrt(apart)
    by_hand = np.sqrt(2 * np.pi) * ndtr(-root / np.sqrt(square)) * root
    total -= np.exp(-0.5 * product) * by_hand * (1.0 - one * apart * (1.0 - two * apart / 5.0) / 3.0)
    for node, weight in zip(*_LEGENDRE, strict=True):
        at = (0.5 * sine * (node + 1.0)) ** 2
        other = np.sqrt(1.0 - at)
        smooth = np.exp(-0.5 * product * at / (1.0 + other) ** 2) / other - (
            1.0 + one * at * (1.0 + two * at)
        )
        total += 0.5 * sine * weight * np.exp(-0.5 * (apart / np.maximum(at, 1e-80) + product)) * smooth
    total *= -sign / (2 * np.pi)
    return total + np.where(sign > 0, ndtr(-np.maximum(h, k)), np.maximum(ndtr(k) - ndtr(h), 0.0))
