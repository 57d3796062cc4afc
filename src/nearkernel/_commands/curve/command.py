"""`nearkernel curve` from options to files: load, compute, draw, write, show."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from rich import box
from rich.table import Table

from ... import _look
from ..._base.settings import flag
from ..._base.versions import versions
from ..._look.drawing import png_and_svg
from ..predict.options import Options
from ..predict.reading.data import Data, load
from ..predict.reading.prepare import Split, all_rows
from ..predict.reporting.output import check_writable, write_together
from ..predict.reporting.summary import plain, target_scaling
from ..streams import command_line, console, progress
from .job import Found, run
from .picture import SIZE, draw

FILES = ("report.html", "curve.png", "curve.json")


def curve_and_report(options: Options, check: int, tune: bool, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    if tune and options.algorithm == "gd":
        raise ValueError("--tune chooses a ridge or a time: use --algorithm ridge or flow.")
    if tune and (options.ridge is not None or options.time is not None):
        raise ValueError("--tune chooses the value of --ridge or --time: give only one of them.")
    network = options.imagined()
    with progress() as shown:
        shown.say("loading the data")
        data = load(options.data, options.target, options.task, options.drop)
        rows = all_rows(data, options.most_rows, options.seed)
        found = run(network, data, rows, check, tune, options.seed, shown.say)
        shown.say("drawing the report")
        text = _document(options, check, tune, data, rows, found)
        png, svg = png_and_svg(SIZE, draw, found)
        write_together(
            out,
            dict(zip(FILES, (_page(options, check, tune, data, rows, found, svg), png, text), strict=True)),
        )
    if print_json:
        sys.stdout.write(text)
    else:
        _print(data, rows, found, out)


def _settings(options: Options, check: int, tune: bool) -> dict[str, object]:
    typed = dataclasses.asdict(options)
    for other in (
        "test_fraction",
        "order",
        "train",
        "width",
        "network",
        "strict",
        "balanced",
        "save",
        "curve",
    ):
        del typed[other]
    typed["max_rows"] = typed.pop("max_train")
    return {**typed, "check": check, "tune": tune}


def _document(options: Options, check: int, tune: bool, data: Data, rows: Split, found: Found) -> str:
    document = {
        "data": {
            "name": data.name,
            "task": data.task,
            "target": data.target,
            "rows": len(rows.x),
            "input_scaling": rows.input_scaling,
            "target_scaling": target_scaling(data),
        },
        "settings": _settings(options, check, tune),
        **found.fields(),
        "notes": [*data.notes, *rows.notes, *found.curve.notes],
        "versions": versions(),
    }
    return json.dumps(plain(document), indent=2, ensure_ascii=False) + "\n"


def _page(
    options: Options, check: int, tune: bool, data: Data, rows: Split, found: Found, svg: str
) -> _look.Html:
    settings = {flag(name): value for name, value in _settings(options, check, tune).items()}
    return _look.page(
        f"nearkernel: curve of {data.name}",
        "nearkernel curve",
        found.sentence,
        f"{data.name}: {data.target} ({data.task}), {len(rows.x)} rows; an infinitely wide network, {found.training}.",
        _look.figure(
            "The error against the number of rows",
            "Predicted from one kernel matrix of all rows; no row was held out.",
            _look.inline(svg, "curve"),
            wide=True,
        ),
        _look.table(found.head, found.rows),
        _look.paragraphs(*found.remarks, *(f"Note: {note}." for note in (*data.notes, *rows.notes))),
        _look.section("Settings", _look.definitions(settings)),
        _look.reproduce(command_line()),
        _look.footer(versions()),
    )


def _print(data: Data, rows: Split, found: Found, out: Path) -> None:
    page = console()
    say = lambda text, **style: page.print(text, markup=False, **style)
    say(f"{data.name}: {data.target} ({data.task}), {len(rows.x)} rows", style="bold")
    say(f"an infinitely wide network, {found.training}; no row was held out")
    table = Table(box=box.SIMPLE_HEAD)
    for title in found.head:
        table.add_column(title, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(*row)
    page.print(table)
    say(found.sentence, style="bold")
    for line in (*found.remarks, *(f"Note: {note}." for note in (*data.notes, *rows.notes))):
        say(line)
    say(f"Wrote {', '.join(str(out / name) for name in FILES)}")
