"""A run of one claim as a record: made, written beside its figure, found again."""

from __future__ import annotations

import csv
import io
import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path

from ..._base.versions import versions
from ...claims import Claim, Result, find
from ...claims._drawing import picture
from ..predict.reporting.output import write_together
from ..report import plain
from .rows import Record

_MARKS = ("claim", "settings", "seed", "fingerprint", "versions")  # what makes two runs the same run


def marks(claim: Claim, seed: int) -> Record:
    values = (claim.name(), claim.values(), seed, claim.fingerprint(), versions())
    return dict(zip(_MARKS, values, strict=True))


def files(name: str) -> tuple[str, ...]:
    """The record comes last: where it is, the others are."""
    return (f"{name}.png", f"{name}.svg", f"{name}.csv", f"{name}.json")


def finished(claim: Claim, seed: int, out: Path) -> Record | None:
    """The record of the same run, if `out` holds it whole."""
    names = files(claim.name())
    if not all((out / name).is_file() for name in names):
        return None
    try:
        record = json.loads((out / names[-1]).read_text("utf-8"))
        same = {mark: record[mark] for mark in _MARKS} == marks(claim, seed)
        return record if same and {"verdict", "rows", "seconds"} <= set(record) else None
    except (ValueError, KeyError, TypeError):
        return None


def run(name: str, settings: Mapping[str, object], seed: int, out: Path | None) -> Record:
    """Runs a claim and writes its files. What an experiment raises is a record too: verdict "failed"."""
    claim = find(name)(**settings)
    record: Record = {**marks(claim, seed), "topic": claim.topic(), "statement": claim.statement}
    record |= {"source": claim.source, "erratum": claim.told_erratum()}
    start = time.perf_counter()
    try:
        result = claim.run(seed)
    except Exception as error:
        return record | {"verdict": "failed", "rows": [], "seconds": 0.0, "error": f"{error!r}"}
    record |= {"verdict": result.verdict, "rows": plain([row.as_dict() for row in result.rows])}
    record |= {"seconds": round(time.perf_counter() - start, 2)}
    if out is not None:
        png, svg = picture(claim, result)
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        write_together(out, dict(zip(files(name), (png, svg, _csv(result), text), strict=True)))
    return record


def _csv(result: Result) -> str:
    """Columns of `data` side by side; shorter ones end in blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.data)
    columns = (plain(column) for column in result.data.values())
    writer.writerows(itertools.zip_longest(*columns, fillvalue=""))
    return text.getvalue()
