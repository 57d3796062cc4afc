"""The ladder as a table, in the terminal and as `report.html`."""

from __future__ import annotations

import dataclasses

from ... import _look
from ..._look import Html
from ...forecasts.theory_ladder import ORDERS, Rung, Settings, slopes
from ..report import drawn, flags, page

_HEAD = ("alpha", "width", *(f"order {k}" for k in ORDERS), "zI/zF")
_SECONDS, _RICH = ("predict, s", "train"), ("richness", "rich")
_SMALL = 0.1  # corrections up to which higher orders are better
_COLUMNS = {
    "alpha, width": "Outputs are multiplied by the scale alpha, so parameters move less. Width: neurons per layer.",
    "order 0": "Relative distance of the linearized network's outputs from the trained network's, on test inputs.",
    "order 1": "The same with feature learning to first order.",
    "order 2": "The same to second order.",
    "zI/zF": "Relative size of the first correction. Above 0.1 (!) higher orders need not be better.",
    "predict, s": "Seconds to predict each order.",
    "train": "Seconds to train the network for real.",
    "richness": "1/(alpha sqrt(width)): how far features move, and which theory to trust for these targets.",
    "rich": "Distance of the rich limit, infinitely wide networks of the same richness, with --rich.",
}


def title(settings: Settings) -> str:
    layers = f"{settings.depth} hidden {settings.activation} layer{'s' * (settings.depth > 1)}"
    return f"Networks of {layers}, {settings.points} training points in {settings.dim} dimensions"


def head(rungs: list[Rung]) -> tuple[str, ...]:
    """The headings of `row`."""
    return (*_HEAD, *(_RICH if any(rung.rich is not None for rung in rungs) else _SECONDS))


def row(rung: Rung) -> tuple[str, ...]:
    """The cells of a network, below `head`."""
    if rung.rich is None:
        last = (" ".join(f"{second:.1f}" for second in rung.seconds), f"{rung.training_seconds:.1f}")
    else:
        last = (f"{rung.richness:.2g} {rung.regime}", f"{rung.rich:.1e}")
    return (
        f"{rung.alpha:g}",
        str(rung.width),
        *(f"{error:.1e}" for error in rung.errors),
        f"{rung.correction:.2g}{'' if rung.correction <= _SMALL else '!'}",
        *last,
    )


def remarks(rungs: list[Rung]) -> list[str]:
    """What the table shows at a glance."""
    lines = []
    for sweep in ("alpha", "width"):
        if fitted := slopes(rungs, sweep):
            words = ", ".join(f"{slope:.2f}" for slope in fitted)
            lines.append(f"Slopes over {sweep} (last values): {words} for orders 0, 1, 2.")
    if any(rung.correction > _SMALL for rung in rungs):
        lines.append("! the correction is not small: higher orders need not be better there.")
    short = sum(not rung.converged for rung in rungs)
    if short:
        lines.append(
            f"Training of {short} of {len(rungs)} networks stopped at --max-steps, before --tol was reached: their "
            "predictions stop at the same step."
        )
    return lines


def report_html(settings: Settings, rungs: list[Rung], svg: str) -> Html:
    """The whole page."""
    return page(
        "nearkernel: ladder",
        "nearkernel ladder",
        _headline(rungs),
        f"{title(settings)}: each was trained by gradient descent, and predicted without training, order by order.",
        _look.table(head(rungs), map(row, rungs)),
        _look.paragraphs(*remarks(rungs)),
        _look.section(
            "Picture",
            drawn(
                "Distance of each order from the trained network",
                "Points are single networks, lines their means; slopes are of the last values.",
                svg,
                "ladder",
            ),
        ),
        _look.section("Columns of the table", _look.definitions(_COLUMNS)),
        settings=flags(dataclasses.asdict(settings)),
    )


def _headline(rungs: list[Rung]) -> str:
    """The laziest network of all."""
    best = max(rungs, key=lambda rung: (rung.alpha, rung.width))
    zeroth, first, second = (f"{100 * error:.2g}\u00a0%" for error in best.errors)
    return (
        f"At a lazy scale of {best.alpha:g} the linearized network is {zeroth} off the trained one, "
        f"order 1 {first}, order 2 {second}."
    )
