r"""The distribution of trained outputs over all initializations, at infinite width or for given kernels.

With $K$ the covariance at initialization, $T$ the kernel of training and $R_t = T_{BA}\, g_t(T_{AA})$,

$$\text{mean} = R y, \qquad \text{cov} = K_{BB} - R K_{AB} - K_{BA} R^\top + R K_{AA} R^\top$$

at any time $t$.
"""

import functools
import math
import numbers
from typing import Any, Literal, overload

import numpy as np

from .._base.check import inputs, instance, one_of, positive, refuse_unused, shown, targets, whole
from .._base.types import ArrayLike, Num
from .._run.blas import one_thread
from .._run.precision import in_float64
from ..dynamics.algorithms.losses import Squared, get_loss
from ..dynamics.algorithms.sgd import SGD
from ..dynamics.algorithms.spectral import AbstractAlgorithm, GradientFlow, SpectralAlgorithm, TimedAlgorithm
from ..dynamics.linear.base import status_of
from ..kernels.base import AbstractKernel
from ..models.expansion.features import FeatureModel
from ..models.networks.mlp import MLP
from ..models.networks.network import AbstractNetwork
from ..models.networks.scaled import Scaled
from .infinite_width.any_loss import SampledForecast, sampled_forecast
from .infinite_width.stochastic import StochasticForecast
from .infinite_width.trained_gaussian import NewPoints, TrainedLaw
from .infinite_width.training_curve import TrainingCurve
from .mean_field.forecast import RichForecast, rich_forecast
from .mean_field.theory import Clouds
from .order_half.forecast import KinkForecast, kink_forecast
from .order_one.forecast import FiniteForecast, finite_forecast
from .order_one.theory import SampledNeurons
from .outputs.kernel_pair import pair_of
from .outputs.law import GaussianOutputs, Places
from .outputs.with_regime import OfNetworks


class WideForecast(OfNetworks, GaussianOutputs):
    """Trained outputs of infinitely wide networks: Gaussian over initializations, with this mean and covariance.

    **Fields:** `mean` (m,) or (m, out), like `y`; `cov` (m, m), the same for each output; `variance` (m,) and `std`
    (m,), which do not need the (m, m) matrix; `terms`, (mean,) at order 0; `status`, an `nk.Status`, and its `ok`;
    `algorithm`; `regime`, the result of `nk.regime`: whether networks of this width are lazy enough for it; None for
    given kernels. On the training set, computed on first use: `times` (T,), at which `nk.simulate` records (for
    training without an end, times that show all of it, then infinity); `train` (T, n) or (T, n, out), the mean outputs
    at these times; `loss` (T,), the mean of the loss over initializations, which includes their variance.
    """

    def __init__(self, law: TrainedLaw, points: NewPoints, algorithm: SpectralAlgorithm):
        self.algorithm, self._law, self._points = algorithm, law, points
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
        found = self._curve.outputs()
        return found[..., 0] if self._law.vector else found

    @functools.cached_property
    @in_float64
    def loss(self) -> np.ndarray:
        return self._curve.loss()

    @property
    def terms(self) -> tuple[np.ndarray, ...]:
        return (self.mean,)

    @property
    def ok(self) -> bool:
        return self.status.ok

    @in_float64
    def at(self, time: float) -> "WideForecast":
        """The same networks at another `time` (steps for gradient descent); factors are reused."""
        if not isinstance(self.algorithm, TimedAlgorithm):
            raise ValueError(f"`time` is not defined for {type(self.algorithm).__name__}.")
        later = self.algorithm.at(positive(time, "time", zero=True, finite=False))
        return WideForecast(self._law, self._points, later)

    @in_float64
    def predict(self, x_new: Num[ArrayLike, " m *d"]) -> "WideForecast":
        """The same networks at other inputs `x_new`; factors are reused."""
        x_new = inputs(x_new, "x_new", self._law.x.shape[1:])
        return WideForecast(self._law, NewPoints(self._law, x_new), self.algorithm)


AnyForecast = (
    WideForecast | StochasticForecast | SampledForecast | FiniteForecast | KinkForecast | RichForecast
)


@overload
def forecast(
    problem: MLP,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: SpectralAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    *,
    order: Literal[1],
    neurons: SampledNeurons | None = None,
) -> FiniteForecast: ...


@overload
def forecast(
    problem: tuple[AbstractKernel, AbstractKernel] | FeatureModel,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: SpectralAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    *,
    loss: Literal["squared"] | Squared = "squared",
) -> WideForecast: ...


@overload
def forecast(
    problem: tuple[AbstractKernel, AbstractKernel] | FeatureModel,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: SGD,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    *,
    loss: Literal["squared"] | Squared = "squared",
) -> WideForecast | StochasticForecast: ...


@overload
def forecast(
    problem: Any,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    order: float = 0,
    *,
    trained: str = "all",
    loss: Any = "squared",
    key: Any = None,
    samples: int | None = None,
    clouds: Clouds | None = None,
    neurons: SampledNeurons | None = None,
) -> AnyForecast: ...


@in_float64
def forecast(
    problem: Any,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    order: float = 0,
    *,
    trained: str = "all",
    loss: Any = "squared",
    key: Any = None,
    samples: int | None = None,
    clouds: Clouds | None = None,
    neurons: SampledNeurons | None = None,
) -> AnyForecast:
    r"""The mean and covariance, over initializations, of outputs at `x_new` after training on (`x`, `y`).

    **Arguments:**

    - `problem`: a network (at infinite width only its activation, depth and variances are used); or a pair of
      kernels, the covariance of outputs at initialization and the tangent kernel; or an `nk.FeatureModel` with
      Gaussian weights, `weight_var` > 0.
    - `x` (n, d); `y` (n,) or (n, out); `x_new` (m, d).
    - `algorithm`: `nk.GradientFlow()` by default. With an `nk.SGD` that draws batches or noise, the mean and
      covariance are also over these. Decay to zero is available only for features with Gaussian weights: kernels do not
      determine its effect on networks.
    - `order`: for networks, the highest power of 1/width: 0; 1 for activations with a continuous slope, gradient flow
      and gradient descent; 0.5 for the ReLU family, whose first correction is of order $\text{width}^{-1/2}$.
    - `neurons`: an `nk.forecasts.SampledNeurons`, for order 0.5, and for order 1 with more than a dozen points: the
      number of sampled neurons; by default, sampling stops when the correction is known to 10 % of itself.
    - `trained`: for networks, "all" layers, or only the "last" layer, which converges to the NNGP posterior.
    - `loss`: "squared", in closed form; "cross_entropy" (`y` may then be integer labels (n,)), another loss or a JAX
      function loss(z, y), same as `nk.solve`: then `samples` initializations, by default 1000, are drawn with `key`
      and each is trained in function space, up to a finite time.

    A network with parametrization "mean_field", or an `nk.Scaled` of one, learns features at any width. `algorithm`
    is then a `GradientDescent`, an `SGD` with the `key` of its batches, or a `GradientFlow`, up to a finite time, and
    training uses the network's `lr_factors()`; `loss` is the same as in `nk.simulate`; `clouds`, an
    `nk.forecasts.Clouds`, sets the accuracy of the limit.

    An argument without effect, such as `neurons` at order 0, raises `ValueError`.

    **Returns:** a `WideForecast`; for random SGD a `StochasticForecast`, for other losses a `SampledForecast`, at
    order 1 a `FiniteForecast`, at order 0.5 a `KinkForecast`, for mean-field networks a `RichForecast`, all of which
    have additional fields. `forecast.at(time)` gives another time, `forecast.sample(size, key)` draws trained outputs.
    Warns if the next order may not be small, or if the maximum number of sampled neurons is too small.
    """
    algorithm = GradientFlow() if algorithm is None else algorithm
    inner: Any = problem.model if isinstance(problem, Scaled) else problem
    rich = isinstance(inner, AbstractNetwork) and inner.mean_field
    if isinstance(problem, Scaled) and not rich:
        raise ValueError(
            "`problem` scales a network that is not in mean-field scaling: forecast that network itself, or scale one "
            'with parametrization="mean_field".'
        )
    one_of(trained, "trained", ("all", "last"))
    pair = None if rich else pair_of(problem, trained == "last")
    if isinstance(order, bool) or not isinstance(order, numbers.Real) or order not in (0, 0.5, 1):
        raise ValueError(
            "`order` must be 0 (infinite width), 1 (to order 1/width), or 0.5 (to order width^(-1/2)); "
            f"got {shown(order)}."
        )
    if x_new is None:
        raise ValueError("`x_new` is missing: pass the points at which to forecast.")
    if (order or trained == "last") and not isinstance(inner, AbstractNetwork):
        raise ValueError(
            '`order=1` and `trained="last"` need a network: kernels and features have no layers.'
        )
    shape = inner.in_shape if pair is None else pair.input_dim()
    x = inputs(x, "x", shape).copy()
    x_new = inputs(x_new, "x_new", x.shape[1:])
    if pair is None:
        if order or trained == "last":
            raise ValueError(
                '`problem` with parametrization="mean_field" supports only `order=0` and `trained="all"`.'
            )
        refuse_unused('with parametrization="mean_field"', samples=samples, neurons=neurons)
        if not (isinstance(algorithm, SGD) and algorithm.random):
            refuse_unused("if `algorithm` draws nothing", key=key)
        clouds = Clouds() if clouds is None else instance(clouds, "clouds", Clouds)
        return rich_forecast(problem, x, y, algorithm, x_new, loss, key, clouds)
    refuse_unused('but with parametrization="mean_field"', clouds=clouds)
    function = get_loss(loss)
    if function.quadratic:
        refuse_unused("with the loss 'squared', which needs no draws", samples=samples, key=key)
    if not order:
        refuse_unused("at order 0", neurons=neurons)
    if isinstance(algorithm, SGD):
        decays = algorithm.weight_decay and algorithm.decay_to == "zero"
        if not algorithm.random and not decays:
            algorithm = algorithm.spectral()
        else:
            if order or not function.quadratic:
                raise ValueError(
                    "`algorithm` with random batches, noise or decay to zero needs order 0 and the loss "
                    "'squared': train with nk.simulate."
                )
            columns = targets(y, len(x), out=pair.out_dim())
            return StochasticForecast(pair, x, columns, np.ndim(y) == 1, algorithm, x_new)
    if not isinstance(algorithm, SpectralAlgorithm):
        raise TypeError(
            f"`algorithm` must be one that can be solved, e.g. nk.GradientFlow(); got {type(algorithm).__name__}."
        )
    if not function.quadratic:
        if order:
            raise ValueError(f"`order` must be 0 for losses other than 'squared'; got {order}.")
        data = (x, function.columns(y, len(x), pair.out_dim()), function.is_vector(y))
        size = 1000 if samples is None else whole(samples, "samples", 2)
        return sampled_forecast(pair, *data, function, algorithm, x_new, size, key)
    if order:
        if trained == "last":
            raise ValueError(
                f'`order={order}` needs trained="all": if only the last layer is trained, use order=0.'
            )
        if order != 1 and not isinstance(problem, MLP):
            raise TypeError(
                f"`order={order}` supports nk.MLP (Dense and Activation in turn); for other networks use `order=0`."
            )
        columns, vector = targets(y, len(x), out=inner.layers.shape(inner.in_shape)[-1]), np.ndim(y) == 1
        options = SampledNeurons() if neurons is None else instance(neurons, "neurons", SampledNeurons)
        correct: Any = finite_forecast if order == 1 else kink_forecast
        return correct(inner, x, columns, vector, algorithm, x_new, options)
    columns = targets(y, len(x), out=pair.out_dim())
    law = TrainedLaw(pair, x, columns, algorithm, np.ndim(y) == 1, together=True)
    return WideForecast(law, NewPoints(law, x_new), algorithm)
