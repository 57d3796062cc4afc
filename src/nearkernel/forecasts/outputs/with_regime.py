"""Forecasts of trained networks report the regime that these networks are in."""

import abc
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from ..._base.result import Result
from ...dynamics.algorithms.regime import RegimeResult, regime_of
from ...models.base import AbstractModel


class OfNetworks(Result, abc.ABC):
    """A distribution of network outputs, from a theory that is `made_for` some regimes.

    **Fields:** `regime`, the result of `nk.regime` if the richness of the networks is known, else None.
    """

    made_for: ClassVar[tuple[str, ...]] = ("lazy",)

    @abc.abstractmethod
    def _trained(self) -> tuple[AbstractModel | None, np.ndarray]:
        """The network, if there is one, and its targets (n, out)."""

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
        return {"regime": found.name if found.name in self.made_for else str(found)}
