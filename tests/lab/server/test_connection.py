"""Clients that say nothing, little, or what is not HTTP."""

import socket
import time
from urllib.parse import urlsplit

import pytest

from nearkernel.lab.server import connection as _connection
from nearkernel.lab.server.gate import SECURITY


def connected(lab):
    where = urlsplit(lab)
    found = socket.create_connection((where.hostname, where.port), timeout=10)
    return found


def received(client):
    found = b""
    while part := client.recv(65536):
        found += part
    return found.decode()


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-More: "])
def test_a_request_that_does_not_come_ends_its_connection(lab, monkeypatch, said):
    monkeypatch.setattr(_connection, "PATIENCE", 0.5)
    with connected(lab) as client:
        client.sendall(said)
        client.settimeout(0.01)
        for _ in range(600):
            time.sleep(0.1)
            try:
                client.sendall(b"a" if said else b"")  # a byte now and then does not help
                if client.recv(1) == b"":
                    return
            except TimeoutError:
                pass
            except ConnectionError:
                return
        pytest.fail("the connection stays open")


def test_connections_beyond_a_number_are_closed(lab, monkeypatch):
    with connected(lab) as first:
        first.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert first.recv(12) == b"HTTP/1.1 200"
        monkeypatch.setattr(_connection, "MOST", 0)
        with connected(lab) as client, pytest.raises(ConnectionError):
            client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            client.recv(1)
            raise ConnectionResetError  # closed without a word


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: elsewhere\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: \xff\r\nConnection: close\r\n\r\n", 400),
        (
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n",
            200,
        ),
    ],
)
def test_what_is_not_http_is_refused_and_secured(lab, said, status):
    with connected(lab) as client:
        client.sendall(said)
        answer = received(client)
    assert answer.startswith(f"HTTP/1.1 {status} ")
    for name, value in SECURITY.items():
        assert f"{name.lower()}: {value}" in answer.replace(name, name.lower())
