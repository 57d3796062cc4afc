"""Phase diagrams: how gradients grow, over the variances of weights and biases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .axes import given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection, QuadMesh


def draw_phases(
    weight_vars: np.ndarray,
    bias_vars: np.ndarray,
    chi: np.ndarray,
    line: np.ndarray | None,
    axes: Axes | None,
) -> Axes:
    """`chi` (weights, biases) by color, blue where gradients vanish and red where they explode; the critical line."""
    axes = given_or_new(axes)
    shown = np.clip(np.log2(np.where(chi > 0, chi, np.nan)), -2, 2)
    mesh: QuadMesh | PathCollection
    if len(weight_vars) > 1 and len(bias_vars) > 1:
        mesh = axes.pcolormesh(
            weight_vars,
            bias_vars,
            shown.T,
            cmap="RdBu_r",
            vmin=-2,
            vmax=2,
            shading="nearest",
            rasterized=True,
        )
    else:
        weights, biases = np.meshgrid(weight_vars, bias_vars, indexing="ij")
        mesh = axes.scatter(
            weights.ravel(),
            biases.ravel(),
            c=shown.ravel(),
            cmap="RdBu_r",
            vmin=-2,
            vmax=2,
            edgecolors="black",
        )
    bar = axes.figure.colorbar(mesh, ax=axes, ticks=[-2, -1, 0, 1, 2])
    bar.ax.set_yticklabels(["1/4", "1/2", "1", "2", "4"])
    bar.set_label("growth of squared gradients per layer")
    if line is not None and len(line):
        axes.plot(line[:, 0], line[:, 1], color="black", linewidth=1.5, label="critical")
        axes.legend()
    axes.set(
        xlabel="weight_var",
        ylabel="bias_var",
        xlim=_range(weight_vars),
        ylim=_range(bias_vars),
    )
    axes.grid(False)
    return axes


def _range(values: np.ndarray) -> tuple[float, float] | None:
    return (float(values.min()), float(values.max())) if len(values) > 1 else None
