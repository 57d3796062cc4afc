"""The limit of wide networks that learn features."""

import math
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from ..._base.check import one_of, positive, refuse_unused, whole
from ..._base.keys import Key
from ...dynamics.algorithms.losses import require_loss
from ...dynamics.algorithms.sgd import SGD
from ...dynamics.algorithms.spectral import GradientFlow
from ...dynamics.simulation.simulate import require_batches
from ...models.networks.chain import chain_or_none
from ...models.networks.mlp import MLP
from ...models.networks.network import AbstractNetwork
from ...models.networks.scaled import Scaled
from ..theory import AbstractTheory, Needs
from ..theory import Problem as Posed
from .forecast import RichForecast
from .limit import limit_of
from .problem import Problem


class MeanField(AbstractTheory[RichForecast]):
    r"""The limit of infinitely wide networks at fixed richness, in which features are learned at any width.

    It takes the same network and the same algorithm as the other theories. A network with parametrization "mean_field"
    has richness 1. Any other chain of width $N$ (of its last hidden layer) equals $\sqrt N$ times such a network, and
    is taken at its own richness $1/\sqrt N$; an `nk.Scaled` divides the richness by its `alpha`. In the limit all
    outputs are zero before training, and the same for all initializations afterwards. Training uses the network's
    `lr_factors()`; `loss` is the same as in `nk.simulate`.

    A cloud of weighted neurons on scrambled Sobol points represents each layer.

    **Arguments:** `neurons` per layer, a power of 2: by default 16384 for one hidden layer, 4096 for more;
    `scrambles`, independent repetitions, at least 2, from which `error` is estimated; `tol`, the fraction of a field
    that may remain unresolved between two hidden layers: by default 0.01, or 0.05 for activations with kinks; `look`,
    steps between two searches for new directions; `every`, steps between two stored predictions at new inputs;
    `dtype` of the clouds, "float64" or "float32"; `seed`; `watch`, a function `watch(share, left)` called with the
    finished fraction of the work and the remaining seconds.

    Doubling `neurons` doubles time and memory and divides the error by 1.4 to 2; the gain is larger for few inputs of
    low dimension.
    """

    regimes: ClassVar[tuple[str, ...]] = ("lazy", "nearly lazy", "rich")
    limit: ClassVar[str] = "infinite width at fixed richness"

    neurons: int | None = eqx.field(static=True, default=None)
    scrambles: int = eqx.field(static=True, default=8)
    tol: float | None = None
    look: int = eqx.field(static=True, default=1)
    every: int = eqx.field(static=True, default=1)
    dtype: str = eqx.field(static=True, default="float64")
    seed: int = eqx.field(static=True, default=0)
    watch: Any = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.neurons is not None and whole(self.neurons, "neurons", 64).bit_count() != 1:
            raise ValueError(f"`neurons` must be a power of 2, e.g. 4096; got {self.neurons}.")
        whole(self.scrambles, "scrambles", 2)
        if self.tol is not None and positive(self.tol, "tol") >= 0.5:
            raise ValueError(f"`tol` must be below 0.5; got {self.tol}.")
        whole(self.look, "look", 1)
        whole(self.every, "every", 1)
        whole(self.seed, "seed", 0)
        one_of(self.dtype, "dtype", ("float64", "float32"))
        if self.watch is not None and not callable(self.watch):
            raise TypeError(f"`watch` must be a function of (share, left); got {self.watch!r}.")

    @classmethod
    def needs(cls) -> Needs:
        models = ("a network", 'a network with parametrization="mean_field"', "an nk.Scaled of a network")
        return Needs(models=models, layers="chain", algorithms="stepwise")

    def forecast(self, problem: Posed, x_new: np.ndarray) -> RichForecast:
        scaled = problem.model if isinstance(problem.model, Scaled) else None
        alpha, centered = (1.0, False) if scaled is None else (float(scaled.alpha), scaled.centered)
        net, own = _mean_field(problem.net)
        if net.dense(len(net.widths)).bias_var > 0 and not centered:
            raise ValueError(
                "`problem` has a random output bias at initialization: use nk.Scaled(net, alpha), which is centered, "
                "or `bias_var=0` in the last layer."
            )
        key = _batch_key(net, problem)
        y = problem.columns(net.out_dim)
        require_loss(problem.loss, lambda: np.zeros_like(y), y)  # outputs are 0 before training
        posed = Problem(
            net,
            alpha * own,
            centered,
            (problem.x, y, x_new),
            problem.algorithm,
            (problem.loss, key),
            self,
            alpha**2,
        )
        return RichForecast(posed, limit_of(posed), posed.end, problem.vector)


def _mean_field(net: AbstractNetwork | None) -> tuple[MLP, float]:
    """A network with parametrization "mean_field", and how many times it `net` is."""
    chain = chain_or_none(net)
    # Rates of maximal updates differ from layer to layer.
    if chain is None or not chain.widths or chain.net.maximal or len(chain.net.in_shape) > 1:
        raise TypeError(
            "`problem` must be an nk.MLP, or Dense and Activation in turn, with a hidden layer, or an nk.Scaled of "
            f"one; got {type(net).__name__}."
        )
    if chain.net.mean_field:
        return chain.mlp(), 1.0
    wide = MLP(
        chain.in_dim,
        chain.widths,
        chain.out_dim,
        chain.activations,
        weight_var=[stage.weight_var for stage in chain.stages],
        bias_var=[stage.bias_var for stage in chain.stages],
        parametrization="mean_field",
    )
    return wide, math.sqrt(chain.widths[-1])


def _batch_key(net: MLP, problem: Posed) -> Key | None:
    """The key of the batches, if there are any; refuses training that the limit is not known for."""
    algorithm = problem.algorithm
    if isinstance(algorithm, GradientFlow) and algorithm.friction is not None:
        raise ValueError(
            f"`friction` must be None for networks that learn features; got {algorithm.friction}."
        )
    if isinstance(algorithm, SGD) and algorithm.weight_decay and net.dense(len(net.widths)).bias_var > 0:
        raise ValueError(
            "`weight_decay` decays the output bias, which is random at initialization: use `bias_var=0` in the last "
            "layer."
        )
    if isinstance(algorithm, SGD) and (
        algorithm.noise
        or algorithm.batches != "fixed"
        or (algorithm.weight_decay and algorithm.decay_to == "start")
    ):
        raise ValueError(
            '`algorithm` for networks that learn features must be an SGD without `noise`, with batches="fixed" and '
            'decay_to="zero".'
        )
    if not (isinstance(algorithm, SGD) and algorithm.random):
        refuse_unused("if `algorithm` draws nothing", key=problem.key)
    return require_batches(algorithm, problem.key, len(problem.x)) if isinstance(algorithm, SGD) else None
