"""The chapters of advice by name, for the terminal and the page."""

from __future__ import annotations

from ...report import Chapter
from ..advice import Advice
from ..inputs import Inputs
from ..options import Options
from . import words


def chapters(options: Options, inputs: Inputs, advice: Advice) -> dict[str, Chapter]:
    """Those that there is something to say in."""
    calls = {f"{name}: {words.CALLS[name]}": code for name, code in advice.how_to_type.items()}
    made = {
        "start": Chapter("Initialization", words.initialization(options, advice), code=calls),
        "spread": Chapter(*words.spread(advice)),
    }
    if advice.finite is not None:
        made["finite"] = Chapter(*words.finite(options, advice.finite))
    measured = words.measured(options, inputs, advice)
    made["changes"] = Chapter(words.CHANGES, measured, words.CHANGES_HEAD, words.changes(advice))
    if rows := words.direction_rows(advice):
        lines = [words.directions(advice)]
        made["directions"] = Chapter(words.DIRECTIONS, lines, words.DIRECTIONS_HEAD, rows)
    if options.attends:
        rows = words.attention_rows(advice)
        made["attention"] = Chapter(*words.attention(options), words.ATTENTION_HEAD, rows)
    if advice.training is not None:
        rows = words.trained_rows(advice.training)
        made["training"] = Chapter(*words.training(options, advice.training), words.TRAINED_HEAD, rows)
    if advice.carried is not None:
        title, lines, typed = words.carried(options, advice.carried)
        made["carried"] = Chapter(title, lines, words.CARRIED_HEAD, words.carried_rows(advice.carried))
        code = {f"{name}: {typed[name]}": advice.carried.code[name] for name in options.frameworks}
        made["moves"] = Chapter("", (), words.MOVES_HEAD, words.moves_rows(advice.carried), code)
    return made
