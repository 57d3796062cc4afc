"""`nearkernel inspect` from options to files: convert, inspect, write, show."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import nearkernel as nk

from ..._base.versions import versions
from ..._look.drawing import png_and_svg
from ...dynamics.inspection.verdict import KEPT, PROMISED
from ...results import Inspection, Verdict
from ..predict.reporting.output import check_writable, write_together
from ..report import document, terminal_table
from ..streams import console, progress
from . import words
from .network import network_of
from .options import Options
from .picture import SIZE, paint
from .report import report_html
from .rows import Rows, read_rows

FILES = ("report.html", "inspection.json", "inspection.png")


def inspect_and_report(options: Options, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    with progress() as shown:
        shown.say("reading the data")
        rows = read_rows(options)
        shown.say("converting the network")
        model, params = network_of(options.network, rows.x[:2], options.trainable)
        shown.say("predicting")
        result = _inspected(options, rows, model, params)
        text = inspection_json(options, rows, result)
        shown.say("drawing the report")
        png, svg = png_and_svg(SIZE, paint, result)
        html = report_html(options, rows, result, svg)
        write_together(out, dict(zip(FILES, (html, text, png), strict=True)))
    if print_json:
        sys.stdout.write(text)
    else:
        _print(options, rows, result, out)


def _inspected(options: Options, rows: Rows, model: nk.models.AbstractModel, params: object) -> Inspection:
    algorithm = None if options.lr is None else nk.GradientDescent(options.lr, options.steps)
    return nk.inspect(
        model,
        params,
        rows.x,
        rows.y,
        rows.x_new,
        algorithm,
        loss=options.loss,
        steps=options.steps if algorithm is None else None,
        pieces=options.pieces,
    )


def inspection_json(options: Options, rows: Rows, result: Inspection) -> str:
    """All results; what its verdict does not allow is null."""
    said = result.verdict.value
    figures = {
        "settings": dataclasses.asdict(options),
        "data": {"name": rows.name, "train": len(rows.x), "new": len(rows.x_new), "notes": rows.notes},
        "algorithm": {"lr": result.algorithm.lr, "steps": result.algorithm.steps},
        "verdict": said,
        "promise": {"error": PROMISED.get(result.verdict), "kept": KEPT.get(result.verdict)},
        "trusted_until": result.trusted_until,
        "loss_before": result.loss_before,
        "curve": [
            {"step": int(step), "loss": loss, "self_check": check, "verdict": verdict.value}
            for step, loss, check, verdict in zip(
                result.moments, result.loss, result.check, result.verdicts, strict=True
            )
        ],
        "predictions": {"verdict": said, "outputs": result.prediction},
        "accuracy": {"verdict": said, "value": words.accuracy(rows, result)},
        "halfway": {"verdict": said, "steps": None if result.verdict is Verdict.distrust else result.halfway},
        "kernel": {
            "eigenvalues": result.eigenvalues,
            "alignment": result.alignment,
            "effective_dimension": result.effective_dimension,
        },
        "linearized_at": result.expanded_at,
        "unstable_at": result.unstable_at,
        "kinked": result.kinked,
        "regime": result.regime,
        "parameters": result.parameters,
        "seconds": {"inspection": result.seconds, "training": result.training_seconds},
        "versions": versions(),
    }
    return document(figures)


def _print(options: Options, rows: Rows, result: Inspection, out: Path) -> None:
    page = console()
    say = page.print
    say(words.network(options, rows, result), style="bold")
    say(words.training(options, result))
    say(f"\n{words.headline(result)}", style="bold")
    for line in words.outcome(rows, result):
        say(f"  {line}")
    page.print(terminal_table(words.CURVE_HEAD, words.curve(result)))
    for line in words.promises(result):
        say(f"  {line}")
    for title, lines in words.others(rows, result):
        say(title, style="bold")
        for line in lines:
            say(f"  {line}")
    for note in rows.notes:
        say(f"Note: {note}.")
    say(f"Wrote {', '.join(str(out / name) for name in FILES)}")
