"""Networks of infinite width, in closed form or, for any loss, by draws in function space."""

from typing import ClassVar

import equinox as eqx
import numpy as np

from ..._base.check import refuse_unused, whole
from ...dynamics.algorithms.sgd import SGD
from ...dynamics.algorithms.spectral import SpectralAlgorithm
from ...kernels.base import AbstractKernel
from ...kernels.wide.network import NNGP
from ...models.networks.network import AbstractNetwork
from ..outputs.kernel_pair import pair_of
from ..theory import AbstractBayesianTheory, Needs, Problem
from .any_loss import SampledForecast, Starts
from .forecast import WideForecast
from .posterior import PosteriorResult, process_posterior
from .stochastic import StochasticForecast
from .trained_gaussian import NewPoints, TrainedLaw


class InfiniteWidth(
    AbstractBayesianTheory[WideForecast | StochasticForecast | SampledForecast, PosteriorResult]
):
    """Networks of infinite width, whose tangent kernel does not change; also for given kernels and features.

    With the squared loss the law is Gaussian and in closed form, a `WideForecast`, or a `StochasticForecast` for an
    `nk.SGD` that draws batches or noise. For other losses initializations are drawn and each is trained in function
    space, up to a finite time: a `SampledForecast`.

    **Arguments:** `samples`, for losses other than the squared one: the number of initializations, by default 1000.
    """

    regimes: ClassVar[tuple[str, ...]] = ("lazy",)
    limit: ClassVar[str] = "infinite width"

    samples: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.samples is not None:
            whole(self.samples, "samples", 2)

    @classmethod
    def needs(cls) -> Needs:
        return Needs(models=("a network", "a pair of kernels", "features"))

    def forecast(
        self, problem: Problem, x_new: np.ndarray
    ) -> WideForecast | StochasticForecast | SampledForecast:
        pair = pair_of(problem.model)
        algorithm, x, y = problem.spectral, problem.x, problem.columns(pair.out_dim())
        if problem.loss.quadratic:
            refuse_unused(
                "with the loss 'squared', which needs no draws", samples=self.samples, key=problem.key
            )
            if isinstance(algorithm, SGD):
                return StochasticForecast(pair, x, y, problem.vector, algorithm, x_new, self)
            assert isinstance(algorithm, SpectralAlgorithm)
            law = TrainedLaw(pair, x, y, algorithm, problem.vector, together=True)
            return WideForecast(law, NewPoints(law, x_new), algorithm, self)
        size = 1000 if self.samples is None else self.samples
        starts = Starts(pair, x, y, problem.vector, problem.loss, size, problem.key)
        return SampledForecast(starts.trained(algorithm), x_new, 0, self)

    def posterior(
        self,
        problem: AbstractKernel | AbstractNetwork,
        x: np.ndarray,
        y: np.ndarray,
        x_new: np.ndarray,
        noise: float,
        vector: bool,
    ) -> PosteriorResult:
        refuse_unused("on a posterior", samples=self.samples)
        kernel = NNGP(problem) if isinstance(problem, AbstractNetwork) else problem
        return process_posterior(kernel, x, y, x_new, noise, vector)
