"""`nearkernel curve` from options to files: load, compute, draw, write, show."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from ... import _look
from ..._base.versions import versions
from ..._look.drawing import png_and_svg
from ..predict.network import HypotheticalNetwork
from ..predict.reading.data import LabeledData, load
from ..predict.reading.prepare import Split, all_rows
from ..predict.reporting.output import check_writable, write_together
from ..predict.reporting.summary import target_scaling
from ..report import document, drawn, flags, page, terminal_table
from ..streams import console, progress
from .job import ScaledCurve, run
from .options import Options
from .picture import SIZE, draw

FILES = ("report.html", "curve.png", "curve.json")


def curve_and_report(options: Options, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    network = HypotheticalNetwork.of(options)
    with progress() as shown:
        shown.say("loading the data")
        data = load(options.data, options.target, options.task, options.drop)
        rows = all_rows(data, options.max_rows, options.seed)
        scaled = run(network, data, rows, options.check, options.tune, options.seed, shown.say)
        shown.say("drawing the report")
        text = _document(options, data, rows, scaled)
        png, svg = png_and_svg(SIZE, draw, scaled)
        write_together(
            out, dict(zip(FILES, (_page(options, data, rows, scaled, svg), png, text), strict=True))
        )
    if print_json:
        sys.stdout.write(text)
    else:
        _print(data, rows, scaled, out)


def _document(options: Options, data: LabeledData, rows: Split, scaled: ScaledCurve) -> str:
    figures = {
        "data": {
            "name": data.name,
            "task": data.task,
            "target": data.target,
            "rows": len(rows.x),
            "input_scaling": rows.input_scaling,
            "target_scaling": target_scaling(data),
        },
        "settings": dataclasses.asdict(options),
        **scaled.fields(),
        "notes": [*data.notes, *rows.notes, *scaled.curve.notes],
        "versions": versions(),
    }
    return document(figures)


def _page(options: Options, data: LabeledData, rows: Split, scaled: ScaledCurve, svg: str) -> _look.Html:
    return page(
        f"nearkernel: curve of {data.name}",
        "nearkernel curve",
        scaled.sentence,
        f"{data.name}: {data.target} ({data.task}), {len(rows.x)} rows; an infinitely wide network, {scaled.training}.",
        drawn(
            "The error against the number of rows",
            "Predicted from one kernel matrix of all rows; no row was held out.",
            svg,
            "curve",
        ),
        _look.table(scaled.head, scaled.rows),
        _look.paragraphs(*scaled.remarks, *(f"Note: {note}." for note in (*data.notes, *rows.notes))),
        settings=flags(dataclasses.asdict(options)),
    )


def _print(data: LabeledData, rows: Split, scaled: ScaledCurve, out: Path) -> None:
    terminal = console()
    say = terminal.print
    say(f"{data.name}: {data.target} ({data.task}), {len(rows.x)} rows", style="bold")
    say(f"an infinitely wide network, {scaled.training}; no row was held out")
    terminal.print(terminal_table(scaled.head, scaled.rows))
    say(scaled.sentence, style="bold")
    for line in (*scaled.remarks, *(f"Note: {note}." for note in (*data.notes, *rows.notes))):
        say(line)
    say(f"Wrote {', '.join(str(out / name) for name in FILES)}")
