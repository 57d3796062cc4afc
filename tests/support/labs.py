"""Labs that listen on a free port, in a thread of the test's own process, and the processes that compute for them."""

import asyncio
import contextlib
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from nearkernel.lab.server.app import application
from nearkernel.lab.server.limits import Limits
from nearkernel.lab.server.serve import server

ODD = (sys.executable, "-P", str(Path(__file__).parent / "odd_worker.py"))
STRICT = Limits(seconds=2, grace=1, kept_memory=400 << 20, waiting=20)


@contextlib.contextmanager
def listening(**settings):
    lab, found = server(application(**settings)), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lab.run, kwargs={"sockets": [found]}, daemon=True)
    thread.start()
    while not lab.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{found.getsockname()[1]}"
    lab.should_exit = True
    thread.join(timeout=20)
    assert not thread.is_alive()


def finished(coroutine):
    """What a coroutine returns, in a thread of its own: a browser's loop may be running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def workers(word="_worker"):
    """Processes that compute for labs of this test process."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any(word in argument for argument in child.cmdline()) and child.status() != "zombie":
                found.append(child)
    return found
