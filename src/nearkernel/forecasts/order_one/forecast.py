"""`nk.FiniteWidth`: the distribution of trained outputs of networks of finite width, to order 1/width."""

import functools
import math
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ..._base.check import finite_result, inputs, positive, truth, whole
from ..._base.types import ArrayLike
from ..._base.warning import warn
from ..._run.precision import in_float64
from ...dynamics.algorithms.spectral import GradientDescent, GradientFlow
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from ..neuron_sampling import say_missed
from ..outputs.corrected import CorrectedForecast, StandardErrors
from .exact_training import AbstractTraining, ExactTraining
from .sampled_training import SampledTraining
from .trained_moments import Law

if TYPE_CHECKING:
    from .theory import FiniteWidth

_LARGE = 0.25  # parts of the correction, over what they correct


class Contribution(NamedTuple):
    """The contribution of one cause to `mean` and `cov`, already divided by the width; shapes as in the forecast."""

    mean: np.ndarray
    cov: np.ndarray


class FiniteForecast(CorrectedForecast):
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
    the fraction of itself to which the correction is known (see `nk.FiniteWidth`). `status`, an
    `nk.Status`, and its `ok`; `algorithm`; `depth`, the number of hidden layers; `regime`, the result of `nk.regime`.

    For each output separately: `skewness` and `kurtosis`, the excess over a Gaussian; `positive`, the interval (low,
    high) in which the density is positive (order 1/width is not valid outside); `increasing`, the
    probabilities (low, high) between which quantiles increase.
    """

    power: ClassVar[float] = 1.0

    theory: "FiniteWidth"
    algorithm: GradientDescent | GradientFlow

    def __init__(
        self, training: AbstractTraining, algorithm: GradientDescent | GradientFlow, theory: "FiniteWidth"
    ):
        self.algorithm, self.theory, self._training = algorithm, theory, training
        self.status = training.status(algorithm)
        self.width, self.depth = (
            training.width,
            len(chain_of(training.net, "theory=nk.FiniteWidth()", residual=True).widths),
        )
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

    @property
    def _prior(self) -> np.ndarray:
        return self._training.prior

    @functools.cached_property
    def expansion(self) -> float:
        return self._relative(self.contributions.values())

    @in_float64
    def at(self, time: float) -> "FiniteForecast":
        """The same networks at another `time` (steps for gradient descent); tensors and kernels are reused."""
        later = self.algorithm.at(positive(time, "time", zero=True, finite=False))
        law = FiniteForecast(self._training, later, self.theory)
        say_missed(self.theory, law.relative_error, law.neurons)
        return law

    @in_float64
    def predict(self, x_new: ArrayLike) -> "FiniteForecast":
        """The same networks at other inputs `x_new`; tensors or neurons are recomputed."""
        x_new = inputs(x_new, "x_new", self._training.net.in_shape)
        old = self._training
        training = training_of(old.net, old.x, old.y, old.vector, x_new, self.theory)
        return warned(FiniteForecast(training, self.algorithm, self.theory))

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
                "`diagonal=True`, or fewer points, or forecast with `theory=nk.FiniteWidth(exact=...)`."
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


def training_of(
    net: AbstractNetwork,
    x: np.ndarray,
    y: np.ndarray,
    vector: bool,
    x_new: np.ndarray,
    theory: "FiniteWidth",
) -> AbstractTraining:
    """By exact tensors for few points, by sampled neurons for more."""
    points = len(x) + len(x_new)
    if points <= theory.exact:
        return ExactTraining(net, x, y, vector, x_new)
    chain = chain_of(net, "theory=nk.FiniteWidth()", residual=True)
    if any(each.breaks for each in chain.activations):
        raise ValueError(
            f"`theory=nk.FiniteWidth()` at {points} points, more than `exact` = {theory.exact}, needs "
            "activations whose derivatives are all continuous, such as gelu: use fewer points, or exact tensors with "
            f"`theory=nk.FiniteWidth(exact={points})`."
        )
    if chain.residual or not chain.widths:
        raise ValueError(
            f"`theory=nk.FiniteWidth()` at {points} points, more than `exact` = {theory.exact}, needs "
            f"hidden layers without residual blocks: use fewer points, or exact tensors with "
            f"`theory=nk.FiniteWidth(exact={points})`."
        )
    return SampledTraining(net, chain.mlp(), x, y, vector, x_new, theory)


def warned(law: FiniteForecast) -> FiniteForecast:
    """Warns if the next order may not be small, or if the maximum number of sampled neurons was too small."""
    if law.ok and law.expansion > _LARGE:
        warn(
            f"the correction is {law.expansion:.2g} of the infinite-width result: at depth/width = "
            f"{law.depth}/{law.width} the next order may not be small either: use `simulate` instead."
        )
    say_missed(law.theory, law.relative_error, law.neurons)
    return law


def _total(law: Law, which: int) -> np.ndarray:
    return sum(parts[which] for parts in law.corrections.values())  # type: ignore[return-value]
