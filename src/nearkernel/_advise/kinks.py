"""Trained networks with a kink, of finite width, on some rows of the data: how far from infinite width."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np

import nearkernel as nk

from .options import Inputs

_MOST_ROWS, _NEW = 20, 4


@dataclasses.dataclass(frozen=True)
class KinkWidth:
    """The correction of order width^(-1/2) to networks trained by gradient flow to the end, largest over new rows."""

    tolerance: float
    train_rows: int
    new_rows: int
    mean_shift: float  # in deviations of infinitely wide networks
    variance_shift: float  # relative
    distance: float  # the larger of the two
    error: float  # the largest standard error of the two, from sampled neurons
    movement: float  # of preactivations in training, in their deviations
    far: bool  # whether the next order may not be small
    width_within: float  # of every hidden layer, for distance <= tolerance


def kink_width(net: nk.MLP, inputs: Inputs, scale: float, tolerance: float) -> KinkWidth:
    """For the relu family, with data."""
    assert inputs.rows is not None and inputs.targets is not None
    chosen = inputs.spread_rows(_MOST_ROWS)
    new = max(1, min(_NEW, len(chosen) // 3))
    x, x_new = scale * inputs.rows[chosen[new:]], scale * inputs.rows[chosen[:new]]
    with warnings.catch_warnings():  # said in words below
        warnings.simplefilter("ignore", UserWarning)
        found = nk.forecast(net, x, inputs.targets[chosen[new:], 0], None, x_new, order=0.5)
    assert isinstance(found, nk.statistics.KinkForecast)
    wide = np.diagonal(found.cov_terms[0])
    relative = lambda mean, cov: (np.abs(mean) / np.sqrt(wide), np.abs(np.diagonal(cov)) / wide)
    shifts = relative(found.terms[1], found.cov_terms[1])
    return KinkWidth(
        tolerance=tolerance,
        train_rows=len(x),
        new_rows=new,
        mean_shift=float(shifts[0].max()),
        variance_shift=float(shifts[1].max()),
        distance=found.distance,
        error=float(np.max(relative(found.error.mean, found.error.cov))),
        movement=found.movement,
        far=found.far,
        width_within=found.width_within(tolerance),
    )
