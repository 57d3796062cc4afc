"""`forecast(order=0.5)`: the distribution of trained outputs of networks with a kink, to order width^(-1/2)."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._base.check import finite_result, inputs, positive, truth, whole
from ..._run.precision import in_float64
from ...dynamics.algorithms.spectral import SpectralAlgorithm
from ...dynamics.linear.base import status_at
from ...models.networks.mlp import MLP
from ..order_one.forecast import require_known_kinks, trainable
from ..order_one.neuron_average import Moments, Sampled
from ..order_one.theory import SampledNeurons, known_to
from ..outputs.expected_loss import ExpectedLoss, expected_loss
from ..outputs.nearly_gaussian import NearlyGaussianOutputs, as_targets
from ..outputs.with_regime import OfNetworks
from .kink_crossings import Crossings

FAR = 0.2  # movement, or distance, beyond which the next order is a third of the correction or more


class KinkErrors(NamedTuple):
    """Standard errors of the corrections: `mean`; `cov`; `third`, the cumulant of each output separately."""

    mean: np.ndarray
    cov: np.ndarray
    third: np.ndarray


class KinkForecast(OfNetworks, NearlyGaussianOutputs):
    r"""Trained outputs of networks with kinked activations: their distribution to order $\text{width}^{-1/2}$.

    Some neurons cross the kink in training and do not return. Their net flux changes the mean and covariance over
    initializations by a multiple of $\text{width}^{-1/2}$, far more than the 1/width of smooth activations. It is not
    linear in the outputs at initialization, so the third cumulant appears at the same order: `cumulants(3)` is included
    in `density(f)`, `cdf(f)`, `quantile(q)` and `sample(size, key)`. The fourth cumulant is not: at all usual widths
    its part of order 1/width, which is not known for kinks, is the larger one.

    Neurons also pass the kink of a new input that is close to a training point, within about `movement` of it. There
    the correction goes to zero, as training does at the training points, over a distance that falls as
    $\text{width}^{-1/2}$.

    **Fields:** `mean` (m,) or (m, out), like `y`; `cov` (m, m) or (m, out, m, out); `std`; `terms` and `cov_terms`,
    (infinite width, correction); `error`, standard errors of the correction to `mean`, `cov`, and to the `third`
    cumulant of each output, from `neurons` sampled neurons per layer; `relative_error`, the fraction of itself to which
    the correction is known (see `nk.forecasts.SampledNeurons`); `movement`, the change of
    preactivations at training points in training, rms over neurons, in standard deviations of these preactivations: the
    correction is valid while this is small; `distance`, the largest relative change from infinite width, of a mean in
    units of its standard deviation or of a variance; `far`, whether one of these two is above 0.2, where the next order
    is typically a third of the correction or more, or two training points are closer than neurons move; `width`, of
    the last hidden layer; `status`, an `nk.Status`, and its `ok`; `algorithm`; `regime`, the result of `nk.regime`.

    For each output separately: `skewness`; `positive`, the interval (low, high) in which the density is positive;
    `increasing`, the probabilities (low, high) between which quantiles increase.
    """

    made_for = ("lazy", "nearly lazy")

    def __init__(self, crossings: Crossings, algorithm: SpectralAlgorithm):
        self.algorithm, self._crossings = algorithm, crossings
        self.status, self.width = status_at(algorithm, crossings.lam[-1]), crossings.net.widths[-1]
        shape = crossings.shape
        finite = self.ok or math.isfinite(algorithm.end())
        mean, cov = crossings.wide(algorithm) if finite else _diverged(crossings)
        found = crossings.sampled(algorithm) if finite else _nothing_known(math.prod(shape))
        self.movement = crossings.movement(algorithm) if finite else math.inf
        self._found, self.neurons, self.relative_error = found.value, found.neurons, found.accuracy
        self.terms = (mean.reshape(shape), found.value.mean.reshape(shape))
        wide = np.kron(cov, np.eye(crossings.outputs))
        self.cov_terms = tuple(term.reshape(*shape, *shape) for term in (wide, found.value.cov))
        error, third = found.error, np.diagonal(found.error.third).reshape(shape)
        self.error = KinkErrors(error.mean.reshape(shape), error.cov.reshape(*shape, *shape), third)
        self.mean = self.terms[0] + self.terms[1]
        if self.ok:
            finite_result((self.mean, *self.cov_terms), "`time` or `y` is")

    def _trained(self) -> tuple[MLP, np.ndarray]:
        return self._crossings.net, self._crossings.y

    def _shown(self) -> Mapping[str, object]:
        shown = super()._shown()
        return {**shown, "correction": known_to(self.relative_error)} if self.neurons else shown

    def _covariance(self) -> np.ndarray:
        return self.cov_terms[0] + self.cov_terms[1]

    @property
    def _sizes(self) -> np.ndarray:
        return self._crossings.prior.reshape(self.mean.shape)

    @property
    def _has_joint(self) -> bool:
        return False

    @property
    def ok(self) -> bool:
        return self.status.ok

    @property
    def distance(self) -> float:
        size = self.mean.size
        var, more = (np.diagonal(term.reshape(size, size)) for term in self.cov_terms)
        free = var > 1e-9 * self._crossings.prior
        if not free.any():
            return 0.0
        shift = np.abs(self.terms[1].ravel()[free]) / np.sqrt(var[free])
        return float(max(shift.max(), (np.abs(more[free]) / var[free]).max()))

    @property
    def far(self) -> bool:
        return max(self.movement, self.distance) > FAR or self.movement > self._crossings.separation

    def width_within(self, tolerance: float) -> float:
        """The width above which `distance` is at most `tolerance`, if all layers grow in proportion; or infinity."""
        found = self.width * (self.distance / positive(tolerance, "tolerance")) ** 2
        return math.ceil(found - 1e-9) if math.isfinite(found) else math.inf

    @in_float64
    def at(self, time: float) -> "KinkForecast":
        """The same networks at another `time` (steps for gradient descent); kernels are reused."""
        later = trainable(self.algorithm, "order=0.5").at(positive(time, "time", zero=True, finite=False))
        return KinkForecast(self._crossings, later)

    @in_float64
    def predict(self, x_new: Any) -> "KinkForecast":
        """The same networks at other inputs `x_new`."""
        old = self._crossings
        x_new = inputs(x_new, "x_new", old.net.in_shape)
        there = Crossings(old.net, old.x, old.y, old.vector, x_new, old.options)
        return _warned(KinkForecast(there, self.algorithm))

    @property
    def kurtosis(self) -> np.ndarray:
        """Raises `ValueError`: the part of order 1/width, which is not known for kinks, is the larger one."""
        return self.cumulants(4, diagonal=True)

    def cumulants(self, order: int, diagonal: bool = False) -> np.ndarray:
        r"""The third cumulant of each output separately, of order $\text{width}^{-1/2}$, in the shape of `mean`.

        It is zero at `y` = 0.

        **Arguments:** `order`, which must be 3; `diagonal`, which must be True: joint cumulants are not computed.
        """
        if whole(order, "order", 1) == 4:
            raise ValueError(
                "`order=4`: the fourth cumulant (and `kurtosis`) of networks with a kink is not known: its part of "
                "order 1/width is larger than that of order width^(-1/2). Measure it with `nk.measure`."
            )
        if order != 3:
            raise ValueError(f"`order` must be 3 (`mean` and `cov` are orders 1 and 2); got {order}.")
        if not truth(diagonal, "diagonal"):
            raise ValueError("joint cumulants are not computed at `order=0.5`: use `diagonal=True`.")
        return np.diagonal(self._found.third).reshape(self.mean.shape)

    def _third_and_fourth(self) -> tuple[np.ndarray, np.ndarray]:
        return self.cumulants(3, diagonal=True), np.zeros_like(self.mean)

    @in_float64
    def expected_loss(self, y_new: Any) -> ExpectedLoss:
        r"""The loss $\frac12 \sum (f - y)^2$ of these networks: its mean, split into bias and variance, and its
        covariance.

        **Arguments:** `y_new`, $y$, targets at the new inputs, in the shape of `mean`.
        """
        y, size = as_targets(y_new, self.mean.shape), self.mean.size
        cov = self.cov_terms[0].reshape(size, size), self.cov_terms[1].reshape(size, size)
        third, fourth = self._found.third.T, self._found.fourth
        return expected_loss((self.terms[0], self.terms[1]), cov, third, fourth, y)


def _diverged(crossings: Crossings) -> tuple[np.ndarray, np.ndarray]:
    m = crossings.shape[0]
    return np.full((m, crossings.outputs), np.inf), np.full((m, m), np.inf)


def _nothing_known(m: int) -> Sampled:
    infinite = Moments(np.full(m, np.inf), *np.full((3, m, m), np.inf))
    return Sampled(infinite, Moments(np.zeros(m), *np.zeros((3, m, m))), 0)


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
    require_known_kinks(net.activations)
    if all(each.smooth for each in net.activations):
        raise ValueError("`order=0.5` is for activations with a kink: for smooth activations use `order=1`.")
    if net.parametrization == "mean_field":
        raise ValueError('`order=0.5` is for parametrization "ntk" or "standard"; got "mean_field".')
    return _warned(KinkForecast(Crossings(net, x, y, vector, x_new, options), algorithm))


def _warned(found: KinkForecast) -> KinkForecast:
    if found.ok and found.far:
        warnings.warn(
            f"training moves preactivations by {found.movement:.2g} of their spread, and kinks change outputs by "
            f"{found.distance:.2g} of theirs (the smallest sine of an angle between two training inputs is "
            f"{found._crossings.separation:.2g}): at width {found.width} the next order may not be small either: use "
            "`simulate` instead.",
            stacklevel=6,  # two verbs, each within its precision
        )
    return found
