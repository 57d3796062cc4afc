"""`nearkernel ladder` from settings to files: train, predict, table, picture, report, JSON."""

from __future__ import annotations

import sys
from pathlib import Path

from ..._base.versions import versions
from ..._look.drawing import png_and_svg
from ...forecasts.theory_ladder import Rung, Settings, cases, climb, slopes
from ..predict.reporting.output import check_writable, write_together
from ..report import document, terminal_table
from ..streams import console, progress
from . import report
from .picture import draw, size

FILES = ("report.html", "ladder.png", "ladder.svg", "ladder.json")


def ladder_and_report(settings: Settings, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    rungs = _climb_all(settings)
    document = _document(settings, rungs)
    png, svg = png_and_svg(size(settings), draw, rungs, settings)
    html = report.report_html(settings, rungs, svg)
    write_together(out, dict(zip(FILES, (html, png, svg, document), strict=True)))
    if print_json:
        sys.stdout.write(document)
    else:
        _print(settings, rungs, out)


def _climb_all(settings: Settings) -> list[Rung]:
    every = cases(settings)
    with progress(len(every)) as shown:
        rungs = []
        for case in every:
            rungs.append(climb(settings, case, shown.say))
            shown.count(len(rungs), len(every))
        return rungs


def _document(settings: Settings, rungs: list[Rung]) -> str:
    return document(
        {
            "settings": settings,
            "versions": versions(),
            "slopes": {sweep: slopes(rungs, sweep) for sweep in ("alpha", "width")},
            "rungs": rungs,
        }
    )


def _print(settings: Settings, rungs: list[Rung], out: Path) -> None:
    page = console()
    page.print(
        f"{report.title(settings)}: distance of each order from the trained network, on test inputs",
        style="bold",
    )
    table = terminal_table(report.head(rungs), (), padding=(0, 1), pad_edge=False)
    for i, rung in enumerate(rungs):
        if i and (rung.sweep, rung.seed) != (rungs[i - 1].sweep, rungs[i - 1].seed):
            table.add_section()
        table.add_row(*report.row(rung))
    page.print(table)
    for line in (*report.remarks(rungs), f"Wrote {', '.join(str(out / name) for name in FILES)}"):
        page.print(line)
