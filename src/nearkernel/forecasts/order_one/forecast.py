"""`forecast(order=1)`: the distribution of trained outputs of networks of finite width, to order 1/width."""

import functools
import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._base.check import finite_result, inputs, positive, truth, whole
from ..._run.precision import in_float64
from ...activations.base import AbstractActivation
from ...activations.closed import PiecewiseLinear
from ...dynamics.algorithms.spectral import GradientDescent, GradientFlow, SpectralAlgorithm
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from ..outputs.expected_loss import ExpectedLoss, expected_loss
from ..outputs.nearly_gaussian import NearlyGaussianOutputs, as_targets
from ..outputs.with_regime import OfNetworks
from .exact_training import AbstractTraining, ExactTraining
from .sampled_training import SampledTraining
from .theory import SampledNeurons, known_to, say_missed
from .trained_moments import Law

_LARGE = 0.25  # parts of the correction, over what they correct


class Contribution(NamedTuple):
    """The contribution of one cause to `mean` and `cov`, already divided by the width; shapes as in the forecast."""

    mean: np.ndarray
    cov: np.ndarray


class StandardErrors(NamedTuple):
    """Standard errors of a correction, divided by the width; 0 where it is exact.

    `mean` and `cov`, with shapes as in the forecast; `third` and `fourth`, errors of the cumulants of each output
    separately, in the shape of `mean`.
    """

    mean: np.ndarray
    cov: np.ndarray
    third: np.ndarray
    fourth: np.ndarray


class FiniteForecast(OfNetworks, NearlyGaussianOutputs):
    r"""Trained outputs of networks of finite width: their distribution over initializations, to order 1/width.

    Outputs of finite networks are not Gaussian: `cumulants(3)` and `cumulants(4)` are also of order 1/width, and all
    higher ones are smaller. What is left out is of order 1/width$^2$: `skewness` and `kurtosis`, which vanish at
    infinite width, are the first to show it in narrow networks, and long training of small eigenvalues makes it larger.
    `density(f)`, `cdf(f)`, `quantile(q)` and `sample(size, key)` follow from the first four cumulants.

    **Fields:** `mean` (m,) or (m, out), like `y`; `cov` (m, m) or (m, out, m, out); `std`; `terms` and `cov_terms`,
    (infinite width, correction); `width` of the last hidden layer, by which corrections are divided; `contributions`,
    a dict of the parts of the correction:

    | name | cause |
    |---|---|
    | "metric" | the covariance of outputs at initialization differs from infinite width |
    | "ntk mean" | the mean of the tangent kernel differs from infinite width |
    | "ntk variance" | the tangent kernel differs between networks |
    | "ntk with outputs" | differences of the tangent kernel correlate with the outputs at initialization |
    | "dntk" | the tangent kernel changes in training, differently for each network |
    | "ddntk" | the tangent kernel changes in training, on average |
    | "neurons" | the last four together, if they are averages over sampled neurons |

    `distance`: the largest relative change from infinite width, of a mean in units of its standard deviation or of a
    variance; `expansion`: the same with the absolute sizes of all contributions added up, which measures how well the
    series converges. `error`, `StandardErrors` of the correction and of the cumulants of each output: 0 for few points,
    where they are exact; for more points, `neurons` is the number of sampled neurons per layer, and `relative_error`
    the fraction of itself to which the correction is known (see `nk.forecasts.SampledNeurons`). `status`, an
    `nk.Status`, and its `ok`; `algorithm`; `depth`, the number of hidden layers; `regime`, the result of `nk.regime`.

    For each output separately: `skewness` and `kurtosis`, the excess over a Gaussian; `positive`, the interval (low,
    high) in which the density is positive (order 1/width is not valid outside); `increasing`, the
    probabilities (low, high) between which quantiles increase.
    """

    made_for = ("lazy", "nearly lazy")

    def __init__(
        self, training: AbstractTraining, algorithm: SpectralAlgorithm, options: SampledNeurons | None = None
    ):
        self.algorithm, self._training = algorithm, training
        self._options = SampledNeurons() if options is None else options
        self.status = training.status(algorithm)
        self.width, self.depth = training.width, len(chain_of(training.net, "order=1", residual=True).widths)
        self._finite = self.ok or math.isfinite(algorithm.end())
        law = training.law(algorithm) if self._finite else training.diverged()
        shape = training.shape
        self.terms = tuple(term.reshape(shape) for term in (law.mean, _total(law, 0) / self.width))
        self.cov_terms = tuple(
            term.reshape(*shape, *shape) for term in (law.cov, _total(law, 1) / self.width)
        )
        self.contributions = {
            name: Contribution(mean.reshape(shape) / self.width, cov.reshape(*shape, *shape) / self.width)
            for name, (mean, cov) in law.corrections.items()
        }
        mean, cov, third, fourth = (error / self.width for error in law.error)
        self.error = StandardErrors(
            mean.reshape(shape), cov.reshape(*shape, *shape), third.reshape(shape), fourth.reshape(shape)
        )
        self.neurons, self.relative_error = law.neurons, law.accuracy
        self.mean = self.terms[0] + self.terms[1]
        if self.ok:
            finite_result((self.mean, *self.cov_terms), "`time` or `y` is")

    def _trained(self) -> tuple[AbstractNetwork, np.ndarray]:
        return self._training.net, self._training.y

    def _shown(self) -> Mapping[str, object]:
        shown = super()._shown()
        return {**shown, "correction": known_to(self.relative_error)} if self.neurons else shown

    def _covariance(self) -> np.ndarray:
        return self.cov_terms[0] + self.cov_terms[1]

    @property
    def _sizes(self) -> np.ndarray:
        return self._training.prior.reshape(self.mean.shape)

    @property
    def ok(self) -> bool:
        return self.status.ok

    @functools.cached_property
    def distance(self) -> float:
        return self._relative([Contribution(self.terms[1], self.cov_terms[1])])

    @functools.cached_property
    def expansion(self) -> float:
        return self._relative(list(self.contributions.values()))

    def width_within(self, tolerance: float) -> float:
        """The width above which `distance` is at most `tolerance`, if all layers grow in proportion; or infinity."""
        found = self.width * self.distance / positive(tolerance, "tolerance")
        return math.ceil(found - 1e-9) if math.isfinite(found) else math.inf

    def _relative(self, parts: list[Contribution]) -> float:
        """Sizes of `parts` over the law at infinite width; outputs that training fixes have none."""
        shape, prior = self.mean.shape, self._training.prior
        var = _variances(self.cov_terms[0], shape)
        free = var > 1e-9 * prior.reshape(shape)
        if not free.any():
            return 0.0
        mean = sum(np.abs(part.mean) for part in parts)
        spread = sum(np.abs(_variances(part.cov, shape)) for part in parts)
        return float(max((mean[free] / np.sqrt(var[free])).max(), (spread[free] / var[free]).max()))

    @in_float64
    def at(self, time: float) -> "FiniteForecast":
        """The same networks at another `time` (steps for gradient descent); tensors and kernels are reused."""
        later = trainable(self.algorithm).at(positive(time, "time", zero=True, finite=False))
        found = FiniteForecast(self._training, later, self._options)
        say_missed(self._options, found.relative_error, found.neurons, stacklevel=3)
        return found

    @in_float64
    def predict(self, x_new: Any) -> "FiniteForecast":
        """The same networks at other inputs `x_new`; tensors or neurons are recomputed."""
        x_new = inputs(x_new, "x_new", self._training.net.in_shape)
        old, options = self._training, self._options
        training = training_of(old.net, old.x, old.y, old.vector, x_new, options)
        return _warned(FiniteForecast(training, self.algorithm, options), stacklevel=3)

    @in_float64
    def cumulants(self, order: int, diagonal: bool = False) -> np.ndarray:
        """The joint cumulants of new outputs, third or fourth by `order`, divided by the width like `terms[1]`.

        The third is linear in `y` and zero at `y` = 0; the fourth does not depend on `y`.

        **Arguments:** `order`, 3 or 4; `diagonal`, for the cumulants of each output separately. Joint cumulants of
        three and more different new inputs need further averages, which are computed when they are first requested.

        **Returns:** (m, m, m) or (m, m, m, m), with (m, out) in place of each m if `y` has columns; with `diagonal`,
        the shape of `mean`.
        """
        if whole(order, "order", 1) not in (3, 4):
            raise ValueError(f"`order` must be 3 or 4 (`mean` and `cov` are orders 1 and 2); got {order}.")
        shape = self.mean.shape
        if truth(diagonal, "diagonal"):
            return np.diagonal(self._pair_cumulants(order)).reshape(shape)
        if not self._training.joint:
            raise ValueError(
                "joint cumulants need tensors of four points, but this forecast averaged over neurons: use "
                "`diagonal=True`, or fewer points, or forecast with `neurons=nk.forecasts.SampledNeurons(exact=...)`."
            )
        if not self._finite:
            return np.full(shape * order, np.inf)
        return self._training.cumulants(self.algorithm, order).reshape(shape * order) / self.width

    def _pair_cumulants(self, order: int) -> np.ndarray:
        """kappa_bcc or kappa_bbcc, (m * out, m * out)."""
        if not self._finite:
            return np.full((self.mean.size, self.mean.size), np.inf)
        return self._training.pair_cumulants(self.algorithm, order) / self.width

    @property
    def _has_joint(self) -> bool:
        return self._training.joint

    @in_float64
    def expected_loss(self, y_new: Any) -> ExpectedLoss:
        r"""The loss $\frac12 \sum (f - y)^2$ of these networks: its mean, split into bias and variance, and its
        covariance.

        **Arguments:** `y_new`, $y$, targets at the new inputs, in the shape of `mean`.
        """
        y, size = as_targets(y_new, self.mean.shape), self.mean.size
        cov = self.cov_terms[0].reshape(size, size), self.cov_terms[1].reshape(size, size)
        third, fourth = self._pair_cumulants(3).T, self._pair_cumulants(4)
        return expected_loss((self.terms[0], self.terms[1]), cov, third, fourth, y)


@in_float64
def finite_forecast(
    net: AbstractNetwork,
    x: np.ndarray,
    y: np.ndarray,
    vector: bool,
    algorithm: SpectralAlgorithm,
    x_new: np.ndarray,
    neurons: SampledNeurons,
) -> FiniteForecast:
    """For checked arguments, `y` (n, out)."""
    require_order_one(net, algorithm)
    training = training_of(net, x, y, vector, x_new, neurons)
    return _warned(
        FiniteForecast(training, algorithm, neurons), stacklevel=5
    )  # two verbs, each within its precision


def training_of(
    net: AbstractNetwork,
    x: np.ndarray,
    y: np.ndarray,
    vector: bool,
    x_new: np.ndarray,
    options: SampledNeurons,
) -> AbstractTraining:
    """By exact tensors for few points, by sampled neurons for more."""
    points = len(x) + len(x_new)
    if points <= options.exact:
        return ExactTraining(net, x, y, vector, x_new)
    chain = chain_of(net, "order=1", residual=True)
    if any(each.breaks for each in chain.activations):
        raise ValueError(
            f"`order=1` at {points} points, more than `exact` = {options.exact}, needs activations whose derivatives "
            "are all continuous, such as gelu: use fewer points, or exact tensors with "
            f"`neurons=nk.forecasts.SampledNeurons(exact={points})`."
        )
    if chain.residual or not chain.widths:
        raise ValueError(
            f"`order=1` at {points} points, more than `exact` = {options.exact}, needs hidden layers without residual "
            f"blocks: use fewer points, or exact tensors with `neurons=nk.forecasts.SampledNeurons(exact={points})`."
        )
    return SampledTraining(net, chain.mlp(), x, y, vector, x_new, options)


def require_order_one(net: AbstractNetwork, algorithm: SpectralAlgorithm) -> None:
    """Refuse networks and algorithms whose trained law is not known to order 1/width."""
    trainable(algorithm)
    chain = chain_of(net, "order=1", residual=True)
    if chain.stages[-1].skip is not None:
        raise ValueError("`order=1` needs a residual network that ends in an Activation and a Dense layer.")
    require_known_kinks(chain.activations)
    if not all(each.smooth for each in chain.activations):
        raise ValueError(
            "`order=1` is for smooth activations: with a kink the mean of trained networks moves as width^(-1/2), not "
            "as 1/width; use `order=0.5`, or a smooth activation such as gelu."
        )


def require_known_kinks(activations: Iterable[AbstractActivation]) -> None:
    """Refuse kinks whose corrections are known to no order."""
    for each in activations:
        if each.kinks and not isinstance(each, PiecewiseLinear):
            places = ", ".join(f"{at:g}" for at in each.kinks)
            raise ValueError(
                f"the slope of the activation jumps at {places}: `order=1` needs continuous slopes, and `order=0.5` "
                "supports kinks of the relu family only; use `order=0`, or `nk.measure` of trained networks."
            )


def _warned(found: FiniteForecast, stacklevel: int) -> FiniteForecast:
    if found.ok and found.expansion > _LARGE:
        warnings.warn(
            f"the correction is {found.expansion:.2g} of the infinite-width result: at depth/width = "
            f"{found.depth}/{found.width} the next order may not be small either: use `simulate` instead.",
            stacklevel=stacklevel + 1,
        )
    say_missed(found._options, found.relative_error, found.neurons, stacklevel + 1)
    return found


def trainable(algorithm: SpectralAlgorithm, order: str = "order=1") -> GradientDescent | GradientFlow:
    plain = (isinstance(algorithm, GradientFlow) and algorithm.friction is None) or (
        isinstance(algorithm, GradientDescent) and not algorithm.momentum
    )
    if not plain:
        raise ValueError(
            f"`{order}` is for nk.GradientFlow() and nk.GradientDescent(lr) without inertia; got {algorithm}."
        )
    return algorithm  # type: ignore[return-value]


def _total(law: Law, which: int) -> np.ndarray:
    return sum(parts[which] for parts in law.corrections.values())  # type: ignore[return-value]


def _variances(cov: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    size = math.prod(shape)
    return np.diagonal(cov.reshape(size, size)).reshape(shape)
