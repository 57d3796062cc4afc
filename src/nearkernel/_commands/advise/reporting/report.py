"""`report.html` of advice: what to type, how fast to train, and the picture."""

from __future__ import annotations

import dataclasses

from .... import _look
from ...._look import Html
from ...report import drawn, flags, page
from ..advice import Advice
from ..inputs import Inputs
from ..options import Options
from . import words
from .chapters import chapters

_ORDER = ("spread", "finite", "training", "attention", "carried", "moves", "changes", "directions")


def report_html(options: Options, inputs: Inputs, advice: Advice, svg: str) -> Html:
    """The whole page."""
    rates, remarks = words.rates(options, advice)
    made = {name: chapter.html() for name, chapter in chapters(options, inputs, advice).items()}
    return page(
        f"nearkernel: advice for {options.activation}",
        f"nearkernel advise · {options.activation}, {words.network(options)}",
        _headline(options, advice),
        _lead(inputs, advice),
        made["start"],
        _look.section(words.RATES, _look.definitions(rates), _look.paragraphs(*remarks)),
        *(made[name] for name in _ORDER if name in made),
        _look.pictures(
            drawn(
                "Signals and gradients through the layers",
                "Lines are predicted at infinite width, points are random networks. On the right, how often the "
                "gradients of a random network are off by more than a factor of 2, against the width; the diamond is "
                "this network.",
                svg,
                "advice",
            )
        ),
        settings=flags(dataclasses.asdict(options), None, ()),
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
