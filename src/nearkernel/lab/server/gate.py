"""Who may ask, and what every answer says to the browser."""

import re
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_QUERY = 12_000  # a table of numbers fits, with its signs encoded
SECURITY = {
    # No code, picture or font from anywhere else; the plotting library writes styles into elements.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]@/]+)(:[0-9]{1,5})?")


class Gate:
    """Lets in requests addressed to one of `hosts`; below `/api`, from the lab's own page or from no page at all."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]):
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY)
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        refused = self._refused(scope, Headers(scope=scope))
        await (refused or self._app)(scope, receive, secured)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "").lower()
        name = _HOST.fullmatch(host)
        if name is None or name[1] not in self._hosts:
            shown = "".join(letter for letter in host if letter.isprintable())[:60]
            return refusal(scope, 400, f"unknown host {shown!r}; add it with --allow-host.")
        if len(scope["query_string"]) > LONGEST_QUERY:
            return refusal(
                scope, 400, f"the address is longer than {LONGEST_QUERY} characters; use fewer settings."
            )
        if scope["path"].startswith("/api/") and _foreign(headers, host):
            return refusal(scope, 403, "requests from other sites are not allowed.")
        return None


def _foreign(headers: Headers, host: str) -> bool:
    """Whether a page of another site asks, which could keep this machine busy. Programs send neither header."""
    origins = headers.getlist("origin")
    if any(origin.lower() not in (f"http://{host}", f"https://{host}") for origin in origins):
        return True
    return headers.get("sec-fetch-site", "none") not in ("same-origin", "none")


def refusal(scope: Scope, status: int, words: str, headers: dict[str, str] | None = None) -> Response:
    """One line: as JSON where a program asks, as text where a person does."""
    if scope["path"].startswith("/api/"):
        return JSONResponse({"error": words}, status, headers)
    return PlainTextResponse(words + "\n", status, headers)
