r"""The verb `forecast`: the law of trained outputs over all initializations; here at infinite width.

With K the covariance at the start, T the kernel of training and R_t = T_BA g_t(T_AA),

    mean = R y,    cov = K_BB - R K_AB - K_BA R^T + R K_AA R^T     at any time t.
"""

import functools
import math
import numbers
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from .._blas import one_thread
from .._check import inputs, one_of, positive, shown, targets
from .._precision import in_float64
from ..dynamics import AbstractAlgorithm, GradientDescent, GradientFlow, SpectralAlgorithm
from ..dynamics._abstract_solution import status_of
from ..dynamics._factor import Cholesky, Spectrum, cholesky, spectrum
from ..kernels import NNGP
from ..kernels._network import both_kernels
from ..models import MLP, AbstractNetwork, Scaled
from ..models._network import require_wide
from ._clouds import Clouds
from ._finite_forecast import FiniteForecast, finite_forecast
from ._gaussian import GaussianOutputs
from ._kink_forecast import KinkForecast, kink_forecast
from ._neurons import SampledNeurons
from ._rich import RichForecast, rich_forecast


class Forecast(GaussianOutputs):
    """Trained outputs of infinitely wide networks: Gaussian, with this mean and covariance over initializations.

    **Fields:** `mean` (m,) or (m, out), as `y`; `cov` (m, m), the same for each output; `std` (m,); `terms`, (mean,) at
    order 0; `status`, an `nk.Status`, and its `ok`; `algorithm`.
    """

    def __init__(self, training: "_Training", points: "_Points", algorithm: SpectralAlgorithm):
        self.algorithm, self._training, self._points = algorithm, training, points
        self.status = status_of(algorithm, training.factor(algorithm))
        with one_thread(len(training.x)):
            self._response = points.response(training, algorithm) if self._finite else None
            mean = points.mean(training, self._response)
        self.mean = mean[:, 0] if training.vector else mean

    @property
    def _finite(self) -> bool:
        return self.ok or not math.isinf(getattr(self.algorithm, "steps", 0))

    @in_float64
    def _covariance(self) -> np.ndarray:
        with one_thread(len(self._training.x)):
            return self._points.covariance(self._training, self._response)

    @property
    def terms(self) -> tuple[np.ndarray, ...]:
        return (self.mean,)

    @property
    def ok(self) -> bool:
        return self.status.ok

    @in_float64
    def at(self, time: float) -> "Forecast":
        """The same networks at another time (steps for gradient descent); factors are kept."""
        if not isinstance(self.algorithm, GradientDescent | GradientFlow):
            raise ValueError(f"`time` has no meaning for {type(self.algorithm).__name__}.")
        later = self.algorithm.at(positive(time, "time", zero=True, finite=False))
        return Forecast(self._training, self._points, later)

    @in_float64
    def predict(self, x_new: Any) -> "Forecast":
        """The same networks at other inputs; factors are kept."""
        x_new = inputs(x_new, "x_new", self._training.net.in_shape)
        return Forecast(self._training, _Points(self._training, x_new), self.algorithm)


class _Training:
    """Kernels and factors of the training set: made once, shared by all times and new inputs."""

    def __init__(self, net: AbstractNetwork, x: np.ndarray, y: np.ndarray, vector: bool, last_only: bool):
        self.net, self.x, self.y, self.vector, self.last_only = net, x, y, vector, last_only
        self.start, self.train = self.kernels(x)
        self._cholesky: dict[float, Cholesky | None] = {}
        self._spectrum: Spectrum | None = None

    def kernels(self, x1: np.ndarray, x2: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(covariance at the start, kernel of training)."""
        if not self.last_only:
            return both_kernels(self.net, x1, x2)
        start = NNGP(self.net).entries(x1, x2)
        return start, start

    def factor(self, algorithm: SpectralAlgorithm) -> Cholesky | Spectrum:
        """Cholesky while it serves, eigenvalues from the first time that needs them."""
        shift = algorithm.shift()
        if shift is not None and self._spectrum is None:
            if shift not in self._cholesky:
                self._cholesky[shift] = cholesky(
                    self.train.copy(), shift, need_max=math.isfinite(algorithm.limit())
                )
            factor = self._cholesky[shift]
            if factor is not None:
                return factor
        if self._spectrum is None:
            self._spectrum = spectrum(self.train.copy())
        return self._spectrum

    @functools.cached_property
    def root(self) -> "_Root":
        """Of the covariance at the start, in the eigenvectors of the training kernel."""
        factor = self.factor(GradientFlow(0.0))
        assert isinstance(factor, Spectrum)
        return _Root(factor.vectors.T @ (self.start @ factor.vectors))


class _Root:
    """L with L L^T = S for a positive semidefinite S: triangular if it can be."""

    def __init__(self, matrix: np.ndarray):
        self.lower, info = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1)
        self.spectrum = spectrum(matrix) if info else None

    def times(self, left: np.ndarray) -> np.ndarray:
        """left L."""
        if self.spectrum is None:
            return scipy.linalg.blas.dtrmm(1.0, self.lower, left, side=1, lower=1)
        return left @ (self.spectrum.vectors * np.sqrt(self.spectrum.lam))

    def whiten(self, left: np.ndarray) -> np.ndarray:
        """left L^-T."""
        if self.spectrum is None:
            return scipy.linalg.solve_triangular(self.lower, left.T, lower=True, check_finite=False).T
        return left @ (self.spectrum.vectors / np.sqrt(self.spectrum.lam))


class _Response(NamedTuple):
    """R, (m, n), or R V in the eigenvectors V of the training kernel, where a time is a row of numbers."""

    matrix: np.ndarray
    basis: Spectrum | None


class _Points:
    """Kernels between new inputs and the training set."""

    def __init__(self, training: _Training, x_new: np.ndarray):
        self.start, self.train = training.kernels(x_new, training.x)
        self._training, self._x_new = training, x_new
        self._train_rotated: np.ndarray | None = None
        self._completed: tuple[np.ndarray, np.ndarray] | None = None

    @functools.cached_property
    def prior(self) -> np.ndarray:
        """Covariance at the start, K_BB."""
        return self._training.kernels(self._x_new)[0]  # both kernels: compiled already

    def response(self, training: _Training, algorithm: SpectralAlgorithm) -> "_Response":
        """R = T_BA g(T_AA)."""
        factor = training.factor(algorithm)
        if isinstance(factor, Cholesky):
            return _Response(factor.apply(algorithm, self.train.T).T, None)
        with np.errstate(over="ignore", invalid="ignore"):
            return _Response(self._rotated(factor) * algorithm.filter(factor.lam), factor)

    def mean(self, training: _Training, response: "_Response | None") -> np.ndarray:
        if response is None:
            return np.full((len(self.train), training.y.shape[1]), np.inf)
        y = training.y if response.basis is None else response.basis.vectors.T @ training.y
        return response.matrix @ y

    def covariance(self, training: _Training, response: "_Response | None") -> np.ndarray:
        if response is None:
            return np.full_like(self.prior, np.inf)
        if response.basis is None:
            moving = response.matrix @ (training.start @ response.matrix.T - 2.0 * self.start.T)
            return self.prior + 0.5 * (moving + moving.T)
        # Completing the square: what no training changes, plus a square that is zero for the best response.
        from_start, fixed = self._square(training, response.basis)
        excess = training.root.times(response.matrix) - from_start
        return fixed + excess @ excess.T

    def _rotated(self, factor: Spectrum) -> np.ndarray:
        """T_BA V, once for all times."""
        if self._train_rotated is None:
            self._train_rotated = self.train @ factor.vectors
        return self._train_rotated

    def _square(self, training: _Training, factor: Spectrum) -> tuple[np.ndarray, np.ndarray]:
        """L^-1 K_AB and K_BB - K_BA K_AA^-1 K_AB, once for all times."""
        if self._completed is None:
            from_start = training.root.whiten(self.start @ factor.vectors)
            self._completed = from_start, self.prior - from_start @ from_start.T
        return self._completed


@in_float64
def forecast(
    net: AbstractNetwork | Scaled,
    x: Any,
    y: Any,
    algorithm: AbstractAlgorithm | None = None,
    x_new: Any = None,
    order: float = 0,
    *,
    trained: str = "all",
    loss: Any = "squared",
    key: Any = None,
    clouds: Clouds | None = None,
    neurons: SampledNeurons | None = None,
) -> "Forecast | FiniteForecast | KinkForecast | RichForecast":
    """Mean and covariance, over initializations of `net`, of its outputs at `x_new` after training on (`x`, `y`).

    **Arguments:** `net`, of which only activation, depth and variances matter at infinite width; `x` (n, d); `y` (n,)
    or (n, out); `algorithm`, `nk.GradientFlow()` by default; `x_new` (m, d); `order`, the power of 1/width kept: 0; 1
    for smooth activations, gradient flow and gradient descent; 0.5 for the relu family, whose first correction is of
    order width^(-1/2); `neurons`, an `nk.statistics.SampledNeurons`, for order 0.5, and 1 of more than a dozen points:
    how many are sampled, by default until errors are below 1 % of the deviation; `trained`: "all" layers, or the "last"
    alone, whose end is the NNGP posterior.

    A network with parametrization "mean_field", or an `nk.Scaled` of one, learns features at any width. `algorithm` is
    then a `GradientDescent`, an `SGD` with the `key` of its batches, or a `GradientFlow`, with an end, and trains with
    the network's `lr_factors()` as in `nk.simulate`; `loss` as there; `clouds`: how finely the limit is computed.

    **Returns:** a `Forecast`, at order 1 a `FiniteForecast`, at order 0.5 a `KinkForecast`, for mean-field networks a
    `RichForecast`, all of which have more fields; `forecast.at(time)` moves in time, `forecast.sample(size, key)` draws
    trained outputs. Warns where the correction of order 1 is not small.
    """
    algorithm = GradientFlow() if algorithm is None else algorithm
    inner: Any = net.model if isinstance(net, Scaled) else net
    rich = isinstance(inner, AbstractNetwork) and inner.mean_field
    if isinstance(net, Scaled) and not rich:
        raise ValueError(
            "`net` scales a network that is not in mean-field scaling: forecast that network itself, or scale one "
            'with parametrization="mean_field".'
        )
    if not rich:
        require_wide(net, "nk.forecast")
    if isinstance(order, bool) or not isinstance(order, numbers.Real) or order not in (0, 0.5, 1):
        raise ValueError(
            "`order` must be 0 (infinite width), 1 (to order 1/width), or 0.5 (to order width^(-1/2)); "
            f"got {shown(order)}."
        )
    if x_new is None:
        raise ValueError("`x_new` is missing: the points at which to forecast.")
    one_of(trained, "trained", ("all", "last"))
    x = inputs(x, "x", inner.in_shape).copy()
    x_new = inputs(x_new, "x_new", inner.in_shape)
    if rich:
        if order or trained == "last":
            raise ValueError('`net` with parametrization="mean_field" is for `order=0` and `trained="all"`.')
        return rich_forecast(net, x, y, algorithm, x_new, loss, key, Clouds() if clouds is None else clouds)
    if loss != "squared" or clouds is not None:
        raise ValueError('`loss` and `clouds` are for networks with parametrization="mean_field".')
    if not isinstance(algorithm, SpectralAlgorithm):
        raise TypeError(
            f"`algorithm` must be one that can be solved, e.g. nk.GradientFlow(); got {type(algorithm).__name__}."
        )
    if order:
        if trained == "last":
            raise ValueError(
                f'`order={order}` is for trained="all": of the last layer alone order 0 is known.'
            )
        if order != 1 and not isinstance(net, MLP):
            raise TypeError(
                f"`order={order}` supports nk.MLP (Dense and Activation in turn); for other networks use `order=0`."
            )
        out = inner.layers.shape(inner.in_shape)[-1]
        y, vector = targets(y, len(x), out=out), np.ndim(y) == 1
        options = SampledNeurons() if neurons is None else neurons
        correct: Any = finite_forecast if order == 1 else kink_forecast
        return correct(inner, x, y, vector, algorithm, x_new, options)
    training = _Training(inner, x, targets(y, len(x)), np.ndim(y) == 1, trained == "last")
    return Forecast(training, _Points(training, x_new), algorithm)
