r"""Training outputs and loss over time, over all initializations, at infinite width or for given kernels.

In the eigenvectors $V$ of the kernel of training, with eigenvalues $\lambda$, the share of an error that is left at
time $t$ is $r = 1 - \lambda g_t(\lambda)$. With $K$ the covariance at initialization and $c = V^\top y$,

$$\mathbb{E}[z] = V (1 - r)\, c, \qquad
\mathbb{E}[L] = \tfrac12 \sum_i r_i^2 \left(c_i^2 + (V^\top K V)_{ii}\right).$$
"""

import math

import numpy as np

from ..._run.memory import require_fits
from ...dynamics.algorithms.spectral import GradientDescent, GradientFlow, SpectralAlgorithm, TimedAlgorithm
from ...dynamics.linear.factor import Spectrum
from .trained_gaussian import TrainedLaw

_MOST_STEPS, _MOST_TIMES = 1000, 100  # as many as `nk.simulate` records
_SPAN = np.geomspace(1e-2, 1e4, 33)  # of training without an end, in units of the fastest time


def moments(algorithm: SpectralAlgorithm, lam_max: float) -> np.ndarray:
    """The times (T,) at which `nk.simulate` records a loss; if there is no end, times that show all, then infinity."""
    if not isinstance(algorithm, TimedAlgorithm):
        return np.array([math.inf])
    end, steps = float(algorithm.end()), algorithm.unit == "step"
    if math.isinf(end):
        rate = lam_max * (algorithm.lr if isinstance(algorithm, GradientDescent) else 1.0)
        times = _SPAN / rate if rate > 0 else np.ones(1)
        return np.concatenate([[0.0], np.unique(np.ceil(times)) if steps else times, [math.inf]])
    every = math.ceil(end / _MOST_STEPS) if steps else end / _MOST_TIMES
    return np.append(np.arange(0.0, end * (1 - 1e-12), every), end) if end else np.zeros(1)


class TrainingCurve:
    """Means over initializations on the training set, at all times up to the end of an `algorithm`."""

    def __init__(self, law: TrainedLaw, algorithm: SpectralAlgorithm):
        factor = law.factor(GradientFlow(0.0))
        assert isinstance(factor, Spectrum)
        self._law, self._factor = law, factor
        self.times = moments(algorithm, factor.lam_max)
        stops: list[SpectralAlgorithm] = [algorithm]
        if isinstance(algorithm, TimedAlgorithm):
            stops = [algorithm.at(time) for time in self.times]
        require_fits(8 * len(stops) * law.y.size, "training outputs over time", "use fewer points")
        with np.errstate(over="ignore", invalid="ignore"):
            self._left = np.stack([stop.decay(factor.lam) for stop in stops])
        endless = np.isinf(self.times)[:, None] & (factor.lam >= algorithm.limit())
        self._left[endless | ~np.isfinite(self._left)] = math.inf

    def outputs(self) -> np.ndarray:
        """The mean (T, n, out)."""
        modes = self._factor.vectors.T @ self._law.y
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([self._factor.vectors @ ((1.0 - left)[:, None] * modes) for left in self._left])

    def loss(self) -> np.ndarray:
        """The mean (T,) of half the sum of squared errors, over points and outputs."""
        vectors, y, start = self._factor.vectors, self._law.y, self._law.start
        spread = np.maximum(np.einsum("ik,ik->k", vectors, start @ vectors), 0.0)
        squares = ((vectors.T @ y) ** 2).sum(axis=1) + y.shape[1] * spread
        unseen = 0.0
        if vectors.shape[1] < len(y):  # no feature moves the rest
            unseen = max((y**2).sum() + y.shape[1] * np.trace(start) - squares.sum(), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            return 0.5 * (self._left**2 @ squares + unseen)
