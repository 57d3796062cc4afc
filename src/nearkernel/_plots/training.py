"""Training: losses over time, outputs over targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .axes import given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_loss(
    times: np.ndarray,
    losses: np.ndarray,
    axes: Axes | None,
    *,
    name: str = "step",
    label: str | None = None,
    line: str = "-",
) -> Axes:
    """A loss over time, both logarithmic where that can be."""
    axes = given_or_new(axes)
    axes.plot(times, losses, line, label=label)
    seen = losses[np.isfinite(losses)]
    axes.set(
        xlabel=name,
        ylabel="loss on the training set",
        xscale="log" if len(times) and times.min() > 0 else "linear",
        yscale="log" if len(seen) and seen.min() > 0 else "linear",
    )
    return axes


def draw_fit(y: np.ndarray, outputs: np.ndarray, axes: Axes | None, *, what: str = "output") -> Axes:
    """Outputs over targets, with the line on which they agree; one color per output."""
    axes = given_or_new(axes)
    y, outputs = (part.reshape(len(part), -1) for part in (y, outputs))
    for i, (target, output) in enumerate(zip(y.T, outputs.T, strict=True)):
        axes.plot(target, output, "o", markersize=4, alpha=0.7, label=f"output {i}")
    ends = [min(y.min(), outputs.min()), max(y.max(), outputs.max())]
    axes.plot(ends, ends, "--", color="0.5", linewidth=1, zorder=0)
    axes.set(xlabel="target", ylabel=what)
    if y.shape[1] > 1:
        axes.legend()
    return axes
