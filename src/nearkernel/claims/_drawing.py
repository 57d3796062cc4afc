"""What the figures of claims share: theory as a line with measurements on it, and the frame around both."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._look.drawing import BLUE as BLUE
from .._look.drawing import GRAY as GRAY
from .._look.drawing import GREEN as GREEN
from .._look.drawing import ORANGE as ORANGE
from .._look.drawing import PURPLE as PURPLE
from .._look.drawing import SKY as SKY
from .._look.drawing import png_and_svg
from ._claim import Claim, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pair(
    axes: Any, x: Any, theory: Any, measured: Any, sem: Any = None, *, label: str = "", color: str = BLUE
) -> None:
    """Theory as a line, measurements as points with error bars."""
    extra = f", {label}" if label else ""
    order = np.argsort(x)
    axes.plot(np.asarray(x)[order], np.asarray(theory)[order], color=color, lw=1.4, label=f"theory{extra}")
    style = {"fmt": "o", "ms": 4.5, "mfc": "white", "capsize": 2, "color": color}
    axes.errorbar(x, measured, sem, label=f"measured{extra}", **style)


def loglog(axes: Any) -> None:
    axes.set(xscale="log", yscale="log")


def picture(claim: Claim, result: Result) -> tuple[bytes, str]:
    """The figure as PNG and as SVG; the same result gives the same bytes."""
    return png_and_svg((5.6, 3.6), _paint, claim, result)


def _paint(figure: "Figure", claim: Claim, result: Result) -> None:
    axes = figure.subplots()
    claim.draw(axes, result)
    axes.set_title(f"{claim.name()}: {result.verdict}", fontsize=10)
    axes.tick_params(which="minor", labelsize=7)  # logarithmic axes of less than a decade label these too
    if axes.get_legend_handles_labels()[1]:
        axes.legend()
