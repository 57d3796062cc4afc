"""What every command does with a terminal: results go to stdout, progress and notes to stderr, both plain in a pipe."""

from __future__ import annotations

import contextlib
import contextvars
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._base.printable import printable
from .._run.interrupt import work_begins
from .._run.progress import progress as in_library

if TYPE_CHECKING:
    from rich.console import Console

_typed: contextvars.ContextVar[str | None] = contextvars.ContextVar("typed", default=None)


@contextlib.contextmanager
def typing(words: Sequence[str]) -> Iterator[None]:
    """While a command runs: what was typed after `nearkernel`."""
    token = _typed.set(shlex.join(["nearkernel", *words]))
    try:
        yield
    finally:
        _typed.reset(token)


def command_line() -> str:
    """What was typed, in full; of a program that calls a command's function, how that program was started."""
    return _typed.get() or shlex.join([Path(sys.orig_argv[0]).name, *sys.orig_argv[1:]])


def console() -> Console:
    """Where results go. Colors appear on a terminal only, and not where NO_COLOR is set."""
    from rich.console import Console

    class Plain(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            shown = (printable(each) if isinstance(each, str) else each for each in objects)
            super().print(*shown, **options)

    return Plain(highlight=False, soft_wrap=True, markup=False)


def print_json(document: object) -> None:
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """A line beside the results: it does not spoil what is piped elsewhere."""
    print(printable(text), file=sys.stderr)


@contextlib.contextmanager
def progress(count: int | None = None) -> Iterator[Progress]:
    """What is being done and for how long, on stderr; gone when done, absent without a terminal.

    `count` things, if their number is known beforehand, or 0 if it will be told later, give a bar.
    """
    from rich import progress as rich
    from rich.console import Console

    work_begins()
    bar = (rich.BarColumn(), rich.MofNCompleteColumn()) if count is not None else ()
    left = (rich.TextColumn("left:"), rich.TimeRemainingColumn()) if count is not None else ()
    columns = (*(() if bar else (rich.SpinnerColumn(),)), rich.TextColumn("{task.description}"), *bar)
    terminal = Console(stderr=True)
    with rich.Progress(
        *columns, rich.TimeElapsedColumn(), *left, console=terminal, transient=True,
        disable=not terminal.is_terminal,
    ) as shown, in_library(False):  # fmt: skip
        task = shown.add_task("starting", total=count or None)
        yield Progress(lambda **what: shown.update(task, **what))


class Progress:
    """Says what is being done, and how much of it is."""

    def __init__(self, update: Callable[..., None]):
        self._update = update

    def say(self, what: str) -> None:
        self._update(description=what)

    def count(self, done: int, total: int) -> None:
        self._update(completed=done, total=total)
