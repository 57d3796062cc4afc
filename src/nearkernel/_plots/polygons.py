"""Linear regions in a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._base.extra import needing
from .axes import given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_polygons(
    vertices: Sequence[np.ndarray], labels: np.ndarray, box: np.ndarray, axes: Axes | None
) -> Axes:
    """Each polygon in a color of its linear region."""
    axes = given_or_new(axes)
    with needing("plot()"):
        from matplotlib.collections import PolyCollection

    colors = (labels * 0.6180339887) % 1.0  # neighbours in number are far apart in color
    drawn = PolyCollection(
        list(vertices), array=colors, cmap="twilight", edgecolors="white", linewidths=0.3, alpha=0.8
    )
    axes.add_collection(drawn)
    axes.set(xlim=tuple(box[0]), ylim=tuple(box[1]), xlabel="u1", ylabel="u2", aspect="equal")
    axes.grid(False)
    return axes
