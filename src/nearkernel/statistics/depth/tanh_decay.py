r"""How the variance falls to 0 at the initialization that is critical there: the class of tanh.

At C_b = 0 and C_W = 1/s'(0)^2 a layer takes a share of a small variance,

    K' = K (1 - loss(K)),   loss(K) = 1 - C_W E[s^2]/K,

and if loss -> rate K^p, then K -> (p rate l)^(-1/p) at depth l. Where "small" begins depends on the activation: a
variance is small if its loss is, so that s(z) and s(100 z) are treated alike.
"""

from typing import NamedTuple

import numpy as np
import scipy.optimize

from ...activations.base import AbstractActivation, moments
from .activation_class import derivatives_beside_zero, variance_map_at_zero

_SMALLEST = 1e-20
_DECADES = np.arange(-20.0, 6.0)  # of the variances at which the loss is looked for
_TOPS = (1e-3, 1e-4, 1e-5, 1e-6)  # losses that may count as small
_SPAN, _BOTTOM = 1e-4, 1e-8  # how far below the top to look; the loss has a rounding error of 1e-13
_REPELS = -1e-9
_NODES, _DEGREE, _DERIVATIVES = 25, 4, 6
_POWERS = 0.2, 6.0  # exponents p that can be told from none
_SETTLED, _SAME = 1e-3, 1e-2


class Decay(NamedTuple):
    """`weight_var`, the critical C_W; `exponent` p and `rate` of the loss, nan where it follows no power of K; `fast`,
    whether it then falls faster than every power."""

    weight_var: float
    exponent: float
    rate: float
    fast: bool


def decay_at_zero(activation: AbstractActivation) -> Decay | None:
    """The law of the loss at small variances; None unless K = 0 is a fixed point that attracts."""
    beside = derivatives_beside_zero(activation, _DERIVATIVES)
    slope = _slope(activation, beside)
    if slope is None:
        return None
    smooth = np.isfinite(beside).all() and np.allclose(beside[0], beside[1], rtol=1e-9, atol=1e-100)
    loss = _Loss(activation, 1.0 / slope)
    seen = loss.scan()
    fast = False
    for top in _TOPS:
        high = loss.reaches(top, *seen)
        if high is None:
            continue
        ratio = max(_SPAN, _BOTTOM / top)
        low = high * ratio ** (1.0 / max(float(loss(high)[1]), _POWERS[0]))
        k = np.geomspace(max(low, _SMALLEST), high, _NODES)
        values, exponents = loss(k)
        if (values < _REPELS).any():
            return None
        p = _power(k, values, exponents, 1.0 if smooth else 0.5)
        if p is not None:
            rate = _rate(k, values, p, 1.0 if smooth else min(p, 0.5))
            exact = -variance_map_at_zero(beside[0])[0] if smooth and p == 1 else rate
            rate = exact if abs(exact - rate) < _SAME * rate else rate
            return Decay(loss.weight_var, p, rate, fast=False)
        fast = fast or bool(exponents[0] > max(exponents[-1], 1.0))
    attracts = (seen[1] > min(_TOPS)).any() and not (seen[1] < _REPELS).any()
    return Decay(loss.weight_var, np.nan, np.nan, fast) if attracts else None


def _slope(activation: AbstractActivation, beside: np.ndarray) -> float | None:
    """E[s'^2] as K -> 0; None unless s(0) = 0 and s'(0) differs from 0 on some side."""
    tiny = moments(activation, _SMALLEST)
    slope = float(tiny.slope)
    if not (slope > 0 and abs(float(tiny.value) / _SMALLEST - slope) <= 1e-6 * slope):
        return None
    exact = 0.5 * float(np.sum(beside[:, 1] ** 2))
    return exact if abs(exact - slope) <= 1e-6 * slope else slope


class _Loss(NamedTuple):
    """The loss as a function of K, with its exponent d ln(loss) / d ln(K)."""

    activation: AbstractActivation
    weight_var: float

    def __call__(self, k: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        at = moments(self.activation, k)
        kept = self.weight_var * at.value / k
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1.0 - kept, (kept - self.weight_var * (at.slope + at.curvature)) / (1.0 - kept)

    def scan(self) -> tuple[np.ndarray, np.ndarray]:
        """Variances, one a decade, and their losses, up to where the loss is no longer small."""
        ks, losses = [], []
        for k in 10.0**_DECADES:
            try:
                value = float(self(k)[0])
            except ValueError:  # it changes too fast, or overflows, at arguments that large
                break
            ks.append(k)
            losses.append(value)
            if not abs(value) < max(_TOPS):
                break
        return np.array(ks), np.array(losses)

    def reaches(self, top: float, k: np.ndarray, losses: np.ndarray) -> float | None:
        """The first variance at which the loss is `top`, from the results of `scan`."""
        first = int(np.argmax(losses >= top))
        if first == 0:  # nowhere
            return None
        bracket = np.log(k[first - 1 : first + 1])
        return float(
            np.exp(scipy.optimize.brentq(lambda at: float(self(np.exp(at))[0]) - top, *bracket, rtol=1e-6))
        )


def _power(k: np.ndarray, losses: np.ndarray, exponents: np.ndarray, step: float) -> float | None:
    """The exponent as K -> 0, by a polynomial in K^step, or None; a multiple of 1/2 if close to one."""
    powers = _powers(k, step)
    weight = np.minimum(losses / (10 * _BOTTOM), 1.0)  # below, rounding shows
    fitted = np.linalg.lstsq(powers * weight[:, None], exponents * weight, rcond=None)[0]
    p = float(fitted[0])
    if np.abs((powers @ fitted - exponents) * weight).max() > _SETTLED or not _POWERS[0] < p < _POWERS[1]:
        return None
    half = round(2 * p) / 2
    return half if abs(p - half) < _SAME else p


def _rate(k: np.ndarray, losses: np.ndarray, p: float, step: float) -> float:
    """loss / K^p as K -> 0, by a polynomial in K^step."""
    weight = (k / k[-1]) ** p  # the error of the loss is the same at all nodes
    fitted = np.linalg.lstsq(_powers(k, step) * weight[:, None], losses, rcond=None)[0]
    return float(fitted[0] / k[-1] ** p)


def _powers(k: np.ndarray, step: float) -> np.ndarray:
    return (k / k[-1])[:, None] ** (step * np.arange(_DEGREE + 1))
