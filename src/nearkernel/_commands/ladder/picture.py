"""The ladder as a picture: errors of the orders over the lazy scale and over the width."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from ..._look.drawing import BLUE, GRAY, GREEN, ORANGE
from ...forecasts.theory_ladder import ORDERS, Rung, Settings, means, slopes

_PANEL, _HEIGHT = 4.3, 3.8
_COLORS = (GRAY, BLUE, ORANGE)
_NAMES = ("order 0: linearized", "order 1: learns features", "order 2")


def size(settings: Settings) -> tuple[float, float]:
    """In inches."""
    return _PANEL * (2 + settings.rich), _HEIGHT


def draw(figure: Figure, rungs: list[Rung], settings: Settings) -> None:
    left, right, *more = figure.subplots(1, 2 + settings.rich, sharey=True)
    for axes in more:
        _over_richness(axes, rungs)
    labels = (f"lazy scale α (width {settings.width})", f"width (α = {settings.alpha:g})")
    for axes, sweep, label in zip((left, right), ("alpha", "width"), labels, strict=True):
        _panel(axes, rungs, sweep)
        axes.set_xlabel(label)
    left.set_ylabel("distance from the trained network")
    (left if means(rungs, "alpha") else right).legend(loc="lower left")


def _over_richness(axes, rungs: list[Rung]) -> None:
    """All networks, whatever their alpha and width."""
    ordered = sorted(rungs, key=lambda rung: rung.richness)
    at = [rung.richness for rung in ordered]
    for order, color in enumerate(_COLORS):
        axes.plot(at, [rung.errors[order] for rung in ordered], ".", color=color, markersize=5)
    axes.plot(at, [rung.rich for rung in ordered], "o", color=GREEN, markersize=4, label="rich limit")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("richness 1/(α √width)")
    axes.legend(loc="lower right")


def _panel(axes, rungs: list[Rung], sweep: str) -> None:
    rows = means(rungs, sweep)
    if not rows:
        axes.set_visible(False)
        return
    at = [value for value, _ in rows]
    fitted = slopes(rungs, sweep)
    for order in ORDERS:
        color = _COLORS[order]
        for rung in rungs:
            if rung.sweep == sweep:
                axes.plot(
                    getattr(rung, sweep), rung.errors[order], ".", color=color, alpha=0.35, markersize=5
                )
        errors = [mean[order] for _, mean in rows]
        axes.plot(at, errors, "o-", color=color, label=_NAMES[order], markersize=4)
        if fitted:
            axes.annotate(
                f"slope {fitted[order]:.2f}",
                (at[-1], errors[-1]),
                xytext=(-6, -12),
                textcoords="offset points",
                ha="right",
                color=color,
                fontsize=8,
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=2))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(at)
    axes.margins(y=0.12)
