"""`report.html` of advice: what to type, how fast to train, and the picture."""

from __future__ import annotations

import dataclasses

from .... import _look
from ...._base.settings import flag
from ...._base.versions import versions
from ...._look import Html
from ...streams import command_line
from ..advice import Advice
from ..blocks import BLOCKS
from ..options import Inputs, Options
from . import words


def report_html(options: Options, inputs: Inputs, advice: Advice, svg: str) -> Html:
    """The whole page."""
    rates, remarks = words.rates(options, advice)
    spread_title, spread = words.spread(advice)
    trained: tuple[Html, ...] = ()
    if advice.finite is not None:
        title, lines = words.finite(options, advice.finite)
        trained = (_look.section(title, _look.paragraphs(*lines)),)
    if advice.training is not None:
        title, lines = words.training(options, advice.training)
        table = _look.table(words.TRAINED_HEAD, words.trained_rows(advice.training))
        trained = (*trained, _look.section(title, table, _look.paragraphs(*lines)))
    if BLOCKS[options.block].attends:
        title, lines = words.attention(options)
        table = _look.table(words.ATTENTION_HEAD, words.attention_rows(advice))
        trained = (*trained, _look.section(title, table, _look.paragraphs(*lines)))
    far: tuple[Html, ...] = ()
    if rows := words.direction_rows(advice):
        table = _look.table(words.DIRECTIONS_HEAD, rows)
        far = (_look.section(words.DIRECTIONS, table, _look.paragraphs(words.directions(advice))),)
    over: tuple[Html, ...] = ()
    if advice.carried is not None:
        title, lines, calls = words.carried(options, advice.carried)
        typed = (
            part
            for name in options.frameworks
            for part in (_look.heading(f"{name}: {calls[name]}"), _look.code(advice.carried.code[name]))
        )
        over = (
            _look.section(
                title,
                _look.table(words.CARRIED_HEAD, words.carried_rows(advice.carried)),
                _look.paragraphs(*lines),
                _look.table(words.MOVES_HEAD, words.moves_rows(advice.carried)),
                *typed,
            ),
        )
    code = (
        part
        for name, text in advice.how_to_type.items()
        for part in (_look.heading(f"{name}: {words.CALLS[name]}"), _look.code(text))
    )
    settings = {
        flag(name): value for name, value in dataclasses.asdict(options).items() if value not in (None, ())
    }
    return _look.page(
        f"nearkernel: advice for {options.activation}",
        f"nearkernel advise · {options.activation}, {words.network(options)}",
        _headline(options, advice),
        _lead(inputs, advice),
        _look.section("Initialization", _look.paragraphs(*words.initialization(options, advice)), *code),
        _look.section(words.RATES, _look.definitions(rates), _look.paragraphs(*remarks)),
        _look.section(spread_title, _look.paragraphs(*spread)),
        *trained,
        *over,
        _look.section(
            words.CHANGES,
            _look.table(words.CHANGES_HEAD, words.changes(advice)),
            _look.paragraphs(*words.measured(options, inputs, advice)),
        ),
        *far,
        _look.pictures(
            _look.figure(
                "Signals and gradients through the layers",
                "Lines are predicted at infinite width, points are random networks. On the right, how often the "
                "gradients of a random network are off by more than a factor of 2, against the width; the diamond is "
                "this network.",
                _look.inline(svg, "advice"),
                wide=True,
            )
        ),
        _look.section("Settings", _look.definitions(settings)),
        _look.reproduce(command_line()),
        _look.footer(versions()),
    )


def _headline(options: Options, advice: Advice) -> str:
    critical = advice.critical
    layers = f"{options.depth} {options.activation} layer{'s' * (options.depth > 1)}"
    if options.block != "plain":
        layers = f"{options.depth - 1} {options.block} blocks of {options.activation}"
    if not advice.how_to_type:
        return f"Initialize {layers} as {', '.join(options.frameworks)} do by default: change nothing."
    law = "orthogonal weights" if advice.outcomes[0].start.law == "orthogonal" else "weights"
    return f"Initialize {layers} with {law} of variance {critical.weight_var:.4g}/fan-in and " + (
        f"biases of variance {critical.bias_var:.4g}." if critical.bias_var > 0 else "biases of 0."
    )


def _lead(inputs: Inputs, advice: Advice) -> str:
    verdicts = ", ".join(
        f"{each.start.name}: {each.verdict}" for each in advice.outcomes if not each.start.advised
    )
    kept = "keep their size from layer to layer" if advice.critical.block is None else "stay bounded"
    return (
        f"Then signals and gradients {kept}, for {inputs.name or 'standardized inputs'}. "
        f"With what is usual: {verdicts}."
    )
