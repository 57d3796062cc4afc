"""Ctrl-C comes where a program can answer it, and a program that was interrupted ends at once.

Inside an import an interrupt may leave a library half loaded, or be taken for a missing one; inside a callback of the
garbage collector Python ignores it. There it waits until the main thread has left, or ends the program if that has not
begun its work yet.
"""

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

_SECONDS = 0.05  # until it is tried again
_begun = threading.Event()


def run_program(program: Callable[[], object]) -> None:
    """`program` from its first import to its end, with one line and exit code 130 if it is interrupted."""
    signal.signal(signal.SIGINT, _on_interrupt)
    code: str | int | None = 0
    try:
        program()
    except SystemExit as ended:
        code = ended.code
    except KeyboardInterrupt:
        _stop()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left that could be interrupted
    if code == 130:
        if shared := sys.modules.get("multiprocessing.util"):
            shared._exit_function()  # gives back semaphores, as it would at the usual end
        _end()
    sys.exit(code)


def work_begins() -> None:
    """From here on an interrupt may find files half written or a progress bar on the terminal."""
    _begun.set()


def _stop() -> NoReturn:
    with contextlib.suppress(OSError, ValueError):
        print("interrupted: nothing was written", file=sys.stderr)
    _end()


def _end() -> NoReturn:
    """At once: threads of JAX may still compute, and would crash while Python ends below them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream.isatty():
                stream.write("\x1b[?25h")  # the cursor, which a progress bar may have hidden
            stream.flush()
    os._exit(130)


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    if not _inside_deaf_code(frame):
        raise KeyboardInterrupt
    if not _begun.is_set():
        _stop()
    later = threading.Timer(_SECONDS, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    later.daemon = True
    later.start()


def _inside_deaf_code(frame: FrameType | None) -> bool:
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib") or code.co_name == "__del__" or code in callbacks:
            return True
        frame = frame.f_back
    return False


def end_with_parent() -> None:
    """Called in a process that another one has begun: ends it when that one is gone, even if it was killed."""
    import multiprocessing.connection

    parent = multiprocessing.parent_process()
    if parent is not None:
        wait = lambda: (multiprocessing.connection.wait([parent.sentinel]), os._exit(1))
        threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def children_ignore_it() -> Iterator[None]:
    """Processes begun in the `with` leave Ctrl-C to this one, also while they load."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
