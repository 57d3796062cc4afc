"""What the figures of claims share: theory as a line with measurements on it, and the frame around both."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._look.drawing import BLUE as BLUE
from .._look.drawing import GRAY as GRAY
from .._look.drawing import GREEN as GREEN
from .._look.drawing import ORANGE as ORANGE
from .._look.drawing import PURPLE as PURPLE
from .._look.drawing import SKY as SKY
from .._look.drawing import png_and_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ._claim import Claim, Result

Data = Mapping[str, np.ndarray]
Column = str | Callable[[Data], Any]


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


class Figure:
    """Columns of a result over one of them; a column is a name, or a function of all columns.

    Parts are added in the body of the claim, as they would be to axes. `log` names the logarithmic axes, "x", "y" or
    "xy"; other settings are those of `axes.set`.
    """

    def __init__(self, x: Column, ylabel: str = "", *, xlabel: str = "", log: str = "", **frame: Any) -> None:
        self.x, self.parts = x, list[Callable[[Any, np.ndarray, Data], Any]]()
        words = {"xlabel": xlabel or x, "ylabel": ylabel}
        self.frame = {f"{axis}scale": "log" for axis in log} | words | frame

    def pair(
        self, theory: Column = "theory", measured: Column = "measured", sem: str = "sem", **look: Any
    ) -> None:
        """Theory as a line, measurements as points; with error bars if the data has them."""
        self.parts.append(
            lambda axes, x, data: pair(
                axes, x, _values(theory, data), _values(measured, data), data.get(sem), **look
            )
        )

    def line(
        self, column: Column, color: str = BLUE, style: str = "o-", label: str = "", **look: Any
    ) -> None:
        look |= {"color": color, "label": label or column}
        self.parts.append(lambda axes, x, data: axes.plot(x, _values(column, data), style, **look))

    def bars(
        self, column: Column, sem: Column, color: str = BLUE, style: str = "o", label: str = "", **look: Any
    ) -> None:
        """Points with error bars."""
        look |= {"fmt": style, "color": color, "label": label or column}
        self.parts.append(
            lambda axes, x, data: axes.errorbar(x, _values(column, data), _values(sem, data), **look)
        )

    def level(self, height: float, **look: Any) -> None:
        """A dashed line that stays at `height`."""
        self.parts.append(
            lambda axes, x, data: axes.axhline(height, **{"color": GRAY, "ls": "--", "lw": 1} | look)
        )

    def mark(self, at: float) -> None:
        """A dashed line upwards from `at`."""
        self.parts.append(lambda axes, x, data: axes.axvline(at, color=GRAY, ls="--", lw=1))

    def draw(self, axes: Any, data: Data) -> None:
        for part in self.parts:
            part(axes, _values(self.x, data), data)
        axes.set(**self.frame)


def _values(column: Column, data: Data) -> Any:
    return data[column] if isinstance(column, str) else column(data)


def picture(claim: "Claim", result: "Result") -> tuple[bytes, str]:
    """The figure as PNG and as SVG; the same result gives the same bytes."""
    return png_and_svg((5.6, 3.6), _paint, claim, result)


def _paint(figure: "Canvas", claim: "Claim", result: "Result") -> None:
    axes = figure.subplots()
    claim.draw(axes, result)
    axes.set_title(f"{claim.name()}: {result.verdict}", fontsize=10)
    axes.tick_params(which="minor", labelsize=7)  # logarithmic axes of less than a decade label these too
    if axes.get_legend_handles_labels()[1]:
        axes.legend()
