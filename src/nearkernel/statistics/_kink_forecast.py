"""`forecast(order=0.5)`: the law of trained outputs of networks with a kink, to order width^(-1/2)."""

import math
from typing import Any

import numpy as np
import scipy  # whose part `stats` takes half a second to import, and comes when it is used

from .._check import finite_result, inputs, positive
from .._executor import run
from .._precision import in_float64
from ..activations import PiecewiseLinear
from ..dynamics import GradientDescent, SpectralAlgorithm
from ..dynamics._abstract_solution import status_at
from ..kernels import layer_kernels
from ..kernels._network import activation_averages
from ..models import MLP
from ._finite_forecast import Contribution, trainable
from ._gaussian import GaussianOutputs
from ._kinks import Crossing, Stretches, crossed, stretches
from ._neurons import SampledNeurons
from ._of_networks import OfNetworks
from ._sampled import Draw, NeuronJob, root

_BLOCK, _FIRST = 64, 2048
_TINY = 1e-13


class KinkForecast(OfNetworks, GaussianOutputs):
    r"""Trained outputs of networks with kinked activations, to order width^(-1/2): mean and covariance.

    Some neurons cross the kink in training and do not return. Their net flux changes mean and covariance over
    initializations by a multiple of width^(-1/2), far more than the 1/width of smooth activations.

    **Fields:** `mean` (m,) or (m, out), as `y`; `cov` (m, m) or (m, out, m, out); `std`; `terms` and `cov_terms`,
    (infinite width, correction); `error`, standard errors of the correction, `mean` and `cov`, from `neurons` of each
    layer that were sampled; `width`, of the last hidden layer; `status`, an `nk.Status`, and its `ok`; `algorithm`;
    `regime`, of `nk.regime`.
    """

    made_for = ("lazy", "nearly lazy")

    def __init__(self, crossings: "_Crossings", algorithm: SpectralAlgorithm):
        self.algorithm, self._crossings = algorithm, crossings
        self.status, self.width = status_at(algorithm, crossings.lam[-1]), crossings.net.widths[-1]
        shape = crossings.shape
        law = crossings.law(algorithm) if self.ok or math.isfinite(algorithm.end()) else crossings.diverged()
        mean, cov, shift, spread, self.neurons = law
        self.terms = (mean.reshape(shape), shift[0].reshape(shape))
        self.cov_terms = (cov.reshape(*shape, *shape), spread[0].reshape(*shape, *shape))
        self.error = Contribution(shift[1].reshape(shape), spread[1].reshape(*shape, *shape))
        self.mean = self.terms[0] + self.terms[1]
        if self.ok:
            finite_result((self.mean, *self.cov_terms), "`time` or `y` is")

    def _trained(self) -> tuple[MLP, np.ndarray]:
        return self._crossings.net, self._crossings.y

    def _covariance(self) -> np.ndarray:
        return self.cov_terms[0] + self.cov_terms[1]

    @property
    def ok(self) -> bool:
        return self.status.ok

    @in_float64
    def at(self, time: float) -> "KinkForecast":
        """The same networks at another time (steps for gradient descent); kernels are reused."""
        later = trainable(self.algorithm, "order=0.5").at(positive(time, "time", zero=True, finite=False))
        return KinkForecast(self._crossings, later)

    @in_float64
    def predict(self, x_new: Any) -> "KinkForecast":
        """The same networks at other inputs."""
        old = self._crossings
        x_new = inputs(x_new, "x_new", old.net.in_shape)
        return KinkForecast(_Crossings(old.net, old.x, old.y, old.vector, x_new, old.options), self.algorithm)


class _Crossings:
    """Kernels of all layers at train and new points, made once for all times."""

    def __init__(
        self, net: MLP, x: np.ndarray, y: np.ndarray, vector: bool, x_new: np.ndarray, options: SampledNeurons
    ):
        self.net, self.x, self.y, self.vector, self.options = net, x, y, vector, options
        self.n, self.outputs = y.shape
        self.shape = (len(x_new),) if vector else (len(x_new), self.outputs)
        both = np.concatenate([x, x_new])
        self.kernels = layer_kernels(net, both)
        self.slopes = [slopes for _, slopes in activation_averages(net, both)]
        self.kernel, self.ntk, _ = self.kernels[-1]
        lam, self.vectors = np.linalg.eigh(self.ntk[: self.n, : self.n])
        self.lam = np.maximum(lam, _TINY * lam[-1])

    def law(self, algorithm: SpectralAlgorithm) -> tuple:
        lr, time = (algorithm.lr if isinstance(algorithm, GradientDescent) else 0.0), algorithm.end()
        theta, n = self.ntk[self.n :, : self.n], self.n
        filtered = 1 / self.lam if math.isinf(time) else algorithm.filter(self.lam)
        leading = np.concatenate(
            [-((theta @ self.vectors) * filtered) @ self.vectors.T, np.eye(len(theta))], axis=1
        )
        mean, cov = leading[:, :n] @ -self.y, leading @ self.kernel @ leading.T
        shift, spread, neurons = self._sampled(lr, time, filtered, np.repeat(np.diagonal(cov), self.outputs))
        return mean.ravel(), np.kron(cov, np.eye(self.outputs)), shift, spread, neurons

    def diverged(self) -> tuple:
        m = math.prod(self.shape)
        mean, cov = np.full(m, np.inf), np.full((m, m), np.inf)
        return mean, cov, (mean, np.zeros(m)), (cov, np.zeros((m, m))), 0

    def _sampled(self, lr: float, time: float, filtered: np.ndarray, var: np.ndarray) -> tuple:
        options, m = self.options, math.prod(self.shape)
        if time == 0:
            return (np.zeros(m), np.zeros(m)), (np.zeros((m, m)), np.zeros((m, m))), 0
        cast: Any = lambda array: np.asarray(array, options.dtype)
        stretch = Stretches(*map(cast, stretches(self.lam, lr, time)))
        kinked = [k for k, each in enumerate(self.net.activations) if isinstance(each, PiecewiseLinear)]
        layers = [(k, self._layer(k, filtered)) for k in kinked]
        free = var > 1e-9 * np.repeat(np.diagonal(self.kernel)[self.n :], self.outputs)
        std = np.sqrt(np.where(free, var, 1.0))
        sums: Any = np.zeros((options.scrambles, m + m * m))
        total, more = 0, _BLOCK * max(1, _FIRST // options.scrambles // _BLOCK)
        engines = [self._engines(k, crossing) for k, crossing in layers]
        while True:
            for (k, crossing), (draw, sobols) in zip(layers, engines, strict=True):
                share = 1 / math.sqrt(self.net.widths[k])
                sums = sums + share * self._round(k, crossing, stretch, math.isinf(time), draw, sobols, more)
            total += more
            found = sums / total
            value, error = found.mean(axis=0), found.std(axis=0, ddof=1) / math.sqrt(len(found))
            parts = [
                (self._by_points(each[:m]), self._by_points(each[m:].reshape(m, m)))
                for each in (value, error)
            ]
            largest = (parts[1][0] / std, np.diagonal(parts[1][1]) / (2 * std**2))
            done = max(np.where(free, each, 0.0).max() for each in largest) <= options.tolerance
            if done or total * options.scrambles >= options.most:
                return *zip(*parts, strict=True), total * options.scrambles
            more = total

    def _engines(self, layer: int, crossing: Crossing) -> tuple[Draw, list]:
        roots = (crossing.u_root, crossing.xi_root, crossing.z_root)
        sizes = [len(roots[0]), self.outputs * len(roots[1]), self.outputs * len(roots[2])]
        draw = Draw(sizes, [np.sum(np.square(each), axis=1) for each in roots], self.outputs)
        seeds = range(self.options.scrambles)
        rng = lambda k: np.random.default_rng([self.options.seed, layer, k])
        return draw, [scipy.stats.qmc.Sobol(sum(sizes), rng=rng(k)) for k in seeds]

    def _round(
        self, layer: int, crossing, stretch, at_end: bool, draw: Draw, sobols: list, more: int
    ) -> np.ndarray:
        activation: Any = self.net.activation_of(layer + 1)
        slopes = (float(activation.right), float(activation.left))
        job = NeuronJob(crossed, (slopes, at_end), (crossing, stretch), draw, self.options.dtype)
        block = min(_BLOCK, more)
        blocks = (engine.random(block) for engine in sobols for _ in range(more // block))
        found = [np.concatenate([part.ravel() for part in each]) for each in run(job, blocks)]
        return np.array(found).reshape(len(sobols), more // block, -1).sum(axis=1)

    def _by_points(self, array: np.ndarray) -> np.ndarray:
        """From (output, point) to (point, output), on each axis."""
        order = np.arange(len(array)).reshape(self.outputs, -1).T.ravel()
        return array[np.ix_(*[order] * array.ndim)]

    def _layer(self, layer: int, filtered: np.ndarray) -> Crossing:
        kernel, theta, _ = self.kernels[layer]
        n, own = self.n, np.diagonal(kernel)[: self.n]
        x = np.full_like(kernel, float(self.net.dense(layer + 1).weight_var))
        for above in range(layer + 1, len(self.net.widths)):
            x = float(self.net.dense(above + 1).weight_var) * self.slopes[above] * x
        inverse = np.where(own > 0, 1 / np.where(own > 0, own, 1.0), 0.0)
        fields = (
            self.vectors, self.lam, self.ntk[:, :n], self.y.T, filtered, root(self.kernel), root(kernel), root(x),
            kernel[:n] * inverse[:, None], theta[:n], np.sqrt(inverse / (2 * np.pi)),
        )  # fmt: skip
        cast: Any = lambda array: np.ascontiguousarray(array, self.options.dtype)
        return Crossing(*map(cast, fields))


@in_float64
def kink_forecast(
    net: MLP,
    x: np.ndarray,
    y: np.ndarray,
    vector: bool,
    algorithm: SpectralAlgorithm,
    x_new: np.ndarray,
    options: SampledNeurons,
) -> KinkForecast:
    """For checked arguments, `y` (n, out)."""
    trainable(algorithm, "order=0.5")
    kinds = net.activations
    if not any(isinstance(each, PiecewiseLinear) and each.right != each.left for each in kinds):
        raise ValueError(
            "`order=0.5` is for activations with a kink at 0, the relu family; for smooth "
            "activations use `order=1`."
        )
    if net.parametrization == "mean_field":
        raise ValueError('`order=0.5` is for parametrization "ntk" or "standard"; got "mean_field".')
    return KinkForecast(_Crossings(net, x, y, vector, x_new, options), algorithm)
