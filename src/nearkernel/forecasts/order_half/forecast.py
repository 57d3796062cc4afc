"""`nk.Kinks`: the distribution of trained outputs of networks with a kink, to order width^(-1/2)."""

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..._base.check import finite_result, inputs, positive, truth, whole
from ..._base.types import ArrayLike
from ..._base.warning import warn
from ..._run.precision import in_float64
from ...dynamics.algorithms.spectral import GradientDescent, GradientFlow
from ...dynamics.linear.base import status_at
from ...models.networks.mlp import MLP
from ..neuron_sampling import Moments, Sampled
from ..outputs.corrected import CorrectedForecast, StandardErrors
from .kink_crossings import Crossings

if TYPE_CHECKING:
    from .theory import Kinks

FAR = 0.2  # movement, or distance, beyond which the next order is a third of the correction or more


class KinkForecast(CorrectedForecast):
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
    the correction is known (see `nk.Kinks`); `movement`, the change of
    preactivations at training points in training, rms over neurons, in standard deviations of these preactivations: the
    correction is valid while this is small; `distance`, the largest relative change from infinite width, of a mean in
    units of its standard deviation or of a variance; `far`, whether one of these two is above 0.2, where the next order
    is typically a third of the correction or more, or two training points are closer than neurons move; `width`, of
    the last hidden layer; `status`, an `nk.Status`, and its `ok`; `algorithm`; `regime`, the result of `nk.regime`.

    For each output separately: `skewness`; `positive`, the interval (low, high) in which the density is positive;
    `increasing`, the probabilities (low, high) between which quantiles increase.
    """

    power: ClassVar[float] = 0.5

    theory: "Kinks"
    algorithm: GradientDescent | GradientFlow

    def __init__(self, crossings: Crossings, algorithm: GradientDescent | GradientFlow):
        self.algorithm, self.theory, self._crossings = algorithm, crossings.options, crossings
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
        unknown = np.full(shape, np.nan)  # the fourth cumulant has a larger part of order 1/width
        self.error = StandardErrors(
            error.mean.reshape(shape), error.cov.reshape(*shape, *shape), third, unknown
        )
        self.mean = self.terms[0] + self.terms[1]
        if self.ok:
            finite_result((self.mean, *self.cov_terms), "`time` or `y` is")

    def _trained(self) -> tuple[MLP, np.ndarray]:
        return self._crossings.net, self._crossings.y

    @property
    def _prior(self) -> np.ndarray:
        return self._crossings.prior

    @property
    def _has_joint(self) -> bool:
        return False

    @property
    def far(self) -> bool:
        return max(self.movement, self.distance) > FAR or self.movement > self._crossings.separation

    @in_float64
    def at(self, time: float) -> "KinkForecast":
        """The same networks at another `time` (steps for gradient descent); kernels are reused."""
        later = self.algorithm.at(positive(time, "time", zero=True, finite=False))
        return KinkForecast(self._crossings, later)

    @in_float64
    def predict(self, x_new: ArrayLike) -> "KinkForecast":
        """The same networks at other inputs `x_new`."""
        old = self._crossings
        x_new = inputs(x_new, "x_new", old.net.in_shape)
        there = Crossings(old.net, old.x, old.y, old.vector, x_new, old.options)
        return warned(KinkForecast(there, self.algorithm))

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
            raise ValueError("joint cumulants are not computed at `theory=nk.Kinks()`: use `diagonal=True`.")
        return np.diagonal(self._found.third).reshape(self.mean.shape)

    def _third_and_fourth(self) -> tuple[np.ndarray, np.ndarray]:
        return self.cumulants(3, diagonal=True), np.zeros_like(self.mean)

    def _pair_cumulants(self, order: int) -> np.ndarray:
        return self._found.third if order == 3 else self._found.fourth


def _diverged(crossings: Crossings) -> tuple[np.ndarray, np.ndarray]:
    m = crossings.shape[0]
    return np.full((m, crossings.outputs), np.inf), np.full((m, m), np.inf)


def _nothing_known(m: int) -> Sampled:
    infinite = Moments(np.full(m, np.inf), *np.full((3, m, m), np.inf))
    return Sampled(infinite, Moments(np.zeros(m), *np.zeros((3, m, m))), 0)


def warned(law: KinkForecast) -> KinkForecast:
    """Warns if the next order may not be small."""
    if law.ok and law.far:
        warn(
            f"training moves preactivations by {law.movement:.2g} of their spread, and kinks change outputs by "
            f"{law.distance:.2g} of theirs (the smallest sine of an angle between two training inputs is "
            f"{law._crossings.separation:.2g}): at width {law.width} the next order may not be small either: use "
            "`simulate` instead."
        )
    return law
