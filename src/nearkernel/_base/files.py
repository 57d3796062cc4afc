"""Files that are whole or absent, whatever interrupts their writing."""

import contextlib
import glob
import os
import shutil
import signal
import socket
import threading
import uuid
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path


def unfinished(path: Path) -> Path:
    """A hidden name beside `path` for what is still being written; it tells who writes."""
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.unfinished")


def _host() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def sweep(folder: Path, name: str) -> None:
    """Remove what processes of this machine left unfinished for `name` in `folder` when they were killed."""
    import psutil

    for path in folder.glob(f".{glob.escape(name)}.{_host()}-*.unfinished"):
        number = path.name.rsplit(".", 2)[1].split("-")[1]
        if number.isdigit() and not psutil.pid_exists(int(number)):
            remove(path)


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_whole(path: Path, *parts: bytes | memoryview, sync: bool = True) -> None:
    """Write bytes or arrays one after the other, aside, and then rename; `sync`: not before they are on the disk."""
    aside = unfinished(path)
    try:
        with open(aside, "xb") as file:
            for part in parts:
                file.write(part)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # on a disk that is gone
            aside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error  # not the name aside, or none
        raise


def write_alone(path: Path, data: bytes) -> None:
    """A single file, without what killed processes left of it; into a pipe or a device as it comes."""
    if path.exists() and not path.is_file():  # renaming would put a file in the place of /dev/null
        with open(path, "wb") as file:
            file.write(data)
        return
    sweep(path.absolute().parent, path.name)
    write_whole(path, data)


def missing(path: Path) -> str:
    """What to say of a `path` that cannot be read as a file."""
    if path.is_dir():
        return f"{path} is a folder."
    return f"{path} is not a regular file: copy it to one." if path.exists() else f"{path}: no such file."


def replace_together(moves: Iterable[tuple[Path, Path]]) -> None:
    """Rename each (from, to). Ctrl-C waits; if the process is killed in between, the last file is missing.

    So files that belong together never differ without a sign of it: the last one is there only with its own others.
    """
    moves = list(moves)
    with _uninterrupted():
        if len(moves) > 1:
            moves[-1][1].unlink(missing_ok=True)
        for old, new in moves:
            os.replace(old, new)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C comes afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list = []
    before = signal.signal(signal.SIGINT, lambda *about: came.append(about))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came and callable(before):
        before(*came[0])
