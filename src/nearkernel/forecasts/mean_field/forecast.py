"""Forecasts of the limit of wide networks that learn features, without training them."""

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import scipy.interpolate

from ..._base.check import inputs, positive, whole
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...dynamics.algorithms.spectral import GradientFlow
from ...models.networks.mlp import MLP
from ...models.networks.scaled import Scaled
from ..outputs.forecast_base import AbstractForecast
from .cloud_network import CloudNetwork
from .cloud_system import Grams, grams
from .limit import NARROW, Limit, drawn_outputs, limit_of
from .memory import require_kernels
from .problem import Problem
from .records import Kernels, Neurons, Spread
from .spread_constant import has_response, response_constants
from .status import rich_status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .theory import MeanField


class RichForecast(AbstractForecast):
    """Trained outputs of infinitely wide networks that learn features; they are the same for all initializations.

    **Fields:** `mean` (m,) or (m, out), like `y`; `error`, its standard error, from sampling and from the tolerance (0
    for deep linear networks); `cov`, zeros (m, m); `times` (T,), the steps of training, or the times of a flow;
    `train` (T, n) or (T, n, out), outputs on the training set at these times, and `train_error`; `loss` (T,);
    `richness`; `rank`, for each matrix between two hidden layers the number of resolved directions, forward and
    backward; `status`, an `nk.Status`, and its `ok`; `algorithm`; `regime`, the result of `nk.regime`: the limit is
    valid in all three regimes.
    """

    theory: "MeanField"
    error: np.ndarray

    def __init__(self, problem: Problem, limit: Limit, time: float, vector: bool):
        self._problem, self._limit, self._time, self._vector = problem, limit, time, vector
        self.algorithm, self.theory = problem.algorithm, problem.clouds
        self.richness, self.rank = 1.0 / problem.alpha, limit.rank
        upto = limit.times <= time
        self.times = limit.times[upto]
        self.train, self.train_error = (self._shaped(part[upto]) for part in (limit.train, limit.train_error))
        self.mean, self.error = (self._shaped(self._now(part)) for part in (limit.new, limit.new_error))
        self.status = rich_status(problem, limit, time, self.mean, self.error)

    def _trained(self) -> tuple[MLP | Scaled, np.ndarray]:
        problem = self._problem
        return Scaled(problem.net, problem.alpha, problem.centered), problem.y

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[..., 0] if self._vector else values

    def _now(self, values: np.ndarray) -> np.ndarray:
        """Values at kept moments, at the time of this forecast; between the moments of a flow by splines."""
        times = self._limit.times[self._limit.kept]
        if self._time in times:
            return values[int(np.searchsorted(times, self._time))]
        known = np.isfinite(values).all(axis=(1, 2))
        if known.sum() < 4 or self._time > times[known][-1]:
            return np.full_like(values[0], np.nan)
        return scipy.interpolate.CubicSpline(times[known], values[known])(self._time)

    def _covariance(self) -> np.ndarray:
        return np.zeros((len(self.mean), len(self.mean)))

    @functools.cached_property
    def loss(self) -> np.ndarray:
        upto = self._limit.train[: len(self.times)]
        with jax.enable_x64(True):
            return np.array([self._problem.signal.loss(outputs) for outputs in upto])

    def _shown(self) -> Mapping[str, object]:
        return {
            **super()._shown(),
            "error": self.error,
            "richness": self.richness,
            "loss": float(self.loss[-1]),
        }

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the mean and 2 standard errors on Matplotlib's `axes`: against a single input, or point by point.

        Networks of finite width scatter around it: see `spread(width).plot()`.
        """
        from ..._plots.bands import draw_band

        return draw_band(
            self.mean, self.error, axes, x=self._problem.x_new, data=(self._problem.x, self._problem.y)
        )

    @in_float64
    def at(self, time: float) -> "RichForecast":
        """The same networks at `time`, an earlier step (or time of a flow); nothing is recomputed."""
        time = self._earlier(time)
        if not isinstance(self.algorithm, GradientFlow) and time not in self._limit.times[self._limit.kept]:
            raise ValueError(
                f"`time` = {time:g} was not stored, only every {self.theory.every} steps: use "
                "`theory=nk.MeanField(every=1)`."
            )
        return RichForecast(self._problem, self._limit, time, self._vector)

    @in_float64
    def predict(self, x_new: ArrayLike) -> "RichForecast":
        """The same networks at other inputs `x_new`; reruns the clouds, which need all inputs before training."""
        x_new = inputs(x_new, "x_new", self._problem.net.in_dim)
        problem = self._problem.until(self._time, x_new)
        return RichForecast(problem, limit_of(problem), problem.end, self._vector)

    def _earlier(self, time: Any) -> float:
        time = float(positive(time, "time", zero=True))
        if time > self._limit.times[-1] or (not isinstance(self.algorithm, GradientFlow) and time % 1):
            raise ValueError(
                f"`time` must be a step up to {self._limit.times[-1]:g}; got {time:g}: forecast to a later step."
                if not isinstance(self.algorithm, GradientFlow)
                else f"`time` must be at most {self._limit.times[-1]:g}; got {time:g}: forecast to a later time."
            )
        return time

    @in_float64
    def kernels(self, time: float | None = None) -> Kernels:
        """Kernels at `time`, a step (or time of a flow), by default the forecast's own; reruns the clouds."""
        problem = self._until(time)
        require_kernels(problem)
        pairs = problem.each(lambda network: _before_and_after(problem, network))
        starts, ends = ([pair[place] for pair in pairs] for place in (0, 1))
        first, ntk = (np.mean([each.ntk for each in found], axis=0) for found in (starts, ends))
        error = np.std([each.ntk for each in ends], axis=0) / math.sqrt(max(len(ends) - 1, 1))
        squeezed = lambda array: array[:, 0, :, 0] if problem.y.shape[1] == 1 else array
        return Kernels(
            squeezed(ntk),
            tuple(np.mean([each.features for each in ends], axis=0)),
            tuple(map(squeezed, np.mean([each.gradients for each in ends], axis=0))),
            float(np.linalg.norm(ntk - first) / np.linalg.norm(first)),
            squeezed(error),
        )

    @in_float64
    def neurons(self, layer: int, time: float | None = None) -> Neurons:
        """The neurons of hidden layer `layer` (from 1) at `time`, a step (or time of a flow); reruns a cloud."""
        problem = self._until(time)
        depth = problem.layout.depth
        if whole(layer, "layer", 1) > depth:
            raise ValueError(f"`layer` must be a hidden layer, 1 to {depth}; got {layer}.")
        if problem.linear:
            raise ValueError(
                "`neurons` are not available for a deep linear network, which is solved exactly: they are Gaussian."
            )
        network = problem.sampled(0, problem.tol)
        start = network.forward(problem.xi).before[layer - 1]
        problem.train(network)
        end = network.forward(problem.xi, learn=False).before[layer - 1]
        readout = np.array(network.readout.T, np.float64) if layer == depth else None
        weights = network.clouds[layer - 1].weights
        after, before, shares = (np.array(each.T, np.float64) for each in (end, start, weights))
        return Neurons(after, before, shares, readout)

    @in_float64
    def spread(self, width: int, draws: int | None = None) -> Spread:
        r"""The distribution of trained networks of this `width` (of their last hidden layer) around the limit.

        The covariance is $c/\text{width}$. For one hidden layer with a smooth activation, c is known: it is the
        variance over neurons of their influence on the trained outputs. For other networks it is measured in narrow
        networks of clouds.

        **Arguments:** `draws`: number of networks to draw; by default none if c is known, else 64.
        """
        width, problem = whole(width, "width", 1), self._until(None)
        if draws is None and has_response(problem):
            return Spread.known(self.mean, response_constants(problem, self.times), width)
        draws = 64 if draws is None else whole(draws, "draws", 2)
        drawn = drawn_outputs(problem, draws)
        constant = NARROW * np.cov(drawn.reshape(draws, -1), rowvar=False)
        return Spread(self.mean, np.atleast_2d(constant), width, draws, math.sqrt(0.5 / (draws - 1)))

    def _until(self, time: float | None) -> Problem:
        return self._problem.until(self._time if time is None else self._earlier(time))


def _before_and_after(problem: Problem, network: CloudNetwork) -> tuple[Grams, Grams]:
    start = grams(network, problem.xi, learn=True)
    problem.train(network)
    return start, grams(network, problem.xi, learn=False)
