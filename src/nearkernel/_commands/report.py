"""What the reports of all commands share: a page with its settings, chapters for page and terminal, the document."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from .. import _look
from .._base.settings import flag
from .._base.versions import versions
from .._look import Html
from .predict.scores import Score
from .streams import command_line

_WORDS = ("", "method", "verdict")  # columns of words, not of numbers


def page(
    title: str, kicker: str, headline: str, lead: str, *parts: Html, settings: Mapping[str, object] | None
) -> Html:
    """A whole page, which ends with what it was made with."""
    chosen = () if settings is None else (_look.section("Settings", _look.definitions(settings)),)
    ends = (*chosen, _look.reproduce(command_line()), _look.footer(versions()))
    return _look.page(title, kicker, headline, lead, *parts, *ends)


def flags(options: Mapping[str, object], *unsaid: object) -> dict[str, object]:
    """Options as they are typed, without those whose values are `unsaid`."""
    return {flag(name): value for name, value in options.items() if value not in unsaid}


def drawn(title: str, caption: str, svg: str, name: str) -> Html:
    """The one picture of a report."""
    return _look.figure(title, caption, _look.inline(svg, name), wide=True)


def terminal_table(head: Sequence[str], rows: Iterable[Sequence[str]], **look: Any) -> Table:
    """Names at the left, numbers at the right."""
    table = Table(box=box.SIMPLE_HEAD, **look)
    for title in head:
        table.add_column(title, justify="left" if title in _WORDS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


@dataclasses.dataclass(frozen=True)
class Chapter:
    """A part of a report, of the page and of the terminal: a table, lines, and programs under what they are."""

    title: str
    lines: Sequence[str]
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    code: Mapping[str, str] | None = None

    def html(self) -> Html:
        return _look.joined(*self._parts())

    def _parts(self) -> Iterator[Html]:
        if self.title:
            yield _look.section(self.title)
        if self.head:
            yield _look.table(self.head, self.rows)
        if self.lines:
            yield _look.paragraphs(*self.lines)
        for what, text in (self.code or {}).items():
            yield _look.heading(what)
            yield _look.code(text)

    def show(self, console: Console) -> None:
        """Lines that stand alone are indented."""
        if self.title:
            console.print(f"\n{self.title}", style="bold")
        if self.head:
            console.print(terminal_table(self.head, self.rows))
        indent = "" if self.head or self.code is not None else "  "
        for line in self.lines:
            console.print(f"{indent}{line}")
        for what, text in (self.code or {}).items():
            console.print(f"\n  {what}")
            for line in text.split("\n"):
                console.print(f"    {line}")


def document(value: object) -> str:
    """A record as JSON."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n"


def plain(value: Any) -> Any:
    """JSON has no dataclasses, arrays, paths or infinities: records become dicts, arrays lists, the others words."""
    if isinstance(value, Score):
        return {"value": plain(value.value), "standard_error": plain(value.sem)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Path) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
