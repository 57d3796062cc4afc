"""`report.html` of an inspection."""

from __future__ import annotations

import dataclasses

from ... import _look
from ..._base.settings import flag
from ..._base.versions import versions
from ..._look import Html
from ...results import Inspection
from ..streams import command_line
from . import words
from .options import Options, Rows


def report_html(options: Options, rows: Rows, found: Inspection, svg: str) -> Html:
    """The whole page."""
    settings = {
        flag(name): value
        for name, value in dataclasses.asdict(options).items()
        if value not in (None, (), False)
    }
    return _look.page(
        f"nearkernel: inspection of {options.network}",
        f"nearkernel inspect · {words.training(options, found)}",
        words.headline(found),
        words.network(options, rows, found),
        _look.section("Prediction", _look.paragraphs(*words.outcome(rows, found))),
        _look.section(
            "Loss",
            _look.table(words.CURVE_HEAD, words.curve(found)),
            _look.paragraphs(*words.promises(found)),
        ),
        _look.pictures(
            _look.figure(
                "Prediction and self-check",
                "The self-check compares the network at the predicted weights with its linearization. On the right, "
                "the initial residual along the eigendirections of the tangent kernel, largest first.",
                _look.inline(svg, "inspection"),
                wide=True,
            )
        ),
        _look.section("Tangent kernel", _look.paragraphs(*words.kernel(found))),
        _look.section("Order of learning", _look.paragraphs(*words.learned(rows, found))),
        _look.section("Cost", _look.paragraphs(words.cost(found))),
        _look.section("Settings", _look.definitions(settings)),
        _look.reproduce(command_line()),
        _look.footer(versions()),
    )
