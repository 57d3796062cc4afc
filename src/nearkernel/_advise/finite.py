"""Trained networks of finite width on a few rows of the data: how far from infinite width, and which depth is best."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np

import nearkernel as nk

from .options import Inputs

_MOST_POINTS = 8
_AVERAGES = 2000  # of four inputs in one layer, all layers together: half a minute
LARGE = 0.25  # parts of the correction beyond which the next order may matter


@dataclasses.dataclass(frozen=True)
class FiniteWidth:
    """The correction of order 1/width to networks trained by gradient flow to the end, largest over the new rows."""

    tolerance: float
    train_rows: int
    new_rows: int
    mean_shift: float  # in deviations of infinitely wide networks
    variance_shift: float  # relative
    distance: float  # the larger of the two
    expansion: float  # the same with all contributions counted positive
    width_within: float  # of every hidden layer, for distance <= tolerance
    contributions: dict[str, dict[str, float]]
    losses: tuple[float, ...]  # expected, of a row left out, for 1 hidden layer and more, at this width
    losses_when_wide: tuple[float, ...]  # the same at infinite width
    best_depth: int

    @property
    def largest(self) -> str:
        """The cause with the largest share."""
        return max(self.contributions, key=lambda name: max(map(abs, self.contributions[name].values())))


def finite_width(net: nk.MLP, inputs: Inputs, scale: float, tolerance: float) -> FiniteWidth:
    """For smooth activations, with data."""
    assert inputs.rows is not None and inputs.targets is not None
    total = points_for(len(net.widths))
    chosen = inputs.spread_rows(total)
    new = 2 if len(chosen) >= 6 else 1
    x, x_new = scale * inputs.rows[chosen[new:]], scale * inputs.rows[chosen[:new]]
    target = inputs.targets[:, 0]
    with warnings.catch_warnings():  # said in words below
        warnings.simplefilter("ignore", UserWarning)
        found = nk.forecast(net, x, target[chosen[new:]], None, x_new, order=1)
    assert isinstance(found, nk.statistics.FiniteForecast)
    losses = nk.statistics.depth_losses(net, scale * inputs.rows[chosen], target[chosen])
    mean, var = found.terms[1] / np.sqrt(np.diagonal(found.cov_terms[0])), np.diagonal(found.cov_terms[1])
    worst = int(np.argmax(np.maximum(np.abs(mean), np.abs(var / np.diagonal(found.cov_terms[0])))))
    spread = float(found.cov_terms[0][worst, worst])
    return FiniteWidth(
        tolerance=tolerance,
        train_rows=len(x),
        new_rows=new,
        mean_shift=float(np.abs(mean).max()),
        variance_shift=float(np.abs(var / np.diagonal(found.cov_terms[0])).max()),
        distance=found.distance,
        expansion=found.expansion,
        width_within=found.width_within(tolerance),
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
