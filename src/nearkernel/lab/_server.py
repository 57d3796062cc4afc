"""The lab's web server: pages, answers as JSON, long runs as a stream of lines. It keeps nothing about its users."""

import asyncio
import functools
import importlib.util
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..claims import find as find_claim
from ._claims import claim_about, claim_events, claims_about
from ._describe import about
from ._experiment import Experiment, Stopped, Watch
from ._memory import tidy
from ._picture import Answer, plain
from ._registry import NAMES, find

LONGEST_QUERY = 2000
PAGES = (*NAMES, "claims")
_HEADERS = {
    # No code, picture or font from anywhere else; the plotting library writes styles into elements.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class _Busy:
    """At most two answers and two long runs at a time, so that a crowd waits instead of filling the memory."""

    def __init__(self) -> None:
        self.answers = anyio.CapacityLimiter(2)
        self.runs = asyncio.Semaphore(2)


def application(hosts: Sequence[str] = ("127.0.0.1", "localhost")) -> Starlette:
    """The lab, for requests addressed to one of `hosts` ("*" for any)."""
    busy = _Busy()
    routes = [
        Route("/", _page),
        Route("/static/{name}", _static),
        Route("/plotly.js", _plotly),
        Route("/api/experiments", _guarded(_experiments)),
        Route("/api/experiments/{name}", _guarded(functools.partial(_answer, busy=busy))),
        Route("/api/experiments/{name}/check", _guarded(functools.partial(_check, busy=busy))),
        Route("/api/claims", _guarded(_claims)),
        Route("/api/claims/{name}", _guarded(_claim)),
        Route("/api/claims/{name}/check", _guarded(functools.partial(_check_claim, busy=busy))),
        *(Route(f"/{name}", _page) for name in PAGES),
    ]
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)),
        Middleware(GZipMiddleware, minimum_size=2000),
    ]
    return Starlette(routes=routes, middleware=middleware, exception_handlers={500: _unexpected})


def _guarded(endpoint: Callable) -> Callable:
    """Bad input costs the user one line."""

    async def answer(request: Request) -> Response:
        # A page elsewhere could keep this machine busy.
        if request.headers.get("sec-fetch-site") == "cross-site":
            return _json({"error": "answers are for the lab's own page."}, 403)
        try:
            if len(request.url.query) > LONGEST_QUERY:
                raise ValueError(
                    f"the address is longer than {LONGEST_QUERY} characters; use fewer settings."
                )
            return await endpoint(request)
        except (ValueError, TypeError, OverflowError) as error:
            return _json({"error": " ".join(str(error).removeprefix("--").split())}, 400)

    return answer


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(value, status, headers=_HEADERS)


async def _unexpected(request: Request, error: Exception) -> Response:
    return _json(
        {"error": f"unexpected {error!r:.300}; please report it with the address of this page."}, 500
    )


def _typed(request: Request) -> dict[str, str]:
    typed = dict(request.query_params)
    if len(typed) != len(request.query_params.multi_items()):
        raise ValueError("a setting is given twice in the address; leave one.")
    return typed


def _chosen(request: Request) -> Experiment:
    return find(request.path_params["name"]).with_settings(_typed(request))


async def _page(request: Request) -> Response:
    page = files(__package__).joinpath("static/index.html").read_text(encoding="utf-8")
    return HTMLResponse(page, headers=_HEADERS)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "look.css":  # the look of the reports
        path = files("nearkernel._look").joinpath("look.css")
    else:
        path = files(__package__).joinpath("static", name)
    kind = _TYPES.get(Path(name).suffix)
    if kind is None or not path.is_file():
        return _json({"error": f"no file is named {name[:60]!r}."}, 404)
    return Response(path.read_bytes(), media_type=kind, headers=_HEADERS)


async def _plotly(request: Request) -> Response:
    found = importlib.util.find_spec("plotly")
    assert found is not None and found.origin is not None
    path = Path(found.origin).parent / "package_data" / "plotly.min.js"
    headers = {**_HEADERS, "Cache-Control": "max-age=86400"}
    return FileResponse(path, media_type="text/javascript", headers=headers)


async def _experiments(request: Request) -> Response:
    return _json(await anyio.to_thread.run_sync(lambda: [about(find(name)) for name in NAMES]))


async def _answer(request: Request, busy: _Busy) -> Response:
    chosen = _chosen(request)

    def work() -> dict[str, Any]:
        shown = _shown(chosen.theory(), chosen.python())
        tidy()
        return shown

    return _json(await anyio.to_thread.run_sync(work, limiter=busy.answers))


def _shown(answer: Answer, python: str) -> dict[str, Any]:
    return {**plain(answer), "csv": [picture.csv() for picture in answer.pictures], "python": python}


async def _check(request: Request, busy: _Busy) -> Response:
    chosen = _chosen(request)
    if not chosen.button:
        raise ValueError(f"{chosen.name()} has nothing to run.")
    return _stream(_events(chosen), busy)


class _Lines(StreamingResponse):
    """Closes its generator when the reader leaves, at whatever point; left alone, that would wait for the collector."""

    async def stream_response(self, send: Any) -> None:
        try:
            await super().stream_response(send)
        finally:
            with anyio.CancelScope(shield=True):
                await self.body_iterator.aclose()  # type: ignore[attr-defined]


def _stream(events: AsyncIterator[dict[str, Any]], busy: _Busy) -> Response:
    """A line of JSON an event. When the reader leaves, the generator is closed, which ends the work."""

    async def lines() -> AsyncIterator[str]:
        if busy.runs.locked():
            yield json.dumps({"share": 0.0, "words": "waiting for other runs to end"}) + "\n"
        async with busy.runs:
            try:
                async for event in events:
                    yield json.dumps(event) + "\n"
            finally:
                await events.aclose()  # type: ignore[attr-defined]
                tidy()

    return _Lines(lines(), media_type="application/x-ndjson", headers=_HEADERS)


async def _events(chosen: Experiment) -> AsyncIterator[dict[str, Any]]:
    """What a check tells on its way; it works in a thread of its own."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def tell(event: dict[str, Any] | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    @functools.cache
    def python() -> str:
        return chosen.python(checked=True)

    def show(share: float, words: str, answer: Answer | None) -> None:
        event = {"share": share, "words": words}
        tell(event if answer is None else {**event, "answer": _shown(answer, python())})

    watch = Watch(show)

    def work() -> None:
        try:
            show(1.0, "done", chosen.check(watch))
        except Stopped:
            pass
        except Exception as error:
            tell({"error": " ".join(str(error).split()) or repr(error)})
        finally:
            tell(None)

    threading.Thread(target=work, daemon=True).start()
    event: dict[str, Any] | None = {}
    try:
        while (event := await queue.get()) is not None:
            yield event
    finally:
        watch.stop()
        with anyio.CancelScope(shield=True):  # a run that was left keeps its place until it has really ended
            while event is not None:
                event = await queue.get()


async def _claims(request: Request) -> Response:
    return _json(await anyio.to_thread.run_sync(claims_about))


async def _claim(request: Request) -> Response:
    return _json(await anyio.to_thread.run_sync(claim_about, request.path_params["name"]))


async def _check_claim(request: Request, busy: _Busy) -> Response:
    claim = await anyio.to_thread.run_sync(find_claim, request.path_params["name"])
    return _stream(claim_events(claim.with_settings(_typed(request), quick=True)), busy)
