"""Laws of outputs: a mean and a band of two standard deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .axes import given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_band(
    mean: np.ndarray,
    std: np.ndarray,
    axes: Axes | None,
    *,
    x: np.ndarray | None = None,
    data: tuple[np.ndarray, np.ndarray] | None = None,
) -> Axes:
    """Mean and 2 standard deviations over a single input, with the training points; else point by point.

    **Arguments:** `mean` (m,) or (m, out); `std`, of the same shape or (m,); `x` (m, d), the inputs; `data`, those of
    training and their targets.
    """
    axes = given_or_new(axes)
    mean = mean.reshape(len(mean), -1)
    std = np.broadcast_to(std.reshape(len(mean), -1), mean.shape)
    over_line = x is not None and x[0].size == 1
    place = x.reshape(-1) if x is not None and over_line else np.arange(len(mean), dtype=float)
    order = np.argsort(place, kind="stable")
    for i in range(mean.shape[1]):
        label = "mean and 2 standard deviations" if mean.shape[1] == 1 else f"output {i}"
        if over_line:
            middle, half = mean[order, i], 2 * std[order, i]
            (line,) = axes.plot(place[order], middle, label=label)
            axes.fill_between(
                place[order], middle - half, middle + half, color=line.get_color(), alpha=0.2, linewidth=0
            )
        else:
            shift = 0.15 * i
            axes.errorbar(place + shift, mean[:, i], 2 * std[:, i], fmt="o", markersize=4, label=label)
    if over_line and data is not None:
        y = data[1].reshape(len(data[1]), -1)
        axes.plot(
            data[0].reshape(-1),
            y,
            "o",
            color="black",
            markersize=4,
            label=["training", *[""] * (y.shape[1] - 1)],
        )
    axes.set(xlabel="input" if over_line else "point", ylabel="trained output")
    axes.legend()
    return axes
