"""The interface of all forecasts: outputs of trained networks, their regime, other times and other inputs."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import numpy as np

from ..._base.status import Status
from ..._base.types import ArrayLike
from ...dynamics.algorithms.regime import RegimeResult, regime_of
from ...dynamics.algorithms.spectral import AbstractAlgorithm
from ...models.base import AbstractModel
from .law import OutputLaw

if TYPE_CHECKING:
    from ..theory import AbstractTheory


class AbstractForecast(OutputLaw):
    """Outputs of trained networks over their initializations, by a `theory`.

    **Fields:** those of every distribution of outputs; `theory`; `algorithm`; `status`, an `nk.Status`, and its `ok`;
    `regime`, the result of `nk.regime` if the richness of the networks is known, else None.
    """

    theory: AbstractTheory
    algorithm: AbstractAlgorithm
    status: Status

    @abc.abstractmethod
    def at(self, time: float) -> Self:
        """The same networks at another `time` (steps for gradient descent)."""

    @abc.abstractmethod
    def predict(self, x_new: ArrayLike) -> Self:
        """The same networks at other inputs `x_new`."""

    @abc.abstractmethod
    def _trained(self) -> tuple[AbstractModel | None, np.ndarray]:
        """The network, if there is one, and its targets (n, out)."""

    @property
    def ok(self) -> bool:
        return self.status.ok

    @property
    def regime(self) -> RegimeResult | None:
        return regime_of(*self._trained())

    def _shown(self) -> Mapping[str, object]:
        return {**super()._shown(), **self._said()}

    def _said(self) -> Mapping[str, object]:
        """The regime in a word, or with advice where another theory is to be trusted."""
        found = self.regime
        if found is None:
            return {}
        return {"regime": found.name if found.name in self.theory.regimes else str(found)}
