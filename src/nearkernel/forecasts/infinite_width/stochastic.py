"""Forecasts of training by random steps: mean and covariance over initializations, batches and noise."""

import functools
from typing import TYPE_CHECKING

import jax
import numpy as np

from ..._base.check import inputs
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...dynamics.algorithms.sgd import SGD
from ...dynamics.linear.sgd_moments import Task, trained_moments, weights_of
from ...dynamics.linear.sgd_solution import squared_covariance, status_of_steps
from ...models.networks.network import AbstractNetwork
from ..outputs.forecast_base import AbstractForecast
from ..outputs.kernel_pair import FeaturePair, KernelPair, NetworkPair
from ..outputs.law import Places

if TYPE_CHECKING:
    from .theory import InfiniteWidth


class StochasticForecast(AbstractForecast):
    r"""Outputs after SGD with the squared loss: exact mean and covariance over initializations, batches and noise.

    Outputs of one network share its batches, so they are correlated. The distribution is not Gaussian; `sample` draws
    from the Gaussian with these moments.

    **Fields:** `mean` (m,) or (m, out), like `y`; `cov`, (m, m) or (m, out, m, out); `variance` and `std`, in the shape
    of the mean; `loss`, the mean of $\frac12 \sum (z - y)^2$ on the training set; `status`, an `nk.Status`, and its
    `ok`; `algorithm`; `regime`, the result of `nk.regime`, or None.
    """

    theory: "InfiniteWidth"
    algorithm: SGD

    def __init__(
        self,
        pair: KernelPair,
        x: np.ndarray,
        y: np.ndarray,
        vector: bool,
        algorithm: SGD,
        x_new: np.ndarray,
        theory: "InfiniteWidth",
    ):
        drifting = bool(algorithm.weight_decay) and algorithm.decay_to == "zero"
        _require_forecast(pair, algorithm, drifting)
        self._pair, self._x, self._y, self._vector, self._x_new = pair, x, y, vector, x_new
        self.algorithm, self.theory = algorithm, theory
        start, train = pair.both(x, None)
        task = Task(
            matrix=train,
            error=-y,
            drift=np.zeros_like(y),
            weights=weights_of(algorithm, len(x), 1),
            start=start,
            drifting=drifting,
        )
        self._moments = trained_moments(task, algorithm)
        self._crossing = pair.both(x_new, x)
        zero = np.zeros((len(x_new), y.shape[1]))
        mean = self._moments.mean(zero, zero, self._crossing[1])
        self.mean = mean[:, 0] if vector else mean
        before = 0.5 * float((y**2).sum() + y.shape[1] * np.trace(start))
        self.loss = self._moments.loss()
        self.status = status_of_steps(algorithm, before, self.loss, y)

    def _trained(self) -> tuple[AbstractNetwork | None, np.ndarray]:
        return self._pair.network(), self._y

    def _places(self) -> Places:
        return Places(self._x_new, self._x, self._y)

    @in_float64
    def _covariance(self) -> np.ndarray:
        start, own = self._pair.both(self._x_new, None)
        pairs = self._moments.covariance(self._crossing[1], own, (self._crossing[0], start))
        return squared_covariance(pairs, len(self._x_new), self._y.shape[1], self._vector)

    @in_float64
    def _variance(self) -> np.ndarray:
        start, own = (kernel.diag(self._x_new) for kernel in (self._pair.start, self._pair.train))
        variance = self._moments.variance(self._crossing[1], own, (self._crossing[0], start))
        return variance[:, 0] if self._vector else variance

    @functools.cached_property
    def terms(self) -> tuple[np.ndarray, ...]:
        return (self.mean,)

    @in_float64
    def at(self, time: float) -> "StochasticForecast":
        """The same networks after `time` steps."""
        later = self.algorithm.at(time)
        return StochasticForecast(self._pair, self._x, self._y, self._vector, later, self._x_new, self.theory)

    @in_float64
    def predict(self, x_new: ArrayLike) -> "StochasticForecast":
        """The same networks at other inputs `x_new`."""
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        return StochasticForecast(
            self._pair, self._x, self._y, self._vector, self.algorithm, x_new, self.theory
        )


def _require_forecast(pair: KernelPair, algorithm: SGD, drifting: bool) -> None:
    if drifting and not isinstance(pair, FeaturePair):
        raise ValueError(
            '`algorithm` with decay_to="zero" can be forecast only for an nk.FeatureModel with Gaussian weights; for '
            'other models use decay_to="start", or nk.simulate.'
        )
    if algorithm.noise and isinstance(pair, NetworkPair):
        if any(np.any(np.asarray(factor) != 1) for factor in jax.tree.leaves(pair.net.lr_factors())):
            raise ValueError(
                "`noise` needs a network in NTK scaling, whose `lr_factors()` are all 1: otherwise use nk.simulate."
            )
