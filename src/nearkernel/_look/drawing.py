"""Figures of one style: colors, Matplotlib settings, and a drawing as PNG and as SVG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._base.extra import needing
from .._base.printable import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, SKY, GRAY = SERIES = (
    "#0072b2", "#d55e00", "#009e73", "#aa4499", "#56b4e9", "#6b7280",
)  # fmt: skip
INK, PAPER, LINE = "#1d2129", "#ffffff", "#e4e2dd"

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# What each color is called in look.css, so that a drawing can follow a page that is light or dark.
PAGE_COLORS = {
    INK: "currentColor",
    "#000000": "currentColor",
    PAPER: "var(--card)",
    LINE: "var(--line)",
    **{color: f"var(--series-{i})" for i, color in enumerate(SERIES, 1)},
}

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,  # a name of a column may have dollar signs
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "none",  # text stays text: small, and in the font of the page
    "svg.hashsalt": "nearkernel",  # the same drawing gives the same bytes
}


def png_and_svg(size: tuple[float, float], paint: Callable[..., None], *args: Any) -> tuple[bytes, str]:
    """A figure of `size` inches, painted by `paint(figure, *args)`, in both formats."""
    return _saved(size, paint, args, png=True)


def svg(size: tuple[float, float], paint: Callable[..., None], *args: Any) -> str:
    """The same as SVG alone, for pages."""
    return _saved(size, paint, args, png=False)[1]


def _plain_powers(figure: Figure) -> None:
    """Powers of ten on logarithmic axes as plain text: formulas would take a third of the time of a figure."""
    with needing("a figure"):
        from matplotlib.ticker import Formatter, LogFormatter

    class Plain(Formatter):
        def __init__(self, formula: LogFormatter):
            self._formula = formula

        def set_locs(self, locs: Any) -> None:
            self._formula.set_locs(locs)

        def __call__(self, x: float, pos: int | None = None) -> str:
            return plain_power(self._formula(x, pos))

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(major := axis.get_major_formatter(), LogFormatter):
                axis.set_major_formatter(Plain(major))
            if isinstance(minor := axis.get_minor_formatter(), LogFormatter):
                axis.set_minor_formatter(Plain(minor))


def _printable_names(figure: Figure) -> None:
    """Names of strangers' columns and classes, as texts or at ticks."""
    with needing("a figure"):
        from matplotlib.text import Text
        from matplotlib.ticker import FuncFormatter

    for text in figure.findobj(Text):
        text.set_text(printable(text.get_text()))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(names := axis.get_major_formatter(), FuncFormatter):
                shown = lambda x, pos=None, names=names: printable(names(x, pos))
                axis.set_major_formatter(FuncFormatter(shown))


def plain_power(formula: str) -> str:
    r"""The text of a tick: "10⁻²" for "$\mathdefault{10^{-2}}$"."""
    inner = re.sub(r"\$|\\mathdefault|\\times", lambda found: "×" if "times" in found[0] else "", formula)
    raised = re.sub(
        r"\^\{([^}]*)\}", lambda found: found[1].replace("\N{MINUS SIGN}", "-").translate(_RAISED), inner
    )
    return raised.replace("{", "").replace("}", "")


def _saved(size: tuple[float, float], paint: Callable[..., None], args: Any, png: bool) -> tuple[bytes, str]:
    with needing("a figure"):
        from cycler import cycler
        from matplotlib import rc_context
        from matplotlib.figure import Figure

    with rc_context({**STYLE, "axes.prop_cycle": cycler(color=SERIES)}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # of names that a page has its own font for
        figure: Figure = Figure(figsize=size, layout="constrained")
        paint(figure, *args)
        _plain_powers(figure)
        _printable_names(figure)
        pixels, drawn = io.BytesIO(), io.StringIO()
        if png:
            figure.savefig(pixels, format="png", dpi=130, metadata={"Software": None})
        figure.savefig(drawn, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return pixels.getvalue(), drawn.getvalue()
