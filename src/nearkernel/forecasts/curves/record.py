"""The result of `learning_curve`, and its extrapolation beyond the data."""

import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from ..._base.check import numeric
from ..._base.result import Result
from ..._base.types import ArrayLike, Float, Num
from ...dynamics.algorithms.spectral import SpectralAlgorithm
from .subset_error import Pool

_FARTHEST = 8  # times n
_SIGMAS = 2.0
_VAGUE = 0.35  # relative standard error of an extrapolation that tells nothing
_STEEP = 1.0  # slope beyond which a curve is on a step, not on a power law
_SIMILAR = 2.0  # ratio of the slopes of the last half and the last three quarters


class TrainedCurve(NamedTuple):
    """Real fits at each size: the mean `error` and its `spread` over fits (NaN if too few rows are left for testing).

    **Fields:** `sizes`; `error`; `spread`; `error_rate` for classes, otherwise None; `fits`, the number of fits at
    each size.
    """

    sizes: np.ndarray
    error: np.ndarray
    spread: np.ndarray
    error_rate: np.ndarray | None
    fits: int


class Tail(NamedTuple):
    """Summands of the error, one per point, at sizes from n/4 to n."""

    sizes: np.ndarray
    summands: np.ndarray

    @property
    def error(self) -> np.ndarray:
        return self.summands.mean(axis=1)


class Extrapolation(Result, eqx.Module):
    """The extrapolated error with more examples than available, assuming a power law.

    **Fields:** `sizes`; `error`, the middle of two fits; `low` and `high`, an interval that contains both fits,
    widened by two standard errors and by a change of the slope $s$ by $s^2/2$ (at most $s/2$); `trusted`, and if it is
    False, the `reason`. The data cannot reveal an error floor below the present error.
    """

    sizes: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    trusted: bool
    reason: str


@dataclasses.dataclass(frozen=True, eq=False)
class LearningCurveResult:
    """The expected test error of training on m examples.

    **Fields:** `sizes`, `error`, `sem`, `train_error`, each (k,): the error at a new point, its standard error as
    an estimate from these n points, and the training error; `by_output` (k, out), the error of each output,
    whose sum is `error`; `n`; `algorithm`; `average`, whether the loss was a mean;
    `trained`, a `TrainedCurve` of real fits or None; `error_rate`, for classes, the leave-one-out error rate at m =
    n; `noise_floor`, from repeated rows, or None; `notes`.
    """

    sizes: Num[np.ndarray, " k"]
    error: Float[np.ndarray, " k"]
    sem: Float[np.ndarray, " k"]
    by_output: Float[np.ndarray, "k out"]
    train_error: Float[np.ndarray, " k"]
    n: int
    algorithm: SpectralAlgorithm
    average: bool
    trained: TrainedCurve | None
    error_rate: float | None
    noise_floor: float | None
    notes: tuple[str, ...]
    tail: Tail = dataclasses.field(repr=False)
    pool: Pool = dataclasses.field(repr=False)
    at_size: Any = dataclasses.field(repr=False)

    @property
    def slope(self) -> tuple[float, float]:
        """-d ln E / d ln m, over the last three quarters and over the last half of the examples."""
        return self._fit(0.25)[0], self._fit(0.5)[0]

    def _fit(self, share: float) -> tuple[float, np.ndarray]:
        """The slope, and the weights of ln E at the sizes of the tail in it."""
        used = self.tail.sizes >= share * self.n * 0.99
        log = np.where(used, np.log(self.tail.sizes), 0.0)
        centered = np.where(used, log - log[used].mean(), 0.0)
        weights = -centered / max((centered**2).sum(), 1e-300)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(weights[used] @ np.log(self.tail.error[used])), weights

    def extrapolate(self, sizes: ArrayLike) -> Extrapolation:
        """The extrapolated error at `sizes` (k,) from n to 8 n, by power laws fitted to the end of the curve.

        One fit uses the last half of the sizes, the other the last three quarters. The interval covers their
        difference and the sampling error of the data. `trusted` is False if the curve is not a power law, or too
        uncertain.
        """
        sizes = np.atleast_1d(numeric(sizes, "sizes"))
        if sizes.ndim != 1 or not sizes.size or sizes.min() < self.n:
            raise ValueError(
                f"`sizes` must be at least the number of rows, {self.n}: for smaller sizes, use `error`."
            )
        if sizes.max() > _FARTHEST * self.n:
            raise ValueError(
                f"`sizes` must be at most {_FARTHEST} times the number of rows, {_FARTHEST * self.n}; got "
                f"{sizes.max():g}: a curve cannot be extrapolated further."
            )
        tail, away = self.tail, np.log(sizes / self.n)
        end = np.eye(len(tail.sizes))[-1]
        fits, bent, deviations = [], [], []
        for share in (0.25, 0.5):
            slope, weights = self._fit(share)
            fits.append(math.log(max(tail.error[-1], 1e-300)) - slope * away)
            bent.append(0.5 * min(slope**2, abs(slope)) * away)  # the steeper it is, the less it goes on so
            combined = end - away[:, None] * weights  # of ln E at the sizes of the tail
            influence = combined @ (tail.summands / tail.error[:, None] - 1.0)
            deviations.append(influence.std(axis=1, ddof=1) / math.sqrt(self.n))
        both, widest = np.array(fits), np.max(deviations, axis=0)
        margin = _SIGMAS * widest + np.max(bent, axis=0)
        reason = self._doubt(float(widest.max()))
        return Extrapolation(
            sizes,
            np.exp(both.mean(axis=0)),
            np.exp(both.min(axis=0) - margin),
            np.exp(both.max(axis=0) + margin),
            not reason,
            reason,
        )

    def _doubt(self, deviation: float) -> str:
        long, short = self.slope
        errors = self.tail.error
        if not np.all(np.isfinite(errors)) or np.any(errors <= 0):
            return "the curve is not finite and positive"
        if np.any(np.diff(errors) > 0.02 * errors[:-1]):
            return "the error increases somewhere between a quarter of the rows and all rows"
        if long * short <= 0 or not 1 / _SIMILAR < long / short < _SIMILAR:
            return (
                f"the slope changes, from {long:.2g} over three quarters of the rows to {short:.2g} over half"
            )
        if short > _STEEP:
            return f"the curve is steep, with a slope of {short:.2g}, which cannot continue"
        if deviation > _VAGUE:
            return f"its standard error is {100 * deviation:.0f} %"
        return ""

    def with_features(self, count: float, sizes: ArrayLike | None = None) -> np.ndarray:
        r"""The error at `sizes` (by default those of the curve) with `count` random features in place of the kernel.

        This is a network of width `count` in which only the last layer is trained, with sample-wise and width-wise
        double descent. It does not describe a fully trained network of that width. The accuracy is 3 to 9 %, and 25 %
        at the peak.
        """
        from .random_features import with_features

        return with_features(self, count, self.sizes if sizes is None else sizes)

    @property
    def spectral_decay(self) -> tuple[float, float]:
        r"""The power $a$ of eigenvalues $\lambda_i \sim i^{-a}$, fitted at $n/8$ to $n/4$ and at $n/4$ to $n/2$ degrees
        of freedom.

        It comes from the degrees of freedom $z$ as a function of the effective ridge $\kappa$,
        $1/a = -d \ln z / d \ln \kappa$, because the smallest eigenvalues of the kernel matrix itself decrease too fast.
        """
        from .random_features import degrees_of_freedom

        log = np.log([degrees_of_freedom(self.pool, self.n * share) for share in (1 / 8, 1 / 4, 1 / 2)])
        first, second = -np.diff(log) / math.log(2)
        return float(first), float(second)

    def plot(self, axes: Any = None) -> Any:
        """Draw the error, error bars, real fits and the extrapolation to twice the examples on Matplotlib's `axes`."""
        from ..._plots.axes import given_or_new

        axes = given_or_new(axes)
        axes.plot(self.sizes, self.error, "-", label="predicted")
        color = axes.lines[-1].get_color()
        band = _SIGMAS * self.sem
        axes.fill_between(
            self.sizes, self.error - band, self.error + band, color=color, alpha=0.2, linewidth=0
        )
        ahead = self.extrapolate(np.geomspace(self.n, 2 * self.n, 9))
        if ahead.trusted:
            axes.plot(ahead.sizes, ahead.error, ":", color=color, label="extrapolated")
            axes.fill_between(ahead.sizes, ahead.low, ahead.high, color=color, alpha=0.1, linewidth=0)
        if self.trained is not None:
            spread = self.trained.spread if self.trained.fits > 1 else None
            axes.errorbar(
                self.trained.sizes,
                self.trained.error,
                spread,
                fmt="o",
                markersize=4,
                label=f"real fits ({self.trained.fits} each)",
            )
        if self.noise_floor is not None:
            axes.axhline(self.noise_floor, linestyle="--", linewidth=1, label="noise of repeated rows")
        axes.set(xlabel="examples", ylabel="mean squared error", xscale="log", yscale="log")
        halves = [2 * self.n // 2**k for k in range(8) if 2 * self.n // 2**k >= self.sizes[0]]
        axes.set_xticks(halves, [str(size) for size in halves])
        axes.set_xticks([], minor=True)
        axes.legend()
        return axes
