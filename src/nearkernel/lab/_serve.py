"""`nearkernel lab`: finds a port, starts the server, opens the browser."""

import contextlib
import socket
import sys
import threading
import webbrowser
from typing import Any

from .._terminal import print_json

DEFAULT_PORT = 8642
_LOCAL = ("127.0.0.1", "localhost", "::1")


def serve(host: str, port: int | None, open_browser: bool, as_json: bool = False) -> None:
    """Serves until Ctrl-C. Without a `port`, the usual one or, if it is taken, any that is free."""
    import uvicorn

    from ._server import application

    listening = _listen(host, port)
    number = listening.getsockname()[1]
    shown = host if host not in ("0.0.0.0", "::") else "127.0.0.1"
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{number}/"
    if as_json:
        print_json({"address": address, "host": host, "port": number})
        sys.stdout.flush()
    else:
        print(f"nearkernel lab: {address} (Ctrl-C ends it)", flush=True)
    if host not in _LOCAL:
        print(f"note: --host {host} lets other machines in, without a password.", file=sys.stderr)
    if open_browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    hosts = ("127.0.0.1", "localhost", "[::1]") if host in _LOCAL else ("*",)
    settings: Any = {"log_level": "warning", "timeout_graceful_shutdown": 2, "lifespan": "off"}
    with contextlib.suppress(KeyboardInterrupt):  # the way to end it
        uvicorn.Server(uvicorn.Config(application(hosts), **settings)).run(sockets=[listening])


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
        except OSError as error:
            found.close()
            trouble = error
    where = f"--host {host}" if port is None else f"--port {port}"
    raise ValueError(f"{where}: {trouble.strerror or trouble}; choose another, or leave it out.")
