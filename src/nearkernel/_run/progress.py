"""Progress of long computations: a line on a terminal or in a notebook, a function of the caller's, or nothing.

A function opens a `task` and tells it what is done. Functions that call others are one task: the outermost.
"""

import contextlib
import contextvars
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")
_PATIENCE = 2.0  # seconds before anything is shown: most calls are over by then
_INTERVAL = 0.2  # seconds between two lines


class Report(NamedTuple):
    """How far a long call is.

    **Fields:** `task`, its name; `done` of `total`, in steps, draws or the like (`total` is infinite if unknown);
    `seconds` since it began; `left`, seconds to the end at this rate, infinite if unknown; `note`, a few words or "".
    """

    task: str
    done: float
    total: float
    seconds: float
    left: float
    note: str

    def __str__(self) -> str:
        parts = [
            f"{self.done:,.0f} of {self.total:,.0f}" if math.isfinite(self.total) else f"{self.done:,.0f}"
        ]
        if self.total == 1.0:
            parts = [f"{self.done:.0%}"]
        if math.isfinite(self.left):
            parts.append(f"{_spoken(self.left)} left")
        return f"{self.task}: {', '.join([*parts, self.note] if self.note else parts)}"


Watch = Callable[[Report], object]
_choice: contextvars.ContextVar["Watch | bool"] = contextvars.ContextVar("nearkernel_progress", default=True)
_current: contextvars.ContextVar["_Task | None"] = contextvars.ContextVar("nearkernel_task", default=None)


@contextlib.contextmanager
def progress(watch: "Watch | bool" = True) -> Iterator[None]:
    """A context manager that sets how the progress of long calls is shown.

    **Arguments:** `watch`: True (the default), a line on stderr if that is a terminal, or in the output of a
    notebook, for calls longer than a second; False, nothing; or a function, called with a `Report` (`task`, `done`,
    `total`, `seconds`, `left`, `note`) several times per second.
    """
    if not (isinstance(watch, bool) or callable(watch)):
        raise TypeError(f"`watch` must be True, False or a function of a report; got {watch!r}.")
    token = _choice.set(watch)
    try:
        yield
    finally:
        _choice.reset(token)


@contextlib.contextmanager
def task(name: str, total: float = math.inf) -> Iterator[None]:
    """A long call, which says how far it is by `report`; inside of another task it is a part of that one."""
    choice = _choice.get()
    if _current.get() is not None or choice is False:
        yield
        return
    watch = _line() if choice is True else choice
    if watch is None:
        yield
        return
    own = _Task(name, total, watch, _PATIENCE if choice is True else 0.0)
    token = _current.set(own)
    try:
        yield
    finally:
        _current.reset(token)
        own.end()


def report(name: str, done: float, note: str = "", total: float | None = None) -> None:
    """Tells the task of this name, if it is the one that is shown, how much is done."""
    reporter(name)(done, note, total)


def reporter(name: str) -> Callable[..., None]:
    """`report` for other threads, which do not know the task."""
    current = _current.get()
    if current is not None and current.name == name:
        return current.tell
    return lambda done, note="", total=None: None


def watched(name: str, total: float, parts: Iterable[_T], size: Callable[[_T], float]) -> Iterator[_T]:
    """Passes `parts` on and reports the sum of their sizes.

    In an interactive session Ctrl-C ends them early instead of losing what there is; whoever takes them sees fewer.
    """
    done, parts = 0.0, iter(parts)
    with task(name, total):
        while True:
            try:
                part = next(parts)
            except StopIteration:
                return
            except KeyboardInterrupt:
                if not (done and interactive()):
                    raise
                return
            done += size(part)
            report(name, done)
            yield part


def interactive() -> bool:
    """Whether a person types at a prompt or in a notebook; programs are left to end at Ctrl-C."""
    return hasattr(sys, "ps1") or _notebook() is not None


class _Task:
    def __init__(self, name: str, total: float, watch: Watch, patience: float):
        self.name = name
        self._total = total
        self._watch = watch
        self._begin = time.perf_counter()
        self._next = self._begin + patience
        self._lock = threading.Lock()  # parts may be done by several threads
        self._told = False

    def tell(self, done: float, note: str = "", total: float | None = None) -> None:
        now = time.perf_counter()
        with self._lock:
            if now < self._next:
                return
            self._next, self._told = now + _INTERVAL, True
        total, seconds = self._total if total is None else total, now - self._begin
        left = seconds * (total - done) / done if done > 0 else math.inf
        self._watch(Report(task=self.name, done=done, total=total, seconds=seconds, left=left, note=note))

    def end(self) -> None:
        if self._told and isinstance(self._watch, _Line):
            self._watch.close()


class _Line:
    """One line that is written again and again, and is gone in the end."""

    def __init__(self) -> None:
        self._width = 0
        self._shown = None
        self._display = _notebook()

    def __call__(self, what: Report) -> None:
        self._write(str(what))

    def close(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if self._display is None:
            sys.stderr.write(f"\r{text:<{self._width}}" + "" if text else f"\r{'':<{self._width}}\r")
            sys.stderr.flush()
            self._width = len(text)
        elif self._shown is None:
            self._shown = self._display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._shown.update({"text/plain": text}, raw=True)


def _line() -> _Line | None:
    terminal = getattr(sys.stderr, "isatty", lambda: False)()
    return _Line() if terminal or _notebook() is not None else None


def _notebook() -> Callable | None:
    """The function by which a notebook displays; None outside of one."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display

    return display


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
