"""`nearkernel lab`: finds a port, starts the server, opens the browser."""

import contextlib
import re
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._base.extra import needing, require
from ..._commands.streams import note, print_json

if TYPE_CHECKING:
    import uvicorn

DEFAULT_PORT = 8642
LOCAL = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")


def serve(
    host: str, port: int | None, open_browser: bool, as_json: bool = False, allowed: Sequence[str] = ()
) -> None:
    """Serves until Ctrl-C. Without a `port`, the usual one or, if it is taken, any that is free.

    Requests must be addressed to this machine, to `host` or to one of `allowed`.
    """
    with needing("nearkernel lab"):
        from .app import application
    require("plotly", "nearkernel lab")  # the page asks for it later
    listening = _listen(host, port)
    with contextlib.closing(listening):
        bound, number = listening.getsockname()[:2]
        hosts = names(host, bound, allowed)
        shown = "127.0.0.1" if bound in _EVERYWHERE else _bracketed(host)
        address = f"http://{shown}:{number}/"
        if as_json:
            print_json({"address": address, "host": host, "port": number})
            sys.stdout.flush()
        else:
            print(f"nearkernel lab: {address} (Ctrl-C ends it)", flush=True)
        if others := [name for name in hosts if name not in LOCAL]:
            note(f"note: others may use this lab, without a password, as {', '.join(others)}.")
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        with contextlib.suppress(KeyboardInterrupt):  # the way to end it
            server(application(hosts)).run(sockets=[listening])


def server(application: Any) -> "uvicorn.Server":
    """What listens for an application."""
    with needing("nearkernel lab"):
        import uvicorn

        from .connection import Connection

    settings: Any = {
        "loop": "asyncio",
        "http": Connection,
        "ws": "none",
        "lifespan": "on",
        "log_level": "warning",
        "server_header": False,
        "timeout_graceful_shutdown": 2,
    }
    return uvicorn.Server(uvicorn.Config(application, **settings))


def names(host: str, bound: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """How requests may call this machine. Any name would let a page elsewhere ask under another name.

    `host` is what was typed, `bound` the address that it has.
    """
    for name in allowed:
        if not re.fullmatch(r"\[?[0-9A-Fa-f:.]+\]?|[0-9A-Za-z._-]+", name):
            raise ValueError(
                f"--allow-host {name}: give a name or an address alone, like lab.example or 192.168.0.7."
            )
    own = {_bracketed(name): None for name in allowed}
    if bound in _EVERYWHERE:
        if not own:
            raise ValueError(
                f"--host {host}: say how others will call this machine, like --allow-host {socket.gethostname()}; "
                "give it once for each name or address."
            )
    else:
        own = {_bracketed(host): None, _bracketed(bound): None, **own}
    return tuple({**dict.fromkeys(LOCAL), **own})


def _bracketed(host: str) -> str:
    return f"[{host.strip('[]')}]" if ":" in host else host


def _listen(host: str, port: int | None) -> socket.socket:
    ports = (DEFAULT_PORT, 0) if port is None else (port,)
    for number in ports:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
            found.listen(128)
            return found
        except (OSError, UnicodeError) as error:
            found.close()
            trouble = getattr(error, "strerror", None) or str(error)
    where = f"--host {host}" if port is None else f"--port {port}"
    raise ValueError(f"{where}: {trouble}; choose another, or leave it out.")
