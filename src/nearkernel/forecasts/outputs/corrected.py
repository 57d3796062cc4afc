"""Forecasts with a correction to infinite width: terms, distances, widths and expected losses."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from ..._base.check import positive
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from .expected_loss import ExpectedLoss, expected_loss
from .forecast_base import AbstractForecast
from .nearly_gaussian import NearlyGaussianOutputs, as_targets

_FIXED = 1e-9  # of the variance before training: outputs with less are fixed by training


class StandardErrors(NamedTuple):
    """Standard errors of a correction; 0 where it is exact.

    `mean` and `cov`, with shapes as in the forecast; `third` and `fourth`, errors of the cumulants of each output
    separately, in the shape of `mean`; NaN where a cumulant is not known.
    """

    mean: np.ndarray
    cov: np.ndarray
    third: np.ndarray
    fourth: np.ndarray


class CorrectedForecast(NearlyGaussianOutputs, AbstractForecast):
    """A forecast at infinite width and its first correction, of order width^(-`power`)."""

    power: ClassVar[float]

    mean: np.ndarray
    terms: tuple[np.ndarray, ...]
    cov_terms: tuple[np.ndarray, ...]
    error: StandardErrors
    neurons: int
    relative_error: float
    width: int

    @property
    @abc.abstractmethod
    def _prior(self) -> np.ndarray:
        """Variances of new outputs at initialization, (m * out,)."""

    @abc.abstractmethod
    def _pair_cumulants(self, order: int) -> np.ndarray:
        """Third or fourth cumulants of pairs of outputs, kappa_bcc or kappa_bbcc: (m * out, m * out)."""

    def _shown(self) -> Mapping[str, object]:
        shown = super()._shown()
        return {**shown, "correction": known_to(self.relative_error)} if self.neurons else shown

    def _covariance(self) -> np.ndarray:
        return self.cov_terms[0] + self.cov_terms[1]

    @property
    def _sizes(self) -> np.ndarray:
        return self._prior.reshape(self.mean.shape)

    @property
    def distance(self) -> float:
        """The largest relative change from infinite width, of a mean or of a variance."""
        return self._relative([(self.terms[1], self.cov_terms[1])])

    def width_within(self, tolerance: float) -> float:
        """The width above which `distance` is at most `tolerance`, if all layers grow in proportion; or infinity."""
        ratio = self.distance / positive(tolerance, "tolerance")
        width = self.width * ratio ** (1 / self.power)
        return math.ceil(width - 1e-9) if math.isfinite(width) else math.inf

    def _relative(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
        """Sizes of `parts`, (mean, cov) each, over the law at infinite width; outputs that training fixes have none."""
        shape = self.mean.shape
        variance = _variances(self.cov_terms[0], shape)
        free = variance > _FIXED * self._sizes
        if not free.any():
            return 0.0
        means, covs = zip(*parts, strict=True)
        shift = sum(np.abs(mean) for mean in means)
        spread = sum(np.abs(_variances(cov, shape)) for cov in covs)
        return float(
            max((shift[free] / np.sqrt(variance[free])).max(), (spread[free] / variance[free]).max())
        )

    @in_float64
    def expected_loss(self, y_new: ArrayLike) -> ExpectedLoss:
        r"""The loss $\frac12 \sum (f - y)^2$ of these networks: its mean, split into bias and variance, and its
        covariance.

        **Arguments:** `y_new`, $y$, targets at the new inputs, in the shape of `mean`.
        """
        y, size = as_targets(y_new, self.mean.shape), self.mean.size
        cov = self.cov_terms[0].reshape(size, size), self.cov_terms[1].reshape(size, size)
        third, fourth = self._pair_cumulants(3).T, self._pair_cumulants(4)
        return expected_loss((self.terms[0], self.terms[1]), cov, third, fourth, y)


def known_to(accuracy: float) -> str:
    """How well a correction is known, for people."""
    return f"known to {100 * accuracy:.2g} %"


def _variances(cov: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    size = math.prod(shape)
    return np.diagonal(cov.reshape(size, size)).reshape(shape)
