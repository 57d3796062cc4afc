"""`nearkernel advise` from options to files: reckon, draw, write, show."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from ..._base.versions import versions
from ..._look.drawing import png_and_svg
from ..predict.reporting.output import check_writable, write_together
from ..report import document
from ..streams import console, progress
from .advice import BAD_FACTOR, Advice, Outcome, advise
from .inputs import Inputs, inputs_of
from .options import Options
from .reporting import words
from .reporting.chapters import chapters
from .reporting.picture import SIZE, paint
from .reporting.report import report_html
from .train import Training, gap

FILES = ("report.html", "advice.json", "advice.png")


def advise_and_report(options: Options, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    with progress() as shown:
        shown.say("looking for the critical point")
        options.critical  # noqa: B018  an activation without one is refused before the data are read
        shown.say("reading the data")
        inputs = inputs_of(options)
        advice = advise(options, inputs, shown.say)
        text = advice_json(options, inputs, advice)
        shown.say("drawing the report")
        png, svg = png_and_svg(SIZE, paint, options, inputs, advice)
        html = report_html(options, inputs, advice, svg)
        write_together(out, dict(zip(FILES, (html, text, png), strict=True)))
    if print_json:
        sys.stdout.write(text)
    else:
        _print(options, inputs, advice, out)


def advice_json(options: Options, inputs: Inputs, advice: Advice) -> str:
    critical = advice.critical
    figures = {
        "settings": dataclasses.asdict(options),
        "data": inputs.name or None,
        "critical": {
            "weight_var": critical.weight_var,
            "bias_var": critical.bias_var,
            "fixed_point": critical.fixed_point,
            "universality": critical.universality,
            "message": critical.message,
            "input_scale": advice.input_scale,
            "block": critical.block,
        },
        "change_nothing": advice.unchanged,
        "how_to_type": advice.how_to_type,
        "learning_rates": {"loss": "1/2 mean (z - y)^2", **dataclasses.asdict(advice.rates)},
        "fluctuations": {**dataclasses.asdict(advice.spread), "bad_factor": BAD_FACTOR},
        "finite_width": None if advice.finite is None else dataclasses.asdict(advice.finite),
        "training": None if advice.training is None else _training(advice.training),
        "maximal_update": None if advice.carried is None else dataclasses.asdict(advice.carried),
        "initializations": {outcome.start.name: _outcome(outcome) for outcome in advice.outcomes},
        "versions": versions(),
    }
    return document(figures)


def _outcome(outcome: Outcome) -> dict[str, object]:
    found = outcome.measured
    return {
        "is": outcome.start.words,
        "weight_var": outcome.weight_var,
        "bias_var": outcome.bias_var,
        "verdict": outcome.verdict,
        **{
            name: {
                "predicted": getattr(outcome.predicted, f"{name}_factor"),
                "measured": getattr(found, f"{name}_factor"),
                "standard_error": getattr(found, f"{name}_factor_sem"),
                "predicted_mean_squares": getattr(outcome.predicted, name),
                "measured_mean_squares": getattr(found, name),
            }
            for name in ("signal", "gradient")
        },
        **({} if found.alike is None else {"correlation_of_tokens": _alike(outcome)}),
        "directions": None if outcome.directions is None else dataclasses.asdict(outcome.directions),
        "weights": outcome.start.law,
        "networks": found.networks,
        "network_width": found.width,
    }


def _training(found: Training) -> dict[str, object]:
    first, *others = found.runs
    gaps = {
        run.name: dict(zip(("ahead", "standard_error", "sigmas"), gap(first, run), strict=True))
        for run in others
    }
    return {**dataclasses.asdict(found), "strongest": found.strongest.name, "advised_against": gaps}


def _alike(outcome: Outcome) -> dict[str, object]:
    """Layer by layer."""
    found = outcome.measured
    return {
        "predicted": outcome.predicted.alike,
        "measured": found.alike,
        "standard_error": found.alike_error,
    }


def _print(options: Options, inputs: Inputs, advice: Advice, out: Path) -> None:
    page = console()
    say = page.print
    say(
        f"{options.activation}, {words.network(options)}; {inputs.name or 'standardized inputs'}",
        style="bold",
    )

    made = chapters(options, inputs, advice)
    made.pop("start").show(page)
    say(f"\n{words.RATES}", style="bold")
    rates, remarks = words.rates(options, advice)
    for line in (*(f"{term:<30}{rate}" for term, rate in rates.items()), *remarks):
        say(f"  {line}")
    for chapter in made.values():
        chapter.show(page)
    say(f"Wrote {', '.join(str(out / name) for name in FILES)}")
