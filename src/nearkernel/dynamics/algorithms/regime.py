"""Which theory is to be trusted for a given network and its targets: kernel, expansion, or the rich limit."""

import math

import equinox as eqx
import numpy as np

from ..._base.check import numeric, positive, targets
from ..._base.result import Result
from ..._base.rooms import public_object
from ..._base.types import ArrayLike
from ...models.base import AbstractModel, require_model
from ...models.networks.chain import chain_or_none
from ...models.networks.richness import richness
from ...models.networks.scaled import Scaled

LAZY, RICH = 0.1, 0.3  # richness times targets: borders of the regimes, measured in the guide
SCATTER = 5.0  # richness times targets over `noise`: below, one network is nearer to its own kernel than to the limit
SMALL, LARGE = 0.02, 0.1  # the same of what the linear theory leaves out, relative to what it says

_MEANING = {
    "lazy": "its tangent kernel stays constant",
    "nearly lazy": "its tangent kernel changes a little",
    "rich": "it learns features",
}
_EXPANSIONS = {
    "lazy": ", or order 0 of nk.solve for one network",
    "nearly lazy": ", or order 2 of nk.solve for one network",
    "rich": "",
}


class RegimeResult(Result, eqx.Module):
    """Where a network lies between a kernel machine and feature learning.

    **Fields:** `name`, "lazy", "nearly lazy" or "rich"; `richness` from `nk.richness`, and `strength`, richness times
    the root mean square of the targets (both None for models of unknown richness); `width` of the last hidden layer;
    `aspect`, the sum of 1/width over hidden layers, the size of corrections of order 1/width; `correction`, as passed
    to `nk.regime`; `meaning`, a description of the regime; `theory`, the recommended one for `nk.forecast`, or None
    for models that no theory of all networks knows; `advice`, which function to use.
    """

    name: str = eqx.field(static=True)
    richness: float | None
    strength: float | None
    width: int = eqx.field(static=True)
    aspect: float
    correction: float | None = eqx.field(static=True)
    kinked: bool | None = eqx.field(static=True, default=None)

    @property
    def theory(self) -> object:
        if self.kinked is None:
            return None
        finite = "Kinks" if self.kinked else "FiniteWidth"
        return public_object(
            {"lazy": "InfiniteWidth", "nearly lazy": finite, "rich": "MeanField"}[self.name]
        )()

    @property
    def moved(self) -> float | None:
        """The approximate relative change of the tangent kernel in training, the square of `strength`."""
        return None if self.strength is None else self.strength**2

    @property
    def noise(self) -> float:
        """The distance of a single network's kernel from its infinite-width limit: the square root of `aspect`."""
        return math.sqrt(self.aspect)

    @property
    def narrow(self) -> bool:
        """Whether a single rich network is closer to its own tangent kernel than to the infinite-width limit."""
        return self.name == "rich" and self.strength is not None and self.strength < SCATTER * self.noise

    @property
    def meaning(self) -> str:
        return _MEANING[self.name]

    @property
    def advice(self) -> str:
        theory = "" if self.theory is None else f"nk.forecast with theory={self.theory!r}"
        solve = _EXPANSIONS[self.name]
        one = " for the average network, or order 0 of nk.solve for one network" if self.narrow else ""
        return (
            f"use {theory}{solve}{one}"
            if theory
            else f"use{solve.removeprefix(', or')}"
            if solve
            else "use nk.simulate"
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.meaning}; {self.advice}"


def regime(model: AbstractModel, y: ArrayLike, correction: float | None = None) -> RegimeResult:
    r"""Recommends a theory for `model` trained on targets `y` (n,) or (n, out).

    Kernels change by about the square of the strength, richness times targets. Below strength 0.1 the tangent kernel is
    accurate to one or two percent; up to 0.3 the expansions hold; above that the expansions diverge, and the rich limit
    applies. At any richness, single networks differ from infinite width by about $1/\sqrt{\text{width}}$, which only
    expansions around their initialization include: below $5/\sqrt{\text{width}}$, a rich network is `narrow`.

    **Arguments:**

    - `model`: a model whose `nk.richness` is known, or any model if `correction` is given.
    - `correction`: the relative size of what the linear theory neglects, if it is known: `correction` of a prediction
      of `nk.solve(..., order=1)`, or the last `check` of `nk.inspect`. Above 0.1 no expansion is trusted, and the
      network is rich at any richness. For models of unknown richness it alone decides: lazy below 0.02.
    """
    require_model(model)
    array = numeric(y, "y")
    columns = targets(array, len(array) if array.ndim else 1)
    inner = model.model if isinstance(model, Scaled) else model
    left_out = (
        None if correction is None else float(positive(correction, "correction", zero=True, finite=False))
    )
    chain = chain_or_none(inner)
    gamma = richness(model) if chain or left_out is None else None
    strength = None if gamma is None else gamma * float(np.sqrt(np.mean(np.sum(columns**2, axis=1))))
    if strength is None or (left_out is not None and left_out > LARGE):
        assert left_out is not None
        name = _between(left_out, SMALL, LARGE)
    else:
        name = _between(strength, LAZY, RICH)
    widths = chain.widths if chain else ()
    aspect = math.fsum(1 / width for width in widths)
    kinked = None if chain is None else not all(each.smooth for each in chain.activations)
    return RegimeResult(name, gamma, strength, widths[-1] if widths else 0, aspect, left_out, kinked)


def regime_of(model: AbstractModel | None, y: np.ndarray) -> RegimeResult | None:
    """The regime of a network that is trained on `y` (n, out); None where its richness is not known."""
    if model is None or chain_or_none(model.model if isinstance(model, Scaled) else model) is None:
        return None
    return regime(model, y)


def _between(value: float, first: float, second: float) -> str:
    if value < first:
        return "lazy"
    return "nearly lazy" if value < second else "rich"
