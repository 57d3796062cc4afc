"""The interface shared by all solutions. They are frozen: a query answers, and changes no field."""

import abc
import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Self

import equinox as eqx
import numpy as np

from ..._base.check import positive, shown
from ..._base.result import Result
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike, Float, Num
from ..._run.precision import in_float64
from ..algorithms.regime import RegimeResult, regime_of
from ..algorithms.spectral import (
    AbstractAlgorithm,
    GradientDescent,
    GradientFlow,
    SpectralAlgorithm,
    TimedAlgorithm,
)
from .factor import AbstractFactor, Spectrum
from .tangent import AbstractTangent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AbstractSpread(abc.ABC):
    """How outputs at new inputs spread, computed on demand."""

    @abc.abstractmethod
    def covariance(self) -> np.ndarray:
        """(m, m), or (m, out, m, out) for targets (n, out)."""

    @abc.abstractmethod
    def variance(self) -> np.ndarray:
        """Its diagonal in the shape of the mean, without the matrix."""


class Prediction(Result, eqx.Module):
    """Predicted outputs at new inputs, in the shape of `y`.

    **Fields:** `terms`, one array per order; for `SGD`, `cov`, the covariance over batches and noise, (m, m), or (m,
    out, m, out) for targets (n, out), computed on first use, and `std`, the standard deviation in the shape of `y`,
    computed without `cov`. For other algorithms both are None.
    """

    terms: tuple[Float[np.ndarray, " m *out"], ...]
    _spread: AbstractSpread | None = None

    @property
    def mean(self) -> Float[np.ndarray, " m *out"]:
        """The sum of the terms."""
        return sum(self.terms[1:], self.terms[0])

    @property
    def correction(self) -> float | None:
        r"""The size of the first correction, $\lVert z^{I}\rVert / \lVert z^{F}\rVert$; None at order 0."""
        if len(self.terms) < 2:
            return None
        linear, first = (float(np.linalg.norm(term)) for term in self.terms[:2])
        if first == 0:
            return 0.0
        return first / linear if linear > 0 else np.inf

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the outputs, one line per point of `x_new`, order by order, on Matplotlib's `axes` (new if None)."""
        from ..._plots.orders import draw_orders

        return draw_orders(self.terms, axes)

    @functools.cached_property
    def cov(self) -> np.ndarray | None:
        """The covariance over batches and noise, computed on first use."""
        return None if self._spread is None else self._spread.covariance()

    @property
    def std(self) -> Float[np.ndarray, " m *out"] | None:
        """The square root of the diagonal of `cov`, in the shape of the mean, computed without the matrix."""
        return None if self._spread is None else np.sqrt(np.maximum(self._spread.variance(), 0.0))


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AbstractSolution(Result, abc.ABC):
    """A trained model: `predict(x_new)`, `at(time)`, `residual()`, `loss()`, `plot()`.

    **Fields:** `algorithm`; `status`, an `nk.Status`, and its `ok`.
    """

    algorithm: AbstractAlgorithm
    _x: np.ndarray
    _y: np.ndarray
    _vector: bool

    @property
    @abc.abstractmethod
    def status(self) -> Status:
        """How training ends, with the relevant numbers."""

    @property
    def ok(self) -> bool:
        return self.status.ok

    @abc.abstractmethod
    def predict(self, x_new: Num[ArrayLike, " m *d"], time: float | None = None) -> Prediction:
        """Outputs at `x_new` (m, d); with `time`, the outputs of `at(time)`."""

    @abc.abstractmethod
    def at(self, moment: float) -> Self:
        """The same training at another time `moment` (steps for gradient descent)."""

    def _shaped(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs (m, out) in the shape of predictions."""
        return outputs[:, 0] if self._vector else outputs

    @in_float64
    def residual(self, time: float | None = None) -> Float[np.ndarray, " n *out"]:
        """$z - y$ on the training set, in the shape of `y`; by default at the end of training, else at `time`."""
        return self.predict(self._x, time).mean - self._shaped(self._y)

    def loss(self, time: float | None = None) -> float:
        r"""The loss on the training set, $\frac12 \sum (z - y)^2$, at the end of training or at `time`."""
        with np.errstate(over="ignore"):
            return 0.5 * float((self.residual(time) ** 2).sum())

    @in_float64
    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the loss over time for gradient flow and descent, or outputs against targets, on Matplotlib's `axes`.

        Makes new axes if `axes` is None. Returns the axes.
        """
        from ..._plots.training import draw_fit, draw_loss

        if isinstance(self.algorithm, GradientDescent | GradientFlow):
            return draw_loss(*self._losses(), axes, name=_unit(self.algorithm))
        fitted = self.residual() + self._shaped(self._y)
        return draw_fit(self._y, fitted.reshape(self._y.shape), axes)

    def _losses(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and losses at them, up to the end or to when nothing moves any more."""
        times = self._plot_times()
        return times, np.array([self.loss(time) for time in times])

    def _plot_times(self) -> np.ndarray:
        """A few dozen times that show all of training."""
        algorithm = self.algorithm
        assert isinstance(algorithm, GradientDescent | GradientFlow)
        end, descends = float(algorithm.end()), isinstance(algorithm, GradientDescent)
        first = 1.0 if descends else min(end, 1.0) / 1e3
        times = (
            np.geomspace(first, end if math.isfinite(end) else 1e4, 33) if end > first else np.array([end])
        )
        return np.unique(np.round(times)) if descends else times

    def _shown(self) -> Mapping[str, object]:
        return {
            "n": len(self._x),
            "outputs": self._y.shape[1],
            "algorithm": self.algorithm,
            "status": self.status,
        }


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FactoredSolution(AbstractSolution):
    """One that knows its kernel matrix by a factor."""

    algorithm: SpectralAlgorithm
    _tangent: AbstractTangent
    _factor: AbstractFactor

    @property
    def regime(self) -> RegimeResult | None:
        """The result of `nk.regime` for an expanded `nk.MLP` (or `nk.Scaled` of it) or its tangent kernel, or None."""
        return regime_of(self._tangent.network(), self._y)

    def _shown(self) -> Mapping[str, object]:
        regime = self.regime
        return super()._shown() if regime is None else {**super()._shown(), "regime": regime.name}

    @property
    def rank(self) -> int:
        return self._factor.rank

    @property
    def cutoff(self) -> float:
        return self._factor.cutoff

    @functools.cached_property
    def _spectrum(self) -> Spectrum:
        """All eigenvalues, for questions that need them: kept beside the factor, which stays that of this solution.

        Threads that ask at once may make it twice, with the same result.
        """
        return self._factor if isinstance(self._factor, Spectrum) else self._tangent.spectrum(self._x)

    @functools.cached_property
    @in_float64
    def lambda_max(self) -> float:
        """The largest eigenvalue of the kernel matrix."""
        known = self._factor.lam_max
        return self._tangent.largest_eigenvalue(self._x) if math.isnan(known) else known

    @property
    def status(self) -> Status:
        """How training ends: converged, stopped early, singular, or divergent, with the stability limit."""
        return status_of(self.algorithm, self._factor)

    def _plot_times(self) -> np.ndarray:
        if math.isfinite(self.algorithm.end()):
            return super()._plot_times()
        rate = self.lambda_max * (self.algorithm.lr if isinstance(self.algorithm, GradientDescent) else 1.0)
        times = np.geomspace(1e-2, 1e4, 33) / rate if rate else np.ones(1)
        return np.unique(np.round(times) + 1) if isinstance(self.algorithm, GradientDescent) else times


class ForecastLosses(Protocol):
    """A forecast of the loss over time."""

    @property
    def algorithm(self) -> AbstractAlgorithm: ...

    @property
    def times(self) -> np.ndarray: ...

    @property
    def loss(self) -> np.ndarray: ...


def losses_of(
    theory: AbstractSolution | ForecastLosses, unit: str, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Times and losses of a `theory`, up to the last of `times`."""
    if getattr(getattr(theory, "algorithm", None), "unit", unit) != unit:
        raise ValueError(
            f"`theory` must count time in {unit}s, like this run; got {shown(theory.algorithm)}."
        )
    if isinstance(theory, AbstractSolution):
        return times, np.array([theory.loss(time) for time in times.tolist()])
    if not (hasattr(theory, "times") and hasattr(theory, "loss")):
        raise TypeError(
            "`theory` must be a WideForecast, a RichForecast or a solution of nk.solve, which have a loss over time; "
            f"got {type(theory).__name__}."
        )
    kept = theory.times <= times.max(initial=0.0)
    return theory.times[kept], theory.loss[kept]


def _unit(algorithm: AbstractAlgorithm) -> str:
    return algorithm.unit if isinstance(algorithm, TimedAlgorithm) else "time"


def moved_to(algorithm: SpectralAlgorithm, time: ArrayLike) -> TimedAlgorithm:
    """The algorithm stopped at another `time`."""
    if not isinstance(algorithm, TimedAlgorithm):
        raise ValueError(
            f"`time` is not defined for {type(algorithm).__name__}: solve with GradientFlow or GradientDescent."
        )
    return algorithm.at(positive(time, "time", zero=True, finite=False))


def end_of(algorithm: SpectralAlgorithm) -> str:
    """The end in words, such as "step 100"."""
    return f"{_unit(algorithm)} {algorithm.end():g}"


def status_at(algorithm: SpectralAlgorithm, lam_max: float) -> Status:
    """How training with a kernel of this largest eigenvalue ends."""
    if lam_max >= algorithm.limit():
        return Status(StatusKind.diverged, algorithm.advice(lam_max))
    if math.isinf(algorithm.end()):
        return Status(StatusKind.converged, "converged")
    return Status(StatusKind.finished, f"stopped at {end_of(algorithm)}")


def status_of(algorithm: SpectralAlgorithm, factor: AbstractFactor) -> Status:
    """The same, with what the factor says of its matrix."""
    return factor.judged(status_at(algorithm, factor.lam_max))
