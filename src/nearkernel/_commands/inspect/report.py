"""`report.html` of an inspection."""

from __future__ import annotations

import dataclasses

from ... import _look
from ..._look import Html
from ...results import Inspection
from ..report import drawn, flags, page
from . import words
from .options import Options
from .rows import Rows


def report_html(options: Options, rows: Rows, result: Inspection, svg: str) -> Html:
    """The whole page."""
    return page(
        f"nearkernel: inspection of {options.network}",
        f"nearkernel inspect · {words.training(options, result)}",
        words.headline(result),
        words.network(options, rows, result),
        _look.section("Prediction", _look.paragraphs(*words.outcome(rows, result))),
        _look.section(
            "Loss",
            _look.table(words.CURVE_HEAD, words.curve(result)),
            _look.paragraphs(*words.promises(result)),
        ),
        _look.pictures(
            drawn(
                "Prediction and self-check",
                "The self-check compares the network at the predicted weights with its linearization. On the right, "
                "the initial residual along the eigendirections of the tangent kernel, largest first.",
                svg,
                "inspection",
            )
        ),
        *(_look.section(title, _look.paragraphs(*lines)) for title, lines in words.others(rows, result)),
        settings=flags(dataclasses.asdict(options), None, (), False),
    )
