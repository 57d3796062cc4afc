"""The server's end of a process that computes: started when needed, asked one question at a time, ended when it costs
too much."""

import asyncio
import contextlib
import dataclasses
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping

import anyio
import psutil

from .limits import Limits, Meter, TooMuch
from .worker import BROKEN, HEADER, PROGRESS, STOP, Question

COMMAND = (
    sys.executable,
    "-P",
    "-m",
    "nearkernel.lab.server.worker",
)  # -P: nothing is imported from the current folder
TOO_MUCH = 422
_LOOK = 0.5  # seconds between two looks at what a question has cost
_ENDED = (asyncio.IncompleteReadError, OSError, psutil.NoSuchProcess)


@dataclasses.dataclass(frozen=True)
class Message:
    """A status as in HTTP, or that of progress, and JSON."""

    status: int
    body: bytes


def error(status: int, words: str) -> Message:
    return Message(status, json.dumps({"error": words}).encode())


_BROKEN = error(
    BROKEN, "the process that computes stopped unexpectedly; please report it with the address of this page."
)


class Worker:
    """A process for questions. `polite` ones leave the processors to the others, and end when nobody asks."""

    def __init__(
        self, limits: Limits, environment: Mapping[str, str], command: tuple[str, ...], polite: bool = False
    ):
        self._limits, self._environment, self._command, self._polite = limits, environment, command, polite
        self._started: asyncio.Task[tuple[Process, Message]] | None = None
        self._reading: asyncio.Task[Message] | None = None
        self._idle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begins to start, if that has not been done."""
        if self._started is None:
            self._started = asyncio.ensure_future(self._start())

    async def _start(self) -> tuple[Process, Message]:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            env={**self._environment},
            start_new_session=True,  # Ctrl-C is for the server, which then ends it
        )
        try:
            if self._polite:
                with contextlib.suppress(psutil.Error):
                    psutil.Process(process.pid).nice(10)
            return process, await _message(process)
        except BaseException:
            _kill(process)
            with anyio.CancelScope(shield=True):
                await process.wait()
            raise

    async def ready(self) -> Message:
        """What it says when it has started: all experiments."""
        try:
            return (await self._running())[1]
        except _ENDED:
            self.end()
            return _BROKEN

    async def _running(self) -> tuple[Process, Message]:
        self.start()
        assert self._started is not None
        return await asyncio.shield(self._started)  # which others wait for, too

    async def ask(self, question: Question, seconds: float) -> AsyncGenerator[Message]:
        """Messages of progress, and then the answer. Closed before, it has the work ended."""
        if self._idle is not None:
            self._idle.cancel()
        process, meter, open_ = None, None, True
        try:
            process, _ = await self._running()
            assert process.stdin is not None
            meter = Meter(process.pid, _now())
            process.stdin.write(json.dumps(question).encode() + b"\n")
            while open_:
                message = await self._next(process, _LOOK)
                open_ = message is None or message.status == PROGRESS
                if open_:
                    meter.require(_now(), seconds, self._limits.most_memory)
                if message is not None:
                    yield message
        except TooMuch as trouble:
            open_ = False
            self._renew()
            yield error(TOO_MUCH, str(trouble))
        except _ENDED:
            open_ = False
            self._renew()
            yield _BROKEN
        finally:
            if open_ and process is not None:
                with anyio.CancelScope(shield=True):
                    await self._left(process)
            if meter is not None and self._process() is process:
                self._rest(meter)

    def _process(self) -> Process | None:
        started = self._started
        good = started is not None and started.done() and not started.cancelled() and not started.exception()
        return started.result()[0] if started is not None and good else None

    async def _next(self, process: Process, patience: float) -> Message | None:
        """The next message, if it comes in time. What has been read of it is kept for the next call."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(_message(process))
        reading = self._reading
        done, _ = await asyncio.wait({reading}, timeout=patience)
        if not done:
            return None
        if self._reading is reading:
            self._reading = None
        if reading.cancelled():
            raise BrokenPipeError("the process was ended meanwhile")
        return reading.result()

    async def _left(self, process: Process) -> None:
        """Nobody reads any more: ends the work, or at last the process."""
        until = _now() + self._limits.grace
        try:
            assert process.stdin is not None
            process.stdin.write(STOP)
            while (patience := until - _now()) > 0:
                message = await self._next(process, patience)
                if message is not None and message.status != PROGRESS:
                    return
        except _ENDED:
            pass
        self._renew()

    def _rest(self, meter: Meter) -> None:
        """After a question: a process that has grown is ended, for the compiler forgets nothing."""
        try:
            grown = meter.memory() > self._limits.kept_memory
        except psutil.Error:
            grown = True
        if grown:
            self._renew()
        elif self._polite:
            self._idle = asyncio.get_running_loop().call_later(self._limits.idle, self.end)

    def _renew(self) -> None:
        self.end()
        if not self._polite:
            self.start()

    def end(self) -> None:
        """Ends the process, whatever it does. The next question starts another."""
        if self._idle is not None:
            self._idle.cancel()
        if self._reading is not None:
            self._reading.cancel()
        if (process := self._process()) is not None:
            _kill(process)
        elif self._started is not None:
            self._started.cancel()
        self._started = self._reading = self._idle = None

    async def ended(self) -> None:
        """Ends it and waits until it is gone."""
        process, started = self._process(), self._started
        self.end()
        if process is not None:
            await process.wait()
        elif started is not None:
            await asyncio.wait({started})


async def _message(process: Process) -> Message:
    assert process.stdout is not None
    status, size = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
    return Message(status, await process.stdout.readexactly(size))


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def _now() -> float:
    return asyncio.get_running_loop().time()
