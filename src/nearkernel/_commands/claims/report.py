"""`report.html` of a folder of records: every claim in it with its verdict, rows and figure."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from ... import _look
from ..._base.printable import escape
from ..._base.settings import flag
from ..._base.versions import versions
from ..._look import Html
from ...claims import find
from ...claims._registry import modules
from ..report import page
from .rows import HEADS, Record, cells, row_of

NAME = "report.html"
_COLORS = {"confirmed": "good", "refuted": "bad", "failed": "bad"}


def gathered(out: Path, new: Mapping[str, Record]) -> list[Record]:
    """The records in `out`, of this run (`new`) and of others, in the order of `claims list`."""
    found = dict(new)
    for name in modules():
        path = out / f"{name}.json"
        if name not in found and path.is_file():
            try:
                record = json.loads(path.read_text("utf-8"))
                _section(record, "")
                found |= {name: record} if record["claim"] == name else {}
            except (ValueError, KeyError, TypeError):
                continue  # not a record, or a damaged one, which a run would replace
    order = [*modules(), *found]
    return sorted(found.values(), key=lambda record: order.index(record["claim"]))


def report_html(records: list[Record], out: Path) -> Html:
    """The whole page. `out` has the figures."""
    good = sum(record["verdict"] == "confirmed" for record in records)
    seconds = sum(record["seconds"] for record in records)
    rows = sum(len(record["rows"]) for record in records)
    topics = [
        (topic, list(group)) for topic, group in itertools.groupby(records, lambda record: record["topic"])
    ]
    return page(
        "nearkernel: claims",
        "nearkernel claims run",
        f"{good} of {len(records)} statements of the theory agree with experiment.",
        f"{rows} comparisons, made in {seconds:.0f}\u00a0s of experiments. A row agrees within 4 standard errors (σ), "
        "or within the relative limit that is shown; 'not' marks an alternative formula that the experiment excludes.",
        _index(topics),
        *(
            _look.section(topic, *(_section(record, _svg(record, out)) for record in group))
            for topic, group in topics
        ),
        settings=None,
    )


def _index(topics: Iterable[tuple[str, list[Record]]]) -> Html:
    link = lambda name, verdict: (
        f'<a href="#{escape(name)}">{escape(name)}</a>'
        + ("" if verdict == "confirmed" else f' <b class="bad">{escape(verdict)}</b>')
    )
    return _look.definitions(
        {
            topic: Html(" · ".join(link(record["claim"], record["verdict"]) for record in group))
            for topic, group in topics
        }
    )


def _svg(record: Record, out: Path) -> str:
    path = out / f"{record['claim']}.svg"
    return path.read_text("utf-8") if path.is_file() and record["verdict"] != "failed" else ""


def _section(record: Record, svg: str) -> Html:
    name, verdict = record["claim"], record["verdict"]
    title = f'{escape(name)} <span class="{_COLORS[verdict]}">{escape(verdict)}</span>'
    about = {"source": record["source"], "erratum": record["erratum"], "formula": _formula(name)}
    about["settings"] = _typed(record["settings"])
    about |= {
        "seed": record["seed"],
        "seconds": f"{record['seconds']:.1f}",
        "what went wrong": record.get("error"),
    }
    if record["versions"] != versions():
        about["made with"] = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
    about["again"] = Html(f"<code>{escape(_again(record))}</code>")
    rows = [
        [Html(f'<span class="{"good" if row.ok else "bad"}">{escape(cell)}</span>') if i == 4 else cell
         for i, cell in enumerate(cells(row))]
        for row in map(row_of, record["rows"])
    ]  # fmt: skip
    drawn = [_look.figure(f"figure of {name}", "", _look.inline(svg, name))] if svg else []
    return _look.joined(
        Html(f'<article id="{escape(name)}"><h3>{title}</h3>'),
        _look.paragraphs(record["statement"]),
        *([_look.table(HEADS, rows)] if rows else []),
        _look.beside(
            *drawn, _look.definitions({key: value for key, value in about.items() if value not in ("", None)})
        ),
        Html("</article>"),
    )


def _formula(name: str) -> Html:
    """As the claim has it now; a claim that is gone has none."""
    try:
        return _look.formula(find(name).formula)
    except ValueError:
        return Html("")


def _typed(settings: Mapping[str, object]) -> str:
    return " ".join(f"{flag(name)} {value}" for name, value in settings.items())


def _again(record: Record) -> str:
    """The command that makes this record, whatever its settings came from."""
    typed = [word for name, value in record["settings"].items() for word in (flag(name), str(value))]
    return shlex.join(["nearkernel", "claims", "run", record["claim"], *typed, "--seed", str(record["seed"])])
