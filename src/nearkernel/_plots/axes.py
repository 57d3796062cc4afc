"""Axes to draw on: the caller's, or new ones in the style of this library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.extra import needing
from .._look.drawing import SERIES, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def given_or_new(axes: Axes | None) -> Axes:
    """`axes`, or those of a new figure of Matplotlib's pyplot."""
    if axes is not None:
        if not hasattr(axes, "plot"):
            raise TypeError(f"`axes` must be Matplotlib axes, e.g. plt.gca(); got {type(axes).__name__}.")
        return axes
    with needing("plot()"):
        import matplotlib.pyplot as plt
        from cycler import cycler

    with plt.rc_context({**STYLE, "axes.prop_cycle": cycler(color=SERIES)}):
        return plt.figure(figsize=(5.2, 3.6), layout="constrained").subplots()
