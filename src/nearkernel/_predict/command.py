"""`nearkernel predict` from options to files: load, split, answer, write, show."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from .._curve.job import Found
from .._curve.job import run as run_curve
from .._files import write_whole
from .._saved.file import model_bytes
from .._terminal import Progress, console, progress
from .columns import cells, titles
from .data import Data, load
from .job import Network, Result, run
from .options import Options
from .output import check_writable, write_together
from .prepare import Split, few, split
from .report import report_html
from .summary import predictions_csv, result_json
from .verdict import headline, next_commands, rows_in_words, verdict

_STEPS = 8  # that a user is told of
_COLUMNS = 6
_WIDE = 96  # characters of a table with a column more
FILES = ("report.html", "predictions.csv", "result.json")


def predict_and_report(options: Options, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    network = options.imagined()
    with progress(_STEPS) as shown:
        say = _counted(shown)
        say("loading the data")
        data = load(options.data, options.target, options.task, options.drop, options.strict)
        parts = split(data, options.test_fraction, options.most_rows, options.seed)
        result = run(network, data, parts, say, options.most_network_rows, options.balanced, options.seed)
        grown = _grown(options, network, data, parts, say) if options.curve else None
        say("drawing the report")
        typed = dataclasses.asdict(options)
        json = result_json(data, parts, network, result, typed, grown)
        html = report_html(data, parts, network, result, typed, grown)
        assert result.auto is not None
        model = model_bytes(result.auto.pipeline, _about(data, parts)) if options.save else None
        write_together(out, dict(zip(FILES, (html, predictions_csv(data, parts, result), json), strict=True)))
        if model is not None:
            write_whole(Path(str(options.save)), model)
    if print_json:
        sys.stdout.write(json)
    else:
        _print_table(data, parts, network, result, options, out, grown)


def _grown(options: Options, network: Network, data: Data, parts: Split, say: Callable[[str], None]) -> Found:
    """How the error of wide networks would fall with more rows, from the rows to learn from alone."""
    rows = few(parts, options.most_network_rows, options.seed)
    return run_curve(network, data, rows, 0, options.tunes, options.seed, say)


def _counted(shown: Progress) -> Callable[[str], None]:
    """Says what is being done, and counts it."""
    done = itertools.count()

    def say(what: str) -> None:
        step = next(done)
        shown.count(step, max(_STEPS, step + 1))
        shown.say(what)

    return say


def _about(data: Data, parts: Split) -> dict[str, Any]:
    """What a model file says of the model, for those who apply it."""
    return {
        "data": data.name,
        "task": data.task,
        "target": data.target,
        "classes": list(data.classes),
        "training_rows": len(parts.trained),
    }


def _print_table(
    data: Data,
    parts: Split,
    network: Network,
    result: Result,
    options: Options,
    out: Path,
    grown: Found | None,
) -> None:
    page = console()
    kind = f"classification, {len(data.classes)} classes" if data.classes else "regression"
    layers = f"{network.words} of infinite width"
    page.print(f"{data.name}: {data.target} ({kind}), {rows_in_words(parts)}", style="bold", markup=False)
    page.print(f"{headline(data, result)} {verdict(data, result)}", markup=False)
    trained = network.finite is not None and network.finite.train
    untrained = "only the last row" if trained else "nothing"
    page.print(f"NNGP and NTK: {layers}, {network.training}; {untrained} was trained", markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles(data.task, trained):
        table.add_column(title, justify="left" if title == "method" else "right", no_wrap=True)
    for answer in result.answers:
        table.add_row(*cells(answer, data.task, trained))
    if network.finite is not None:
        table.add_section()
        for each in result.finite:
            table.add_row(*cells(each, data.task, trained))
    if trained:
        page.width = max(page.width, _WIDE)
    page.print(table)
    if network.finite is not None:
        page.print(f"Below the line: one network of width {network.finite.width}.", markup=False)
    assert result.auto is not None
    matter = [f"{name} ({cost:.2g})" for name, cost in result.auto.importance[:_COLUMNS] if cost > 0]
    if matter:
        measure = "the log-loss rises" if data.classes else "R² falls"
        page.print(f"What matters (by how much {measure} without it): {', '.join(matter)}.", markup=False)
    if grown is not None:
        page.print(f"Learning curve of the NTK, {grown.training}: {grown.sentence}", markup=False)
    for note in (*data.notes, *parts.notes, *result.notes):
        page.print(f"Note: {note}.", markup=False)
    written = [*(str(out / name) for name in FILES), *([options.save] if options.save else [])]
    page.print(f"Wrote {', '.join(written)}", markup=False)
    for line in next_commands(options, data):
        page.print(f"next: {line}", markup=False)
