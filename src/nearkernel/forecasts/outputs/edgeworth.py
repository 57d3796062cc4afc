r"""Single outputs that are nearly Gaussian: density, distribution function and quantiles to first order in cumulants.

With x = (f - mean)/std, g3 = skewness, g4 = excess kurtosis, both of order 1/n, and He the Hermite polynomials,

    p(f)  = N(f; mean, std^2) [1 + g3/6 He_3(x) + g4/24 He_4(x)]                            (Edgeworth)
    P(f)  = Phi(x) - phi(x) [g3/6 He_2(x) + g4/24 He_3(x)]
    f(q)  = mean + std [z + g3/6 He_2(z) + g4/24 He_3(z)],   z = Phi^-1(q)                  (Cornish and Fisher)

Squares of g3 are of order 1/n^2 and left out. Far out the bracket may be negative, and f(q) may turn back.
"""

import functools
import math

import equinox as eqx
import numpy as np
import scipy.special

from ..._base.warning import warn

_NORMAL = 1.0 / math.sqrt(2.0 * math.pi)
_SEEN = 1e-6  # of the peak


class Edgeworth(eqx.Module):
    """Laws of single outputs, one for every entry of the fields. Where `std` is 0 the output is `mean`."""

    mean: np.ndarray
    std: np.ndarray
    skewness: np.ndarray
    kurtosis: np.ndarray  # excess over a Gaussian

    @functools.cached_property
    def positive(self) -> tuple[np.ndarray, np.ndarray]:
        """(low, high): outputs around the mean between which the density is positive."""
        g3, g4 = self.skewness, self.kurtosis
        bracket = np.stack([1 + g4 / 8, -g3 / 2, -g4 / 4, g3 / 6, g4 / 24], axis=-1)
        low, high = _around_zero(bracket)
        with np.errstate(invalid="ignore"):  # 0 times infinity, where there is nothing but the mean
            ends = [np.where(self.std > 0, self.mean + self.std * end, end) for end in (low, high)]
        return ends[0], ends[1]

    @functools.cached_property
    def increasing(self) -> tuple[np.ndarray, np.ndarray]:
        """(low, high): probabilities between which the quantile increases."""
        g3, g4 = self.skewness, self.kurtosis
        slope = np.stack([1 - g4 / 8, g3 / 3, g4 / 8], axis=-1)
        low, high = _around_zero(slope)
        return scipy.special.ndtr(low), scipy.special.ndtr(high)

    def density(self, f: np.ndarray) -> np.ndarray:
        x = self._standard(f)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            peak = _NORMAL / self.std
            gauss = np.exp(-0.5 * x * x) * peak
            bracket = 1 + self.skewness / 6 * _he3(x) + self.kurtosis / 24 * _he4(x)
            found = np.where(np.isfinite(x), gauss * bracket, 0.0)
        found = np.where((self.std == 0) & (x == 0), np.inf, found)
        say_negative(found, peak)
        return found

    def cdf(self, f: np.ndarray) -> np.ndarray:
        x = self._standard(f)
        with np.errstate(invalid="ignore", over="ignore"):
            bent = np.exp(-0.5 * x * x) * (self.skewness / 6 * _he2(x) + self.kurtosis / 24 * _he3(x))
            bent = np.where(np.isfinite(x), _NORMAL * bent, 0.0)
        found = scipy.special.ndtr(x) - bent
        return np.where((self.std == 0) & (x == 0), 1.0, found)

    def quantile(self, q: np.ndarray) -> np.ndarray:
        """(*shape of q, *shape of the fields)"""
        each = q.reshape(*q.shape, *(1,) * self.mean.ndim)
        low, high = self.increasing
        outside = (each < low) | (each > high)
        if outside.any():
            warn(
                f"`q`: {int(outside.sum())} of {outside.size} quantiles lie where the series is not "
                f"monotonic; it increases from {float(low.max()):.2g} to {float(high.min()):.4g}: see `increasing`."
            )
        return self.bent(scipy.special.ndtri(each))

    def bent(self, z: np.ndarray) -> np.ndarray:
        """Outputs that have these cumulants if `z` is a standard Gaussian."""
        return self.mean + self.std * (z + self.skewness / 6 * _he2(z) + self.kurtosis / 24 * _he3(z))

    def _standard(self, f: np.ndarray) -> np.ndarray:
        away = f - self.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(away == 0, 0.0 * self.std, away / self.std)


def say_negative(density: np.ndarray, peak: np.ndarray | float) -> None:
    """Warns if a density is below 0 where that can be seen, beside its `peak`."""
    bad = int((density < -_SEEN * peak).sum())
    if bad:
        warn(
            f"`density` is negative at {bad} of {density.size} values: the series is not valid that far out; see "
            "`positive`."
        )


def _around_zero(coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) around 0 between which polynomials, lowest power first on the last axis, are positive."""
    flat = coefficients.reshape(-1, coefficients.shape[-1])
    ends = np.array([_interval(each) for each in flat]).reshape(*coefficients.shape[:-1], 2)
    return ends[..., 0], ends[..., 1]


def _interval(coefficients: np.ndarray) -> tuple[float, float]:
    if not np.isfinite(coefficients).all() or coefficients[0] <= 0:
        return math.nan, math.nan
    roots = np.polynomial.polynomial.polyroots(np.trim_zeros(coefficients, "b"))
    real = roots[np.abs(roots.imag) <= 1e-9 * np.abs(roots)].real
    below, above = real[real < 0], real[real > 0]
    return float(below.max(initial=-math.inf)), float(above.min(initial=math.inf))


def _he2(x: np.ndarray) -> np.ndarray:
    return x * x - 1


def _he3(x: np.ndarray) -> np.ndarray:
    return x * (x * x - 3)


def _he4(x: np.ndarray) -> np.ndarray:
    return x * x * (x * x - 6) + 3
