"""What the figures of claims share: colours, and theory as a line with measurements on it."""

import io
from typing import Any

import numpy as np

from ._claim import Claim, Result

BLUE, ORANGE, GREEN, PURPLE, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#56B4E9", "#6B7280"
_STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E7EB",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "nearkernel",
}


def pair(
    axes: Any, x: Any, theory: Any, measured: Any, sem: Any = None, *, label: str = "", colour: str = BLUE
) -> None:
    """Theory as a line, measurements as points with error bars."""
    extra = f", {label}" if label else ""
    order = np.argsort(x)
    axes.plot(np.asarray(x)[order], np.asarray(theory)[order], color=colour, lw=1.4, label=f"theory{extra}")
    style = {"fmt": "o", "ms": 4.5, "mfc": "white", "capsize": 2, "color": colour}
    axes.errorbar(x, measured, sem, label=f"measured{extra}", **style)


def loglog(axes: Any) -> None:
    axes.set(xscale="log", yscale="log")


def picture(claim: Claim, result: Result) -> tuple[bytes, str]:
    """The figure as PNG and as SVG; the same result gives the same bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(5.6, 3.6), layout="constrained")
        axes = figure.subplots()
        claim.draw(axes, result)
        axes.set_title(f"{claim.name()}: {result.verdict}", loc="left", fontsize=10)
        axes.tick_params(which="minor", labelsize=7)  # logarithmic axes of less than a decade label these too
        if axes.get_legend_handles_labels()[1]:
            axes.legend()
        png, svg = io.BytesIO(), io.StringIO()
        figure.savefig(png, format="png", dpi=130)
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return png.getvalue(), svg.getvalue()
