"""`nk.forecast`: the distribution of trained networks over their initializations, by a theory."""

from typing import Any, Literal, overload

import numpy as np

from .._base.check import inputs, instance, shown
from .._base.keys import Key
from .._base.types import ArrayLike, Num
from .._run.precision import in_float64
from ..dynamics.algorithms.losses import AbstractLoss, Squared, get_loss
from ..dynamics.algorithms.spectral import AbstractAlgorithm, GradientFlow, SpectralAlgorithm
from ..kernels.base import AbstractKernel
from ..models.expansion.features import FeatureModel
from ..models.networks.network import AbstractNetwork
from ..models.networks.scaled import Scaled
from .infinite_width.forecast import WideForecast
from .infinite_width.theory import InfiniteWidth
from .mean_field.forecast import RichForecast
from .mean_field.theory import MeanField
from .old_keywords import replaced
from .order_half.theory import Kinks
from .order_one.theory import FiniteWidth
from .outputs.forecast_base import AbstractForecast
from .outputs.kernel_pair import require_problem
from .theory import AbstractTheory, F, Model, Problem

THEORIES: tuple[AbstractTheory, ...] = (InfiniteWidth(), FiniteWidth(), Kinks(), MeanField())


@overload
def forecast(
    problem: Model,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    *,
    theory: AbstractTheory[F],
    loss: Any = "squared",
    key: Key | None = None,
) -> F: ...


@overload
def forecast(
    problem: tuple[AbstractKernel, AbstractKernel] | FeatureModel,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: SpectralAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    *,
    theory: None = None,
    loss: Literal["squared"] | Squared = "squared",
    key: None = None,
) -> WideForecast: ...


@overload
def forecast(
    problem: AbstractNetwork | Scaled,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: SpectralAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    *,
    theory: None = None,
    loss: Literal["squared"] | Squared = "squared",
    key: None = None,
) -> WideForecast | RichForecast: ...


@overload
def forecast(
    problem: Model,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    *,
    theory: AbstractTheory | None = None,
    loss: str | AbstractLoss | Any = "squared",
    key: Key | None = None,
) -> AbstractForecast: ...


@replaced
@in_float64
def forecast(
    problem: Model,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm | None = None,
    x_new: Num[ArrayLike, " m *d"] | None = None,
    *,
    theory: AbstractTheory | None = None,
    loss: Any = "squared",
    key: Key | None = None,
) -> AbstractForecast:
    r"""The distribution, over initializations, of outputs at `x_new` after training on (`x`, `y`).

    **Arguments:**

    - `problem`: a network, or an `nk.Scaled` of one; or a pair of kernels, the covariance of outputs at initialization
      and the tangent kernel; or an `nk.FeatureModel` with Gaussian weights, `weight_var` > 0. If only the last layer
      of `net` trains, `problem` is `(nk.kernels.NNGP(net),) * 2`.
    - `x` (n, d); `y` (n,) or (n, out); `x_new` (m, d).
    - `algorithm`: `nk.GradientFlow()` by default. With an `nk.SGD` that draws batches or noise, the mean and
      covariance are also over these. Decay to zero is available only for features with Gaussian weights: kernels do not
      determine its effect on networks.
    - `theory`: what is taken to infinity, to which order, and how accurately: `nk.InfiniteWidth()`,
      `nk.FiniteWidth()` (order 1/width, smooth activations), `nk.Kinks()` (order $\text{width}^{-1/2}$, the relu
      family) or `nk.MeanField()` (networks that learn features). By default the limit of infinite width in the
      network's own parametrization: `nk.MeanField()` for "mean_field", else `nk.InfiniteWidth()`.
      `nk.regime(net, y).theory` is the recommended one.
    - `loss`, `key`: same as `nk.simulate`. `key` also draws the initializations of `nk.InfiniteWidth()` for losses
      other than the squared one.

    **Returns:** an `nk.results.AbstractForecast`: `mean`, `std`, `cov`, `status`, `ok`, `regime`, `at(time)`,
    `predict(x_new)`, `sample(size, key)`, `plot()`; the record of each theory has additional fields. A problem that
    `theory` does not fit raises an error that names the theories that do.
    """
    posed = _posed(problem, x, y, GradientFlow() if algorithm is None else algorithm, loss, key)
    if x_new is None:
        raise ValueError("`x_new` is missing: pass the points at which to forecast.")
    x_new = inputs(x_new, "x_new", posed.x.shape[1:])
    chosen = default_theory(posed) if theory is None else instance(theory, "theory", AbstractTheory)  # type: ignore[type-abstract]
    if not chosen.fits(posed):
        fitting = ", ".join(repr(each) for each in THEORIES if each.fits(posed))
        chosen.require(
            posed, f"These fit: {fitting}." if fitting else "No theory fits: train with nk.simulate."
        )
    return chosen.forecast(posed, x_new)


def default_theory(problem: Problem) -> AbstractTheory:
    """The limit of infinite width in the parametrization of the network."""
    return MeanField() if problem.net is not None and problem.net.mean_field else InfiniteWidth()


def _posed(problem: Any, x: ArrayLike, y: ArrayLike, algorithm: Any, loss: Any, key: Key | None) -> Problem:
    """The problem, with everything checked that does not depend on the theory."""
    in_shape = require_problem(problem)
    if not isinstance(algorithm, AbstractAlgorithm):
        raise TypeError(f"`algorithm` must be an algorithm, e.g. nk.GradientFlow(); got {shown(algorithm)}.")
    rows = np.array(inputs(x, "x", in_shape))
    return Problem(problem, rows, y, algorithm, get_loss(loss), key)
