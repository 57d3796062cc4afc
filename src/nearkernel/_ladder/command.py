"""`nearkernel ladder` from settings to files: train, predict, table, picture, JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .._predict.output import check_writable, write_together
from .._predict.summary import versions
from .job import ORDERS, Rung, Settings, cases, climb, slopes
from .picture import picture

FILES = ("ladder.png", "ladder.svg", "ladder.json")


def ladder_and_report(settings: Settings, out: Path, print_json: bool) -> None:
    """The whole command; writes nothing unless everything went well."""
    check_writable(out, FILES)
    rungs = _climb_all(settings)
    document = _document(settings, rungs)
    png, svg = picture(rungs, settings)
    write_together(out, dict(zip(FILES, (png, svg, document), strict=True)))
    if print_json:
        sys.stdout.write(document)
    else:
        _print(settings, rungs, out)


def _climb_all(settings: Settings) -> list[Rung]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        every = cases(settings)
        task = progress.add_task("starting", total=len(every))
        rungs = []
        for case in every:
            rungs.append(climb(settings, case, lambda text: progress.update(task, description=text)))
            progress.advance(task)
        return rungs


def _document(settings: Settings, rungs: list[Rung]) -> str:
    document = {
        "settings": dataclasses.asdict(settings),
        "versions": versions(),
        "slopes": {sweep: slopes(rungs, sweep) for sweep in ("alpha", "width")},
        "rungs": [dataclasses.asdict(rung) for rung in rungs],
    }
    return json.dumps(document, indent=2) + "\n"


def _print(settings: Settings, rungs: list[Rung], out: Path) -> None:
    console = Console(highlight=False, soft_wrap=True)
    layers = f"{settings.depth} hidden {settings.activation} layer{'s' * (settings.depth > 1)}"
    console.print(
        f"Networks of {layers}, {settings.points} training points in {settings.dim} dimensions: distance of each order "
        "from the really trained network, on test inputs",
        style="bold",
        markup=False,
    )
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    orders = (f"order {k}" for k in ORDERS)
    for heading in ("alpha", "width", *orders, "zI/zF", "predict, s", "train"):
        table.add_column(heading, justify="right", no_wrap=True)
    for i, rung in enumerate(rungs):
        if i and (rung.sweep, rung.seed) != (rungs[i - 1].sweep, rungs[i - 1].seed):
            table.add_section()
        small = rung.correction <= 0.1
        table.add_row(
            f"{rung.alpha:g}",
            str(rung.width),
            *(f"{error:.1e}" for error in rung.errors),
            f"{rung.correction:.2g}{'' if small else '!'}",
            " ".join(f"{second:.1f}" for second in rung.seconds),
            f"{rung.training_seconds:.1f}",
        )
    console.print(table)
    for sweep in ("alpha", "width"):
        found = slopes(rungs, sweep)
        if found:
            words = ", ".join(f"{slope:.2f}" for slope in found)
            console.print(f"Slopes over {sweep} (last values): {words} for orders 0, 1, 2.", markup=False)
    if any(rung.correction > 0.1 for rung in rungs):
        console.print("! the correction is not small: higher orders need not be better there.", markup=False)
    console.print(f"Wrote {', '.join(str(out / name) for name in FILES)}", markup=False)
