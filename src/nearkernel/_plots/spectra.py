"""Eigenvalues: in order, as a histogram, and beside a law."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .axes import given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_eigenvalues(values: np.ndarray, axes: Axes | None, *, log: bool = False) -> Axes:
    """Eigenvalues over their number, the first being 1."""
    axes = given_or_new(axes)
    axes.plot(np.arange(1, len(values) + 1), values, "o-", markersize=4, linewidth=1)
    axes.set(xlabel="number", ylabel="eigenvalue")
    if log and len(values) and values.min() > 0:
        axes.set(xscale="log", yscale="log")
    return axes


def draw_density(
    density: Callable[[np.ndarray], np.ndarray],
    edges: tuple[float, float],
    axes: Axes | None,
    *,
    eigenvalues: np.ndarray | None = None,
    outliers: np.ndarray | None = None,
    log: bool = False,
) -> Axes:
    """A density between `edges`, over the histogram of `eigenvalues`; `outliers` as marks on the axis."""
    axes = given_or_new(axes)
    if eigenvalues is not None:
        axes.hist(
            eigenvalues,
            bins=min(60, max(10, len(eigenvalues) // 10)),
            density=True,
            alpha=0.4,
            label=f"{len(eigenvalues)} eigenvalues",
        )
    margin = 0.05 * (edges[1] - edges[0])
    grid = np.linspace(edges[0] - margin, edges[1] + margin, 600)
    axes.plot(grid, density(grid), label="density")
    if outliers is not None and len(outliers):
        axes.plot(
            outliers, np.full(len(outliers), 0.02), "|", transform=axes.get_xaxis_transform(), markersize=10,
            color="black", label="outliers",
        )  # fmt: skip
    axes.set(xlabel="eigenvalue", ylabel="density")
    if log:
        axes.set(yscale="log", ylim=(max(density(grid).max(), 1e-12) * 1e-6, None))
    axes.legend()
    return axes
