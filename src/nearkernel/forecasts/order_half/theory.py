r"""Networks with kinked activations, to order $\text{width}^{-1/2}$."""

from typing import ClassVar

import equinox as eqx
import numpy as np

from ...models.networks.chain import chain_of
from ..neuron_sampling import check_settings
from ..theory import AbstractTheory, Needs, Problem
from .forecast import KinkForecast, warned
from .kink_crossings import Crossings


class Kinks(AbstractTheory[KinkForecast]):
    r"""Networks of finite width with activations of the relu family, to order $\text{width}^{-1/2}$.

    Neurons that cross their kink in training change the outputs by more than the 1/width of smooth activations. What
    they add is an average over sampled neurons.

    **Arguments:** `tolerance`, `most`, `scrambles`, `seed`, `dtype`, same as `nk.FiniteWidth`.
    """

    regimes: ClassVar[tuple[str, ...]] = ("lazy", "nearly lazy")
    limit: ClassVar[str] = "infinite width and the correction of order 1/sqrt(width)"

    tolerance: float = 0.1
    most: int = eqx.field(static=True, default=2**19)
    scrambles: int = eqx.field(static=True, default=16)
    seed: int = eqx.field(static=True, default=0)
    dtype: str = eqx.field(static=True, default="float32")

    def __check_init__(self):
        check_settings(self)

    @classmethod
    def needs(cls) -> Needs:
        return Needs(layers="chain", activations="relu family", algorithms="plain", losses="squared")

    def forecast(self, problem: Problem, x_new: np.ndarray) -> KinkForecast:
        assert problem.net is not None
        net = chain_of(problem.net, "theory=nk.Kinks()").mlp()
        crossings = Crossings(net, problem.x, problem.columns(net.out_dim), problem.vector, x_new, self)
        return warned(KinkForecast(crossings, problem.plain))
