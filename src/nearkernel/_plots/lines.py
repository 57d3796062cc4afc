"""Curves with error bars: widths, layers, sizes, budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .axes import given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_lines(
    x: np.ndarray,
    columns: np.ndarray,
    axes: Axes | None,
    *,
    errors: np.ndarray | None = None,
    labels: Sequence[str] = (),
    xlabel: str,
    ylabel: str,
    log: str = "",
) -> Axes:
    """One line per column of `columns` (len(x), k), with bars of `errors`; `log` names logarithmic axes, "x", "xy"."""
    axes = given_or_new(axes)
    columns = columns.reshape(len(x), -1)
    bars = None if errors is None else errors.reshape(columns.shape)
    for i, column in enumerate(columns.T):
        label = labels[i] if i < len(labels) else None
        axes.errorbar(x, column, None if bars is None else bars[:, i], fmt=".-", markersize=5, label=label)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log and (columns[np.isfinite(columns)] > 0).all():
        axes.set_yscale("log")
    if labels:
        axes.legend()
    return axes
