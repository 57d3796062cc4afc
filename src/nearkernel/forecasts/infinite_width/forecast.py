r"""The distribution of trained outputs over all initializations, at infinite width or for given kernels.

With $K$ the covariance at initialization, $T$ the kernel of training and $R_t = T_{BA}\, g_t(T_{AA})$,

$$\text{mean} = R y, \qquad \text{cov} = K_{BB} - R K_{AB} - K_{BA} R^\top + R K_{AA} R^\top$$

at any time $t$.
"""

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from ..._base.check import inputs, positive
from ..._base.types import ArrayLike, Num
from ..._run.blas import one_thread
from ..._run.precision import in_float64
from ...dynamics.algorithms.spectral import SpectralAlgorithm, TimedAlgorithm
from ...dynamics.linear.base import status_of
from ...models.networks.network import AbstractNetwork
from ..outputs.forecast_base import AbstractForecast
from ..outputs.law import Places
from .trained_gaussian import NewPoints, TrainedLaw
from .training_curve import TrainingCurve

if TYPE_CHECKING:
    from .theory import InfiniteWidth


class WideForecast(AbstractForecast):
    """Trained outputs of infinitely wide networks: Gaussian over initializations, with this mean and covariance.

    **Fields:** `mean` (m,) or (m, out), like `y`; `cov` (m, m), the same for each output; `variance` (m,) and `std`
    (m,), which do not need the (m, m) matrix; `terms`, (mean,) at order 0; `status`, an `nk.Status`, and its `ok`;
    `algorithm`; `regime`, the result of `nk.regime`: whether networks of this width are lazy enough for it; None for
    given kernels. On the training set, computed on first use: `times` (T,), at which `nk.simulate` records (for
    training without an end, times that show all of it, then infinity); `train` (T, n) or (T, n, out), the mean outputs
    at these times; `loss` (T,), the mean of the loss over initializations, which includes their variance.
    """

    theory: "InfiniteWidth"
    algorithm: SpectralAlgorithm

    def __init__(
        self, law: TrainedLaw, points: NewPoints, algorithm: SpectralAlgorithm, theory: "InfiniteWidth"
    ):
        self.algorithm, self.theory, self._law, self._points = algorithm, theory, law, points
        self.status = status_of(algorithm, law.factor(algorithm))
        with one_thread(len(law.x)):
            self._response = points.response(algorithm) if self._finite else None
            mean = points.mean(self._response)
        self.mean = mean[:, 0] if law.vector else mean

    @property
    def _finite(self) -> bool:
        return self.ok or not math.isinf(self.algorithm.end())

    def _trained(self) -> tuple[AbstractNetwork | None, np.ndarray]:
        return self._law.pair.network(), self._law.y

    def _places(self) -> Places:
        return Places(self._points.x_new, self._law.x, self._law.y)

    @in_float64
    def _covariance(self) -> np.ndarray:
        with one_thread(len(self._law.x)):
            return self._points.covariance(self.algorithm, self._response)

    @in_float64
    def _variance(self) -> np.ndarray:
        with one_thread(len(self._law.x)):
            return self._points.variance(self.algorithm, self._response)

    @functools.cached_property
    @in_float64
    def _curve(self) -> TrainingCurve:
        with one_thread(len(self._law.x)):
            return TrainingCurve(self._law, self.algorithm)

    @property
    def times(self) -> np.ndarray:
        return self._curve.times

    @functools.cached_property
    def train(self) -> np.ndarray:
        outputs = self._curve.outputs()
        return outputs[..., 0] if self._law.vector else outputs

    @functools.cached_property
    @in_float64
    def loss(self) -> np.ndarray:
        return self._curve.loss()

    @property
    def terms(self) -> tuple[np.ndarray, ...]:
        return (self.mean,)

    @in_float64
    def at(self, time: float) -> "WideForecast":
        """The same networks at another `time` (steps for gradient descent); factors are reused."""
        if not isinstance(self.algorithm, TimedAlgorithm):
            raise ValueError(f"`time` is not defined for {type(self.algorithm).__name__}.")
        later = self.algorithm.at(positive(time, "time", zero=True, finite=False))
        return WideForecast(self._law, self._points, later, self.theory)

    @in_float64
    def predict(self, x_new: Num[ArrayLike, " m *d"]) -> "WideForecast":
        """The same networks at other inputs `x_new`; factors are reused."""
        x_new = inputs(x_new, "x_new", self._law.x.shape[1:])
        return WideForecast(self._law, NewPoints(self._law, x_new), self.algorithm, self.theory)
