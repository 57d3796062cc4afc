"""`nearkernel predict` from options to files: load, split, answer, write, show."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from rich import box
from rich.table import Table

from .._terminal import console, progress
from .columns import cells, titles
from .data import Data, load
from .job import Network, Result, run
from .options import Options
from .output import check_writable, write_together
from .prepare import Split, split
from .report import report_html
from .summary import predictions_csv, result_json

FILES = ("report.html", "predictions.csv", "result.json")


def predict_and_report(options: Options, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    network = options.imagined()
    with progress() as shown:
        shown.say("loading the data")
        data = load(options.data, options.target, options.task, options.drop)
        parts = split(data, options.test_fraction, options.max_train, options.seed)
        result = run(network, data, parts, shown.say)
        shown.say("drawing the report")
        typed = dataclasses.asdict(options)
        json = result_json(data, parts, network, result, typed)
        html = report_html(data, parts, network, result, typed)
        write_together(out, dict(zip(FILES, (html, predictions_csv(data, parts, result), json), strict=True)))
    if print_json:
        sys.stdout.write(json)
    else:
        _print_table(data, parts, network, result, out)


def _print_table(data: Data, parts: Split, network: Network, result: Result, out: Path) -> None:
    page = console()
    kind = f"classification, {len(data.classes)} classes" if data.classes else "regression"
    rows = f"{len(parts.x)} rows to learn from, {len(parts.x_new)} to test"
    layers = f"{network.words} of infinite width"
    page.print(f"{data.name}: {data.target} ({kind}), {rows}", style="bold", markup=False)
    trained = network.finite is not None and network.finite.train
    untrained = "only the last row" if trained else "nothing"
    page.print(f"{layers}, {network.training}; {untrained} was trained", markup=False)
    table = Table(box=box.SIMPLE_HEAD)
    for title in titles(data.task, trained):
        table.add_column(title, justify="left" if title == "method" else "right", no_wrap=True)
    for answer in result.answers:
        table.add_row(*cells(answer, data.task, trained))
    if network.finite is not None:
        table.add_section()
        for each in result.finite:
            table.add_row(*cells(each, data.task, trained))
    page.print(table)
    if network.finite is not None:
        page.print(f"Below the line: one network of width {network.finite.width}.", markup=False)
    for note in (*data.notes, *parts.notes, *result.notes):
        page.print(f"Note: {note}.", markup=False)
    page.print(f"Wrote {', '.join(str(out / name) for name in FILES)}", markup=False)
