"""Trained networks of finite width on a few rows of the data: how far from infinite width, and which depth is best.

Of smooth activations to order 1/width, of activations with a kink to order width^(-1/2).
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np

import nearkernel as nk

from .inputs import Inputs

_MOST_POINTS = 8
_AVERAGES = 2000  # of four inputs in one layer, all layers together: half a minute
_KINK_ROWS, _KINK_NEW = 20, 4
LARGE = 0.25  # parts of the correction beyond which the next order may matter


@dataclasses.dataclass(frozen=True)
class FiniteWidth:
    """The first correction to networks trained by gradient flow to the end, largest over the new rows."""

    tolerance: float
    train_rows: int
    new_rows: int
    mean_shift: float  # in deviations of infinitely wide networks
    variance_shift: float  # relative
    distance: float  # the larger of the two
    width_within: float  # of every hidden layer, for distance <= tolerance


@dataclasses.dataclass(frozen=True)
class SmoothWidth(FiniteWidth):
    """The correction of order 1/width."""

    expansion: float  # the distance with all contributions counted positive
    contributions: dict[str, dict[str, float]]
    losses: tuple[float, ...]  # expected, of a row left out, for 1 hidden layer and more, at this width
    losses_when_wide: tuple[float, ...]  # the same at infinite width
    best_depth: int

    @property
    def largest(self) -> str:
        """The cause with the largest share."""
        return max(self.contributions, key=lambda name: max(map(abs, self.contributions[name].values())))


@dataclasses.dataclass(frozen=True)
class KinkWidth(FiniteWidth):
    """The correction of order width^(-1/2)."""

    error: float  # the largest standard error of both shifts, from sampled neurons
    movement: float  # of preactivations in training, in their deviations
    far: bool  # whether the next order may not be small


def finite_width(
    net: nk.MLP, inputs: Inputs, scale: float, tolerance: float, kinked: bool
) -> SmoothWidth | KinkWidth:
    """For smooth activations and the relu family, with data."""
    assert inputs.rows is not None and inputs.targets is not None
    chosen = inputs.spread_rows(_KINK_ROWS if kinked else points_for(len(net.widths)))
    new = max(1, min(_KINK_NEW, len(chosen) // 3)) if kinked else 2 if len(chosen) >= 6 else 1
    x, y = scale * inputs.rows[chosen], inputs.targets[chosen, 0]
    with warnings.catch_warnings():  # said in words below
        warnings.simplefilter("ignore", UserWarning)
        theory = nk.Kinks() if kinked else nk.FiniteWidth()
        found: Any = nk.forecast(net, x[new:], y[new:], None, x[:new], theory=theory)
    wide = np.diagonal(found.cov_terms[0])
    relative = lambda mean, cov: np.abs([mean / np.sqrt(wide), np.diagonal(cov) / wide])
    shifts = relative(found.terms[1], found.cov_terms[1])
    mean_shift, variance_shift = shifts.max(axis=1).tolist()
    distance = (mean_shift, variance_shift, found.distance, found.width_within(tolerance))
    common = (tolerance, len(x) - new, new, *distance)
    if kinked:
        error = float(relative(found.error.mean, found.error.cov).max())
        return KinkWidth(*common, error, found.movement, found.far)
    losses = nk.theory.depth_losses(net, x, y)
    worst = int(shifts.max(axis=0).argmax())
    spread = float(wide[worst])
    return SmoothWidth(
        *common,
        expansion=found.expansion,
        contributions={
            name: {
                "mean": float(part.mean[worst]) / math.sqrt(spread),
                "variance": float(part.cov[worst, worst]) / spread,
            }
            for name, part in found.contributions.items()
        },
        losses=tuple(losses.at(net.widths[0]).tolist()),
        losses_when_wide=tuple(losses.at(math.inf).tolist()),
        best_depth=losses.best(net.widths[0]),
    )


def points_for(depth: int) -> int:
    """Training and new rows for which averages over four inputs stay affordable."""
    points = 3
    while points < _MOST_POINTS and math.comb(points + 4, 4) * depth <= _AVERAGES:
        points += 1
    return points
