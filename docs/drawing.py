"""What all figures share: colors, style, a row of panels, and the list that they are in."""

from collections.abc import Callable

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

BLUE, ORANGE, GREEN, PURPLE, SKY, GRAY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#56B4E9", "#6B7280"
STYLE = {
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E7EB",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.8,
    "figure.dpi": 130,
}

FIGURES: dict[str, Callable[[], plt.Figure]] = {}


def figure(draw: Callable[[], plt.Figure]) -> Callable[[], plt.Figure]:
    """Registers a function under its own name."""
    FIGURES[draw.__name__] = draw
    return draw


def axes_row(count: int, height: float = 3.4, **options):
    """One row of panels, as wide as a page."""
    drawn, axes = plt.subplots(1, count, figsize=(8.6, height), layout="constrained", **options)
    return drawn, np.atleast_1d(axes)
