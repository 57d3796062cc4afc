"""A theory of trained networks: what is taken to infinity, to which order, and how accurately it is computed."""

import abc
import dataclasses
import math
from typing import Any, ClassVar, Generic, Literal, TypeVar

import equinox as eqx
import numpy as np

from .._base.check import shown
from .._base.keys import Key
from .._base.result import Result
from .._base.types import ArrayLike
from ..activations.closed import PiecewiseLinear
from ..dynamics.algorithms.losses import AbstractLoss
from ..dynamics.algorithms.sgd import SGD
from ..dynamics.algorithms.spectral import AbstractAlgorithm, GradientDescent, GradientFlow, SpectralAlgorithm
from ..kernels.base import AbstractKernel
from ..models.expansion.features import FeatureModel
from ..models.networks.chain import chain_of
from ..models.networks.network import AbstractNetwork
from ..models.networks.scaled import Scaled
from .outputs.forecast_base import AbstractForecast

P = TypeVar("P", bound=Result, covariant=True)
F = TypeVar("F", bound=AbstractForecast, covariant=True)
Model = AbstractNetwork | Scaled | FeatureModel | tuple[AbstractKernel, AbstractKernel]


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is trained on what, checked once.

    **Fields:** `model`, a network, an `nk.Scaled` of one, a pair of kernels or an `nk.FeatureModel`; `x` (n, d);
    `y` as it was given, which `columns` makes (n, out); `algorithm`; `loss`; `key`, or None.
    """

    model: Model
    x: np.ndarray
    y: ArrayLike
    algorithm: AbstractAlgorithm
    loss: AbstractLoss
    key: Key | None = None

    @property
    def net(self) -> AbstractNetwork | None:
        """The network, without its scale; None of kernels and features."""
        inner = self.model.model if isinstance(self.model, Scaled) else self.model
        return inner if isinstance(inner, AbstractNetwork) else None

    @property
    def kind(self) -> str:
        """What is trained, in words."""
        if self.net is None:
            return "features" if isinstance(self.model, FeatureModel) else "a pair of kernels"
        if self.net.mean_field:
            return 'a network with parametrization="mean_field"'
        return "an nk.Scaled of a network" if isinstance(self.model, Scaled) else "a network"

    @property
    def vector(self) -> bool:
        """Whether predictions have the shape (m,)."""
        return self.loss.is_vector(self.y)

    def columns(self, out: int | None) -> np.ndarray:
        """Targets (n, `out`)."""
        return np.asarray(self.loss.columns(self.y, len(self.x), out))

    @property
    def plain(self) -> GradientDescent | GradientFlow:
        """The algorithm, where it is gradient descent or flow."""
        chosen = self.spectral
        assert isinstance(chosen, GradientDescent | GradientFlow)
        return chosen

    @property
    def spectral(self) -> AbstractAlgorithm:
        """The algorithm, with SGD that draws nothing as a function of eigenvalues."""
        chosen = self.algorithm
        if isinstance(chosen, SGD) and not chosen.random and not _drifts(chosen):
            return chosen.spectral()
        return chosen


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a theory needs of a problem: each field is one sentence of an error, and one cell of a table.

    **Fields:** `models`, kinds of `Problem.kind`; `layers`, "any", "residual" (dense layers and activations in turn,
    also as branches of residual blocks) or "chain" (without these); `activations`, "any", "smooth" (continuous slopes)
    or "relu family"; `algorithms`, "solvable" (functions of eigenvalues, and SGD), "plain" (gradient descent without
    momentum, flow without friction) or "stepwise" (gradient descent, SGD and flow up to a finite time); `losses`, "any"
    or "squared".
    """

    models: tuple[str, ...] = ("a network",)
    layers: Literal["any", "residual", "chain"] = "any"
    activations: Literal["any", "smooth", "relu family"] = "any"
    algorithms: Literal["solvable", "plain", "stepwise"] = "solvable"
    losses: Literal["any", "squared"] = "any"

    def missing(self, problem: Problem, name: str) -> str | None:
        """The first need that `problem` does not meet, as "what is needed; got what came"; None if it meets all.

        Raises `TypeError` for a layer, with its place, that the theory `name` does not know.
        """
        if problem.kind not in self.models:
            return f"{' or '.join(self.models)}; got {problem.kind}"
        if self.losses == "squared" and not problem.loss.quadratic:
            return f"the loss 'squared'; got {problem.loss.label}"
        return self._algorithm(problem) or self._activations(problem, name)

    def _algorithm(self, problem: Problem) -> str | None:
        came = problem.spectral if self.algorithms != "stepwise" else problem.algorithm
        if self.algorithms == "stepwise":
            if not isinstance(came, GradientDescent | SGD | GradientFlow):
                return f"an `algorithm` with steps or a time (GradientDescent, SGD, GradientFlow); got {_name(came)}"
            name = "time" if isinstance(came, GradientFlow) else "steps"
            infinite = not isinstance(came, SGD) and math.isinf(came.end())
            return (
                f"finite `{name}`, since training is computed step by step; got {name}=inf"
                if infinite
                else None
            )
        if self.algorithms == "plain":
            flow = isinstance(came, GradientFlow) and came.friction is None
            descent = isinstance(came, GradientDescent) and not came.momentum
            needed = "an `algorithm` nk.GradientFlow() or nk.GradientDescent(lr) without inertia"
            return None if flow or descent else f"{needed}; got {came}"
        solvable = isinstance(came, SpectralAlgorithm) or (isinstance(came, SGD) and problem.loss.quadratic)
        if isinstance(came, SGD) and not problem.loss.quadratic:
            return f"the loss 'squared' for random batches, noise or decay to zero; got {problem.loss.label}"
        return (
            None
            if solvable
            else f"an `algorithm` that can be solved, e.g. nk.GradientFlow(); got {_name(came)}"
        )

    def _activations(self, problem: Problem, name: str) -> str | None:
        if self.layers == "any":
            return None
        assert problem.net is not None
        residual = self.layers == "residual"
        chain = chain_of(problem.net, f"theory={name}", residual=residual, mean_field=True)
        if chain.stages[-1].skip is not None:
            return "a residual network that ends in an Activation and a Dense layer; got one that ends in a block"
        used = chain.activations
        for each in used:
            if each.kinks and not isinstance(each, PiecewiseLinear) and self.activations != "any":
                places = ", ".join(f"{at:g}" for at in each.kinks)
                return (
                    "continuous slopes, or kinks of the relu family (for theory=nk.Kinks()); got an activation whose "
                    f"slope jumps at {places}"
                )
        smooth = all(each.smooth for each in used)
        if self.activations == "smooth" and not smooth:
            return (
                "smooth activations (with a kink the mean of trained networks moves as width^(-1/2), not as 1/width); "
                "got one with a kink"
            )
        if self.activations == "relu family" and smooth:
            return "an activation with a kink; got smooth ones"
        return None


class AbstractTheory(eqx.Module, Generic[F]):
    """A theory of trained networks: `nk.forecast(..., theory=...)`.

    A subclass declares the `regimes` of `nk.regime` where it holds and what it `needs` of a problem, in one place:
    errors, the table in the documentation and the advice of `nk.regime` follow from that. `forecast` computes.
    """

    regimes: ClassVar[tuple[str, ...]] = ("lazy",)
    limit: ClassVar[str] = ""  # what is taken to infinity, and to which order

    @classmethod
    @abc.abstractmethod
    def needs(cls) -> Needs:
        """What a problem must be like."""

    @abc.abstractmethod
    def forecast(self, problem: Problem, x_new: np.ndarray) -> F:
        """The law of trained outputs at `x_new` (m, d), for a `problem` that meets `needs()`."""

    def missing(self, problem: Problem) -> str | None:
        """The first need that `problem` does not meet, in words; None if it meets all."""
        return self.needs().missing(problem, f"nk.{type(self).__name__}()")

    def require(self, problem: Problem, advice: str = "") -> None:
        """Raise, with `advice`, unless `problem` meets all needs."""
        lack = self.missing(problem)
        if lack is not None:
            raise ValueError(f"`theory={self!r}` needs {lack}.{advice and f' {advice}'}")

    def fits(self, problem: Problem) -> bool:
        """Whether `problem` meets all needs."""
        try:
            return self.missing(problem) is None
        except (TypeError, ValueError):
            return False

    def __repr__(self) -> str:
        given = (
            f"{field.name}={value!r}"
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        )
        return f"nk.{type(self).__name__}({', '.join(given)})"


class AbstractBayesianTheory(AbstractTheory[F], Generic[F, P]):
    """A theory that also knows Bayesian networks: `nk.posterior(..., theory=...)`."""

    @abc.abstractmethod
    def posterior(
        self,
        problem: AbstractKernel | AbstractNetwork,
        x: np.ndarray,
        y: np.ndarray,
        x_new: np.ndarray,
        noise: float,
        vector: bool,
    ) -> P:
        """The posterior of a kernel or network `problem` at `x_new` (m, d), given targets `y` (n, out) at `x` (n, d).

        `noise` is the variance of the targets; with `vector`, the mean has the shape (m,).
        """


def _drifts(algorithm: SGD) -> bool:
    """Whether it pulls parameters to zero, which moves the outputs at initialization."""
    return bool(algorithm.weight_decay) and algorithm.decay_to == "zero"


def _name(algorithm: Any) -> str:
    return type(algorithm).__name__ if isinstance(algorithm, AbstractAlgorithm) else shown(algorithm)
