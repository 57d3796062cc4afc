"""What `nearkernel claims list|show|run` does."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ..._run.interrupt import children_ignore_it, end_with_parent, work_begins
from ...claims import Claim, every, find
from ..predict.reporting.output import check_writable, write_together
from ..streams import console, note, print_json
from . import records, report
from .rows import HEADS, Record, cells, row_of

_COLORS = {"confirmed": "green", "refuted": "red", "failed": "red"}


def list_claims(as_json: bool) -> None:
    if as_json:
        print_json([_about(claim) for claim in every()])
        return
    topic = None
    page = console()
    for claim in every():
        if claim.topic() != topic:
            page.print("\n" * (topic is not None) + claim.topic(), style="bold")
            topic = claim.topic()
        page.print(f"  {claim.name():<28}{claim.statement}")


def show(name: str, as_json: bool) -> None:
    claim = find(name)
    if as_json:
        print_json({**_about(claim), "python": claim().code()})
        return
    page = console()
    page.print(f"{name} ({claim.topic()})", style="bold")
    lines = [claim.statement, "", f"Source: {claim.source}"]
    lines += [f"Erratum: {claim.told_erratum()}"] * bool(claim.erratum)
    lines += ["", *(f"    {line}" for line in claim.formula.splitlines())]
    lines += ["", "Settings, as flags of `nearkernel claims run`:"] if claim.settings() else []
    for each in claim.settings():
        quick = f", quick {each.quick:g}" if each.quick != each.default else ""
        flag = f"{each.flag} {each.default:g}"
        lines.append(f"  {flag:<26}{each.help} [{each.low:g} to {each.high:g}{quick}]")
    lines += ["", "In Python:", "", textwrap.indent(claim().code(), "    ")]
    page.print("\n".join(lines))


def _about(claim: type[Claim]) -> dict[str, object]:
    settings = [
        {"name": each.name, "flag": each.flag, "type": each.kind.__name__, "default": each.default,
         "quick": each.quick, "low": each.low, "high": each.high, "help": each.help}
        for each in claim.settings()
    ]  # fmt: skip
    about = {"name": claim.name(), "topic": claim.topic(), "statement": claim.statement}
    return about | {
        "source": claim.source, "formula": claim.formula, "erratum": claim.told_erratum(), "settings": settings
    }  # fmt: skip


def chosen(words: Sequence[str], everything: bool, quick: bool) -> list[Claim]:
    """The claims named in `words`, which may hold flags of their settings if one claim is named."""
    names, typed = _parted(words)
    if everything and (names or typed):
        raise ValueError(f"--all runs every claim with its default settings: leave out {words[0]}.")
    if not everything and not names:
        raise ValueError("name the claims to run, or give --all. See `nearkernel claims list`.")
    if typed and len(names) > 1:
        raise ValueError(f"--{next(iter(typed))} is a setting of one claim, but {len(names)} are named.")
    found = list(every()) if everything else [find(name) for name in dict.fromkeys(names)]
    return [claim.with_settings(typed, quick) for claim in found]


def _parted(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Names, and settings typed as `--name value` or `--name=value`."""
    names: list[str] = []
    typed: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            names.append(word)
            continue
        flag, joined, value = word.partition("=")
        value = value if joined else next(rest, "")
        if not value:
            raise ValueError(f"{flag} needs a value.")
        typed[flag.lstrip("-").replace("-", "_")] = value
    return names, typed


def run(claims: Sequence[Claim], seed: int, out: Path | None, jobs: int, as_json: bool) -> int:
    """0 if all are confirmed, 1 if not; 130 if interrupted, and then what was finished is kept."""
    if out is not None:
        names = (name for claim in claims for name in records.files(claim.name()))
        check_writable(out, (report.NAME, *names))
    work_begins()
    page, start = console(), time.perf_counter()
    found: dict[str, Record] = {}

    def take(record: Record, again: bool = False) -> None:
        found[record["claim"]] = record
        if not as_json:
            _print_record(page, record, f"{len(found)}/{len(claims)}", again)

    try:
        todo = []
        for claim in claims:
            record = records.finished(claim, seed, out) if out is not None else None
            todo += [claim] if record is None else []
            if record is not None:
                take(record, again=True)
        for record in _worked(todo, seed, out, jobs):
            take(record)
    except KeyboardInterrupt:
        kept = "; the same command resumes from there" if out is not None else ""
        note(f"interrupted: {len(found)} of {len(claims)} claims are finished{kept}")
        _write_report(out, found)
        return 130
    _write_report(out, found)
    in_order = [found[claim.name()] for claim in claims]
    bad = [record for record in in_order if record["verdict"] != "confirmed"]
    if as_json:
        print_json(in_order)
    else:
        written = f" Report, figures and data are in {out}." if out is not None else ""
        count = f"{len(in_order) - len(bad)} of {len(in_order)} claims confirmed"
        page.print(f"{count} in {time.perf_counter() - start:.0f} s.{written}")
    for record in bad:
        note(f"{record['claim']}: {_what_differs(record)}")
    return 1 if bad else 0


def _write_report(out: Path | None, found: dict[str, Record]) -> None:
    """Of everything in `out`, if that is more than before."""
    if out is None or not found:
        return
    html = report.report_html(report.gathered(out, found), out)
    path = out / report.NAME
    if not path.is_file() or path.read_text("utf-8") != html:
        write_together(out, {report.NAME: html})


def _worked(claims: Sequence[Claim], seed: int, out: Path | None, jobs: int) -> Iterator[Record]:
    """Records as they are finished."""
    jobs = min(jobs, len(claims))
    status = Console(stderr=True)
    if jobs <= 1:
        for claim in claims:
            with status.status(f"{claim.name()} ...") if status.is_terminal else contextlib.nullcontext():
                record = records.run(claim.name(), claim.values(), seed, out)
            yield record
        return
    # Spawned, because JAX has threads, which do not survive a fork.
    pool = concurrent.futures.ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), initializer=end_with_parent
    )
    try:
        with children_ignore_it():
            futures = [pool.submit(records.run, each.name(), each.values(), seed, out) for each in claims]
        for future in concurrent.futures.as_completed(futures):
            yield future.result()
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        pool.shutdown()  # now there is nothing to wait for but its own thread
        raise


def _what_differs(record: Record) -> str:
    if record["verdict"] == "failed":
        return f"failed, {record['error']}"
    return "refuted. " + "; ".join(row.told for row in map(row_of, record["rows"]) if not row.ok)


def _print_record(page: Console, record: Record, count: str, again: bool) -> None:
    seconds = "as before" if again else f"{record['seconds']:.1f} s"
    head = Text(f"[{count}] {record['claim']}: ", style="bold")
    head.append(record["verdict"], style=f"bold {_COLORS[record['verdict']]}").append(
        f" ({seconds})", style="not bold"
    )
    page.print(head)
    page.print(f"  {record['statement']}")
    if record["verdict"] == "failed":
        page.print(f"  {record['error']}\n")
        return
    rows = [row_of(fields) for fields in record["rows"]]
    lines = [HEADS, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line, row in zip(lines, (None, *rows), strict=True):
        words = (
            f"{line[0]:<{widths[0]}}",
            *(f"{word:>{n}}" for word, n in zip(line[1:], widths[1:], strict=True)),
        )
        style = "dim" if row is None else "" if row.ok else "red"
        page.print(f"    {'   '.join(words)}".rstrip(), style=style)
    page.print()
