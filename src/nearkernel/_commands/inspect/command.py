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
        found = _inspected(options, rows, model, params)
        text = inspection_json(options, rows, found)
        shown.say("drawing the report")
        png, svg = png_and_svg(SIZE, paint, found)
        html = report_html(options, rows, found, svg)
        write_together(out, dict(zip(FILES, (html, text, png), strict=True)))
    if print_json:
        sys.stdout.write(text)
    else:
        _print(options, rows, found, out)


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


def inspection_json(options: Options, rows: Rows, found: Inspection) -> str:
    """All results; what its verdict does not allow is null."""
    said = found.verdict.value
    figures = {
        "settings": dataclasses.asdict(options),
        "data": {"name": rows.name, "train": len(rows.x), "new": len(rows.x_new), "notes": rows.notes},
        "algorithm": {"lr": found.algorithm.lr, "steps": found.algorithm.steps},
        "verdict": said,
        "promise": {"error": PROMISED.get(found.verdict), "kept": KEPT.get(found.verdict)},
        "trusted_until": found.trusted_until,
        "loss_before": found.loss_before,
        "curve": [
            {"step": int(step), "loss": loss, "self_check": check, "verdict": verdict.value}
            for step, loss, check, verdict in zip(
                found.moments, found.loss, found.check, found.verdicts, strict=True
            )
        ],
        "predictions": {"verdict": said, "outputs": found.prediction},
        "accuracy": {"verdict": said, "value": words.accuracy(rows, found)},
        "halfway": {"verdict": said, "steps": None if found.verdict is Verdict.distrust else found.halfway},
        "kernel": {
            "eigenvalues": found.eigenvalues,
            "alignment": found.alignment,
            "effective_dimension": found.effective_dimension,
        },
        "linearized_at": found.expanded_at,
        "unstable_at": found.unstable_at,
        "kinked": found.kinked,
        "regime": found.regime,
        "parameters": found.parameters,
        "seconds": {"inspection": found.seconds, "training": found.training_seconds},
        "versions": versions(),
    }
    return document(figures)


def _print(options: Options, rows: Rows, found: Inspection, out: Path) -> None:
    page = console()
    say = page.print
    say(words.network(options, rows, found), style="bold")
    say(words.training(options, found))
    say(f"\n{words.headline(found)}", style="bold")
    for line in words.outcome(rows, found):
        say(f"  {line}")
    page.print(terminal_table(words.CURVE_HEAD, words.curve(found)))
    for line in words.promises(found):
        say(f"  {line}")
    for title, lines in words.others(rows, found):
        say(title, style="bold")
        for line in lines:
            say(f"  {line}")
    for note in rows.notes:
        say(f"Note: {note}.")
    say(f"Wrote {', '.join(str(out / name) for name in FILES)}")
