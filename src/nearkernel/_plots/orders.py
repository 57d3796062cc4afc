"""Outputs order by order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .axes import given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_orders(terms: tuple[np.ndarray, ...], axes: Axes | None) -> Axes:
    """The sum of the terms up to each order, at every point; of the first output if there are several."""
    axes = given_or_new(axes)
    columns = [term.reshape(len(term), -1)[:, 0] for term in terms]
    points = np.arange(len(columns[0]))
    for order, total in enumerate(np.cumsum(columns, axis=0)):
        label = "linear" if order == 0 else f"with order {order}"
        axes.plot(points, total, "o-" if order == 0 else ".--", markersize=4, linewidth=1, label=label)
    axes.set(xlabel="point", ylabel="output")
    if len(terms) > 1:
        axes.legend()
    return axes
