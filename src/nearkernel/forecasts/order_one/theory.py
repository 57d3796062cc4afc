r"""Networks of finite width, to order 1/width."""

from typing import ClassVar

import equinox as eqx
import numpy as np

from ..._base.check import whole
from ...kernels.base import AbstractKernel
from ...models.networks.chain import chain_of
from ...models.networks.network import AbstractNetwork
from ..neuron_sampling import check_settings
from ..posteriors.finite_width import FinitePosterior, finite_posterior
from ..theory import AbstractBayesianTheory, Needs, Problem
from .forecast import FiniteForecast, training_of, warned


class FiniteWidth(AbstractBayesianTheory[FiniteForecast, FinitePosterior]):
    r"""Networks of finite width, to order 1/width: smooth activations, the squared loss.

    Tensors of four points are exact, but their number grows as the fourth power of the number of points. All of them
    are averages over one neuron of each layer, so beyond a dozen points they are estimated with neurons on scrambled
    Sobol points. The cost per neuron is the square of the number of points.

    **Arguments:**

    - `exact`: the maximum total number of training and new points for exact tensors.
    - `tolerance`: neurons are added until the correction is known to this fraction of itself: the largest standard
      error over new points, of the mean or of the standard deviation, beside the largest correction to one of them,
      both in units of the standard deviation at infinite width.
    - `most`: the maximum number of neurons per layer (at least 16 per scramble are drawn).
    - `scrambles`: independent repetitions from which errors are estimated.
    - `seed`.
    - `dtype`: "float32" or "float64". Where training fits modes of the kernel a factor of 1e5 apart, float64 is always
      used.
    """

    regimes: ClassVar[tuple[str, ...]] = ("lazy", "nearly lazy")
    limit: ClassVar[str] = "infinite width and the correction of order 1/width"

    exact: int = eqx.field(static=True, default=12)
    tolerance: float = 0.1
    most: int = eqx.field(static=True, default=2**19)
    scrambles: int = eqx.field(static=True, default=16)
    seed: int = eqx.field(static=True, default=0)
    dtype: str = eqx.field(static=True, default="float32")

    def __check_init__(self):
        whole(self.exact, "exact", 0)
        check_settings(self)

    @classmethod
    def needs(cls) -> Needs:
        return Needs(layers="residual", activations="smooth", algorithms="plain", losses="squared")

    def forecast(self, problem: Problem, x_new: np.ndarray) -> FiniteForecast:
        net = problem.net
        assert net is not None
        y = problem.columns(net.layers.shape(net.in_shape)[-1])
        training = training_of(net, problem.x, y, problem.vector, x_new, self)
        return warned(FiniteForecast(training, problem.plain, self))

    def posterior(
        self,
        problem: AbstractKernel | AbstractNetwork,
        x: np.ndarray,
        y: np.ndarray,
        x_new: np.ndarray,
        noise: float,
        vector: bool,
    ) -> FinitePosterior:
        if self != FiniteWidth():
            raise ValueError(
                f"`theory={self!r}` has settings without effect on a posterior: use nk.FiniteWidth()."
            )
        net = chain_of(problem, "theory=nk.FiniteWidth()", "problem", mean_field=True).mlp()
        return finite_posterior(net, x, y, x_new, noise, vector)
