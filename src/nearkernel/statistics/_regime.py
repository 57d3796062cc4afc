"""Which theory is to be trusted for a given network and its targets: kernel, expansion, or the rich limit."""

from typing import Any

import equinox as eqx
import numpy as np

from .._check import numeric, positive, targets
from .._result import Result
from ..models import MLP, AbstractModel, Scaled, richness

LAZY, RICH = 0.1, 0.3  # richness times targets: borders of the regimes, measured in the guide
SMALL = 0.1  # corrections that an expansion can be trusted with


class RegimeResult(Result, eqx.Module):
    """Where a network lies between a kernel machine and feature learning.

    **Fields:** `name`, "lazy", "nearly lazy" or "rich"; `richness` from `nk.richness`; `strength`, richness times the
    root mean square of the targets, which decides; `width` of the last hidden layer; `noise`, 1/sqrt(width), the
    variation between networks of this width; `advice`, which function to use.
    """

    name: str = eqx.field(static=True)
    richness: float
    strength: float
    width: int = eqx.field(static=True)
    advice: str = eqx.field(static=True)

    @property
    def noise(self) -> float:
        return float(1.0 / np.sqrt(self.width)) if self.width else 0.0

    def __str__(self) -> str:
        return f"{self.name}: {self.advice}"


def regime(model: AbstractModel, y: Any, correction: float | None = None) -> RegimeResult:
    """Recommends a theory for `model`, an `nk.MLP` or an `nk.Scaled` of one, trained on `y` (n,) or (n, out).

    Kernels change by the square of richness times targets. Below 0.1 the tangent kernel is accurate to one or two
    percent; up to 0.3 the expansions hold; above that the expansions diverge, and the rich limit applies.

    **Arguments:** `model`; `y`; `correction`, |z^I| / |z^F| of `nk.solve(..., order=1)` if it is known: above 0.1 no
    expansion is trusted.
    """
    gamma = richness(model)
    array = numeric(y, "y")
    columns = targets(array, len(array) if array.ndim else 1)
    strength = gamma * float(np.sqrt(np.mean(np.sum(columns**2, axis=1))))
    large = correction is not None and positive(correction, "correction", zero=True) > SMALL
    inner = model.model if isinstance(model, Scaled) else model
    assert isinstance(inner, MLP)
    width = inner.widths[-1] if inner.widths else 0
    if strength < LAZY and not large:
        return RegimeResult(
            "lazy",
            gamma,
            strength,
            width,
            "its tangent kernel stays constant, use nk.forecast in NTK scaling",
        )
    if strength < RICH and not large:
        how = "order=1 of nk.solve(nk.expand(...)) for one network, of nk.forecast for all"
        return RegimeResult("nearly lazy", gamma, strength, width, f"its kernel changes a little, use {how}")
    how = 'nk.forecast of nk.Scaled(net, 1/richness) with parametrization="mean_field"'
    return RegimeResult(
        "rich", gamma, strength, width, f"it learns features, use {how}, richness {gamma:.3g}"
    )
