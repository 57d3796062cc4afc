"""Connections with patience and number limited, so that clients which say nothing keep nobody out."""

import asyncio
import contextlib
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .gate import SECURITY

MOST = 500  # connections
PATIENCE = 20.0  # seconds in which a request must have come


class Connection(H11Protocol):
    """Closed if it is one too many, or if its request does not come in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Headers and body are written one after the other: the second must not wait until the first is acknowledged.
        with contextlib.suppress(OSError):  # the other end may be gone already
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._late: asyncio.TimerHandle | None = None
        if len(self.connections) > MOST:
            transport.abort()
        else:
            self._expect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect()
        else:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _expect(self) -> None:
        """The clock runs from the first byte on; more bytes do not set it back."""
        if self._late is None:
            self._late = self.loop.call_later(PATIENCE, self.transport.close)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP gets the same headers as everything else."""
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close"), *SECURITY.items()]
        events = (
            h11.Response(status_code=400, headers=headers, reason="Bad Request"),
            h11.Data(data=msg.encode("ascii", "replace") + b"\n"),
            h11.EndOfMessage(),
        )
        with contextlib.suppress(h11.LocalProtocolError):  # an answer is on its way already
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
