"""Who computes: processes for answers and for runs, each kind behind its line, and the programs they have compiled."""

import asyncio
import contextlib
import functools
import json
import os
import tempfile
from collections.abc import AsyncGenerator, Hashable
from typing import Any

from ..._run.programs import on_by_default
from .limits import Limits
from .process import COMMAND, Message, Worker
from .queue import Line
from .worker import DONE, READY, Question

PLACES = 2  # for answers, and as many for runs
_PROGRAMS = 64 << 20  # bytes of compiled programs that are kept
_SHAPES = 4096  # remembered
_SLOW = 3.0  # seconds: more than an answer takes that compiles nothing


class Crew:
    """Answers the questions of pages, in turn."""

    def __init__(self, limits: Limits, command: tuple[str, ...] = COMMAND):
        self._limits, self._environment = limits, dict(os.environ)
        worker = functools.partial(Worker, limits, self._environment, command)
        self._answers = [worker() for _ in range(PLACES)]
        self._runs = [worker(polite=True) for _ in range(PLACES)]
        self._line, self.runs = Line(PLACES, limits.waiting), Line(PLACES, limits.waiting)
        self._folder: tempfile.TemporaryDirectory | None = None
        self._about: Message | None = None
        self._kinds: dict[str, dict[str, str]] = {}  # experiment -> setting -> kind
        self._quick: dict[Hashable, bool] = {}  # shapes asked for, and whether the last answer was quick

    def start(self) -> None:
        """Starts the first process. What one compiles serves the others, and those that come after it."""
        kept = on_by_default(self._environment)
        if not kept and "JAX_COMPILATION_CACHE_DIR" not in self._environment:
            self._folder = tempfile.TemporaryDirectory(prefix="nearkernel-lab-", ignore_cleanup_errors=True)
            self._environment |= {
                "JAX_COMPILATION_CACHE_DIR": self._folder.name,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            }
        self._answers[0].start()

    async def end(self) -> None:
        await asyncio.gather(*(worker.ended() for worker in (*self._answers, *self._runs)))
        if self._folder is not None:
            self._folder.cleanup()

    async def about(self) -> Message:
        """All experiments, as the first process tells them when it has started."""
        if self._about is None:
            found = await self._answers[0].ready()
            if found.status != READY:
                return found
            self._about = Message(DONE, found.body)
            self._kinds = {
                each["name"]: {control["name"]: control["kind"] for control in each["controls"]}
                for each in json.loads(found.body)
            }
        return self._about

    async def answer(self, page: Hashable, question: Question) -> Message:
        """What a process answers, when it is the page's turn. Raises what `Line.turn` raises."""
        if (about := await self.about()).status != DONE:
            return about
        shape = self._shape(question)
        async with self._line.turn(page, long=not self._quick.get(shape, False)) as place:
            asked = asyncio.get_running_loop().time()
            async with contextlib.aclosing(self._answers[place].ask(question, self._limits.seconds)) as found:
                message = [message async for message in found][-1]
            self._remember(shape, asyncio.get_running_loop().time() - asked)
            return message

    def check(self, place: int, question: Question) -> AsyncGenerator[Message]:
        """The messages of a run, at a place that the line of runs has given."""
        return self._runs[place].ask(question, self._limits.run_seconds)

    def _shape(self, question: Question) -> Hashable:
        """What an answer is compiled for: settings that are not smooth, and of points how many there are."""
        kinds = self._kinds.get(question.get("name", ""), {})

        def size(name: str, text: str) -> Any:
            sizes = {"number": None, "points": text.count(";"), "table": text.count("\n")}
            return sizes.get(kinds.get(name, ""), text)

        typed = question.get("typed", {})
        return (
            question["ask"],
            question.get("name"),
            *((name, size(name, typed[name])) for name in sorted(typed)),
        )

    def _remember(self, shape: Hashable, seconds: float) -> None:
        """The first answer of a shape may have compiled; if a later one is slow, the next will be slow as well."""
        known = self._quick.pop(shape, None)
        self._quick[shape] = known is None or seconds < _SLOW
        if known is None:
            if len(self._quick) > _SHAPES:
                del self._quick[next(iter(self._quick))]
            if self._folder is not None:
                trim(self._folder.name, _PROGRAMS)


def trim(folder: str, most: int) -> None:
    """Empties a folder of more than `most` bytes."""
    files = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):  # another process may have removed it
            files.append((entry.path, entry.stat().st_size))
    if sum(size for _, size in files) > most:
        for path, _ in files:
            with contextlib.suppress(OSError):
                os.unlink(path)
