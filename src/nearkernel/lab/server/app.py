"""The lab's web server: pages, answers as JSON, long runs as a stream of lines. It computes nothing itself, and keeps
nothing about its users but the questions that wait."""

import contextlib
from collections.abc import AsyncIterator, Sequence

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..experiment_list import NAMES
from ..static_files import File, plotly, static
from .asking import Asking, guarded
from .crew import Crew
from .gate import Gate, refusal
from .limits import Limits
from .process import COMMAND

PAGES = (*NAMES, "claims")


def application(
    hosts: Sequence[str] = ("127.0.0.1", "localhost"),
    limits: Limits = Limits(),
    command: tuple[str, ...] = COMMAND,
) -> ASGIApp:
    """The lab, for requests addressed to one of `hosts`; `command` starts a process that computes."""
    crew = Crew(limits, command)
    asking = Asking(crew, limits)
    routes = [
        Route("/", _page),
        Route("/static/{name}", _static),
        Route("/plotly.js", _plotly),
        Route("/api/experiments", guarded(asking.experiments)),
        Route("/api/experiments/{name}", guarded(asking.answer)),
        Route("/api/experiments/{name}/check", guarded(asking.check)),
        Route("/api/claims", guarded(asking.claims)),
        Route("/api/claims/{name}", guarded(asking.claim)),
        Route("/api/claims/{name}/check", guarded(asking.check_claim)),
        *(Route(f"/{name}", _page) for name in PAGES),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        crew.start()
        try:
            yield
        finally:
            await crew.end()

    lab = Starlette(
        routes=routes,
        middleware=[Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4)],
        exception_handlers={HTTPException: _told, Exception: _unexpected},
        lifespan=lifespan,
    )
    return Gate(lab, hosts)


async def _told(request: Request, error: Exception) -> Response:
    """What is not here, or not asked by GET."""
    assert isinstance(error, HTTPException)
    words = {
        404: f"there is no page {request.url.path[:60]!r}; start at /.",
        405: f"{request.method[:20]} is not allowed; use GET.",
    }
    headers = dict(error.headers or {})
    return refusal(request.scope, error.status_code, words.get(error.status_code, error.detail), headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    words = f"unexpected {error!r:.300}; please report it with the address of this page."
    return refusal(request.scope, 500, words)


async def _page(request: Request) -> Response:
    return _sent(request, static()["index.html"])


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in static():
        return refusal(request.scope, 404, f"no file is named {name[:60]!r}.")
    return _sent(request, static()[name])


async def _plotly(request: Request) -> Response:
    found = await anyio.to_thread.run_sync(plotly)
    return _sent(request, found, {"Cache-Control": "max-age=86400"})


def _sent(request: Request, file: File, headers: dict[str, str] | None = None) -> Response:
    packed = "gzip" in request.headers.get("accept-encoding", "")
    return Response(
        file.body(packed), media_type=file.kind, headers={**file.headers(packed), **(headers or {})}
    )
