"""What is computed on request: answers, and runs as streams. Work ends when its reader leaves."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message as Sent
from starlette.types import Send

from ..._base.spelling import nearest
from ..claim_run import claim_events
from ..experiment_list import NAMES
from .crew import Crew
from .gate import refusal
from .limits import Limits
from .process import Message
from .queue import Full, Replaced
from .worker import DONE, Question

PAGE = "X-Lab-Page"  # a page's own name, by which its newer question replaces its older one
_LEFT = 499  # nobody reads it
_PATIENCE = 60.0  # seconds in which a reader must take a line
Endpoint = Callable[[Request], Coroutine[None, None, Response]]


def guarded(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """Bad input costs the user one line."""

    async def answer(request: Request) -> Response:
        if request.method != "GET":  # nothing is computed for its headers alone
            raise HTTPException(405, headers={"Allow": "GET"})
        try:
            return await _unless_left(request, endpoint(request))
        except ValueError as error:
            return refusal(request.scope, 400, str(error))
        except Replaced:
            return refusal(request.scope, 409, "a newer request of this page has replaced this one.")
        except Full:
            words = "too many requests are waiting; try again in a moment."
            return refusal(request.scope, 503, words, {"Retry-After": "5"})

    return answer


async def _unless_left(request: Request, work: Coroutine[None, None, Response]) -> Response:
    """What `work` gives, or nothing as soon as nobody reads it."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(left())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else Response(status_code=_LEFT)
    finally:
        working.cancel()
        leaving.cancel()


class Asking:
    """The addresses below /api."""

    def __init__(self, crew: Crew, limits: Limits):
        self._crew, self._limits = crew, limits

    async def experiments(self, request: Request) -> Response:
        return _sent(await self._crew.about())

    async def answer(self, request: Request) -> Response:
        return _sent(await self._asked(request, "answer", name=_experiment(request), typed=_typed(request)))

    async def claims(self, request: Request) -> Response:
        return _sent(await self._asked(request, "claims"))

    async def claim(self, request: Request) -> Response:
        return _sent(await self._asked(request, "claim", name=request.path_params["name"]))

    async def check(self, request: Request) -> Response:
        question = {"name": _experiment(request), "typed": _typed(request)}
        found = await self._asked(request, "runnable", **question)
        if found.status != DONE:
            return _sent(found)
        return self._stream(request, lambda place: self._check_lines(place, {"ask": "check", **question}))

    async def check_claim(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = await self._asked(request, "flags", name=name, typed=_typed(request))
        if found.status != DONE:
            return _sent(found)
        return self._stream(request, lambda place: self._claim_lines(name, json.loads(found.body)))

    async def _asked(self, request: Request, ask: str, **more: object) -> Message:
        """What a process answers. Of each kind, a page has one question at a time."""
        return await self._crew.answer((_asker(request), ask), {"ask": ask, **more})

    async def _check_lines(self, place: int, question: Question) -> AsyncGenerator[bytes]:
        async with contextlib.aclosing(self._crew.check(place, question)) as messages:
            async for message in messages:
                yield message.body + b"\n"

    async def _claim_lines(self, name: str, flags: list[str]) -> AsyncGenerator[bytes]:
        async with contextlib.aclosing(claim_events(name, flags, self._limits.run_seconds)) as events:
            async for event in events:
                yield _line(event)

    def _stream(self, request: Request, run: Callable[[int], AsyncGenerator[bytes]]) -> Response:
        """A line of JSON an event. When the reader leaves, the generator is closed, which ends the work."""
        page, line = _asker(request), self._crew.runs

        async def lines() -> AsyncGenerator[bytes]:
            if line.crowded:
                yield _line({"share": 0.0, "words": "waiting for other runs to end"})
            try:
                async with line.turn(page) as place, contextlib.aclosing(run(place)) as found:
                    async for each in found:
                        yield each
            except Replaced:
                yield _line({"error": "a newer run of this page has replaced this one."})
            except Full:
                yield _line({"error": "too many runs are waiting; try again later."})

        return _Lines(lines(), media_type="application/x-ndjson")


class _Lines(StreamingResponse):
    """Closes its generator when the reader leaves, or takes nothing for long, at whatever point the generator is."""

    async def stream_response(self, send: Send) -> None:
        async def patiently(message: Sent) -> None:
            async with asyncio.timeout(_PATIENCE):
                await send(message)

        try:
            with contextlib.suppress(TimeoutError):
                await super().stream_response(patiently)
        finally:
            with anyio.CancelScope(shield=True):
                await self.body_iterator.aclose()  # type: ignore[attr-defined]


def _sent(message: Message) -> Response:
    return Response(message.body, message.status, media_type="application/json")


def _line(event: dict[str, object]) -> bytes:
    return json.dumps(event).encode() + b"\n"


def _experiment(request: Request) -> str:
    name = request.path_params["name"]
    if name not in NAMES:
        raise ValueError(f"no experiment is named {name[:60]!r}.{nearest(name[:60], NAMES)}")
    return name


def _typed(request: Request) -> dict[str, str]:
    typed = dict(request.query_params)
    if len(typed) != len(request.query_params.multi_items()):
        raise ValueError("a setting is given twice in the address; remove one.")
    return typed


def _asker(request: Request) -> Hashable:
    """Who asks: a page by its own name, anything else as itself alone."""
    name = request.headers.get(PAGE)
    if name is not None and not re.fullmatch("[0-9A-Za-z-]{1,64}", name):
        raise ValueError(f"{PAGE}: give 1 to 64 letters, digits and hyphens.")
    return object() if name is None else name
