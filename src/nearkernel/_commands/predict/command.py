"""`nearkernel predict` from options to files: load, split, answer, write, show."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..._base.files import write_alone
from ..._saved.file import model_bytes
from ..curve.job import ScaledCurve
from ..curve.job import run as run_curve
from ..report import terminal_table
from ..streams import Progress, console, progress
from ..streams import print_json as dump
from .auto import Chosen
from .job import PredictionRun, run
from .network import HypotheticalNetwork
from .options import Options
from .reading.columns import cells, loss_of, plain, titles
from .reading.data import LabeledData, load
from .reading.prepare import Split, few, split
from .reporting.output import check_writable, write_together, written_to
from .reporting.report import report_html
from .reporting.summary import predictions_csv, result_json
from .reporting.verdict import headline, next_commands, rows_in_words, verdict

_STEPS = 8  # that a user is told of
_COLUMNS = 6
_WIDE = 96  # characters of a table with a column more
JSON = "result.json"
FILES = ("report.html", "predictions.csv", JSON)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A run that went well, and what is to be written of it."""

    options: Options
    folder: Path
    run: PredictionRun
    grown: ScaledCurve | None  # its learning curve, where one was asked for
    files: dict[str, str]
    model: bytes | None

    def write(self) -> None:
        if self.model is not None and self.options.save is not None:
            with written_to("--save", self.options.save):
                write_alone(self.options.save, self.model)
        write_together(self.folder, self.files)

    @property
    def json(self) -> str:
        return self.files[JSON]


def predict_and_report(options: Options, targets: Sequence[str], out: Path, print_json: bool) -> None:
    """The whole command, for each of `targets` if there are several; writes nothing unless everything went well."""
    options = dataclasses.replace(options, target=targets[0] if targets else None)
    asked = list(_each(options, targets, out)) if len(targets) > 1 else [(options, out)]
    for _, folder in asked:
        check_writable(folder, FILES)
    with progress(_STEPS * len(asked)) as shown:
        say = _counted(shown, _STEPS * len(asked))
        outcomes = [_run(*each, say) for each in asked]
        for outcome in outcomes:
            outcome.write()
    if not print_json:
        for outcome in outcomes:
            _print_table(outcome)
    elif len(targets) < 2:
        sys.stdout.write(outcomes[0].json)
    else:
        dump({each.run.data.target: json.loads(each.json) for each in outcomes})


def _each(options: Options, targets: Sequence[str], out: Path) -> Iterator[tuple[Options, Path]]:
    """One run per target. The other targets are not among the columns it is predicted from."""
    names = [re.sub(r"[^\w.-]+", "_", target).strip(".") or "target" for target in targets]
    for i, (target, name) in enumerate(zip(targets, names, strict=True)):
        name = name if names.count(name) == 1 else f"{name}-{i + 1}"
        others = tuple(each for each in targets if each != target)
        save = None
        if options.save is not None:
            save = options.save.with_name(f"{options.save.stem}-{name}{options.save.suffix}")
        yield dataclasses.replace(options, target=target, other_targets=others, save=save), out / name


def _run(options: Options, folder: Path, say: Callable[[str], None]) -> Outcome:
    network = HypotheticalNetwork.of(options)
    say("loading the data")
    data = load(
        options.data, options.target, options.task, options.drop, options.strict, options.other_targets
    )
    parts = split(data, options.test_fraction, options.most_rows, options.seed)
    done = run(network, data, parts, say, options.most_network_rows, options.balanced, options.seed)
    grown = _grown(options, network, data, parts, say) if options.curve else None
    say("drawing the report")
    typed = dataclasses.asdict(options)
    texts = (
        report_html(done, typed, grown, next_commands(options, done)),
        predictions_csv(done),
        result_json(done, typed, grown),
    )
    assert done.auto is not None
    model = model_bytes(done.auto.pipeline, _about(data, parts)) if options.save else None
    files = dict(zip(FILES, texts, strict=True))
    return Outcome(options, folder, done, grown, files, model)


def _grown(
    options: Options,
    network: HypotheticalNetwork,
    data: LabeledData,
    parts: Split,
    say: Callable[[str], None],
) -> ScaledCurve:
    """How the error of wide networks would fall with more rows, from the rows to learn from alone."""
    rows = few(parts, options.most_network_rows, options.seed)
    return run_curve(network, data, rows, 0, options.tunes, options.seed, say)


def _counted(shown: Progress, steps: int) -> Callable[[str], None]:
    """Says what is being done, and counts it."""
    done = itertools.count()

    def say(what: str) -> None:
        step = next(done)
        shown.count(step, max(steps, step + 1))
        shown.say(what)

    return say


def _about(data: LabeledData, parts: Split) -> dict[str, object]:
    """What a model file says of the model, for those who apply it."""
    return {
        "data": data.name,
        "task": data.task,
        "target": data.target,
        "classes": list(data.classes),
        "training_rows": len(parts.trained),
        "target_reading": None if data.reading is None else dataclasses.asdict(data.reading),
        "ids": list(data.ids),
    }


def _matter(auto: Chosen) -> str:
    """The columns that matter beyond chance, with what each is worth, in one sentence."""
    found = [f"{one.column} ({plain(one.cost)})" for one in auto.importance if one.matters]
    if not found:
        return "no column beyond chance."
    return f"{', '.join(found[:_COLUMNS])}{f' and {len(found) - _COLUMNS} more' * (len(found) > _COLUMNS)}."


def _print_table(outcome: Outcome) -> None:
    options, out, grown, run = outcome.options, outcome.folder, outcome.grown, outcome.run
    data, network = run.data, run.network
    page = console()
    kind = f"classification, {len(data.classes)} classes" if data.classes else "regression"
    layers = f"{network.words} of infinite width"
    page.print(f"{data.name}: {data.target} ({kind}), {rows_in_words(run.split)}", style="bold")
    page.print(f"{headline(run)} {verdict(run)}")
    for leak in run.leaks:
        page.print(f"Warning: {leak.warning(data)}", style="bold")
    trained = network.finite is not None and network.finite.train
    untrained = "only the last row" if trained else "nothing"
    page.print(f"NNGP and NTK: {layers}, {network.training}; {untrained} was trained")
    shown = (cells(answer, data.task, trained) for answer in run.answers)
    table = terminal_table(titles(data.task, trained), shown, pad_edge=False)
    if network.finite is not None:
        table.add_section()
        for each in run.finite:
            table.add_row(*cells(each, data.task, trained))
    if trained:
        page.width = max(page.width, _WIDE)
    page.print(table)
    if network.finite is not None:
        page.print(f"Below the line: one network of width {network.finite.width}.")
    assert run.auto is not None
    if run.auto.importance:
        page.print(f"What matters (by how much {loss_of(data)} without it): {_matter(run.auto)}")
    if grown is not None:
        page.print(f"Learning curve of the NTK, {grown.training}: {grown.sentence}")
    for note in (*data.notes, *run.split.notes, *run.notes):
        page.print(f"Note: {note}.")
    written = [*(str(out / name) for name in FILES), *([str(options.save)] if options.save else [])]
    page.print(f"Wrote {', '.join(written)}")
    for line in next_commands(options, run):
        page.print(f"next: {line}")
