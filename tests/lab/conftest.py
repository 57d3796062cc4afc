"""A lab that listens on a free port, in a thread of the test's own process."""

import contextlib
import socket
import threading
import time

import pytest
import uvicorn

from nearkernel.lab._server import application


@contextlib.contextmanager
def listening():
    server = uvicorn.Server(uvicorn.Config(application(), log_level="error", lifespan="off"))
    found = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{found.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)


@pytest.fixture(scope="module")
def lab():
    with listening() as address:
        yield address
