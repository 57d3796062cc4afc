"""A folder of compiled programs: where it is, whether it may be used, and how it is kept small and whole.

JAX writes an entry in place, without a lock and without a limit. Readers of an unfinished entry compile instead; what a
killed process left unfinished would be found broken forever, so entries that are new are looked through once. What
does not fit is removed, least recently used first. Removing an entry that another process reads is harmless.
"""

import contextlib
import functools
import hashlib
import os
import platform
import stat
import sys
import zlib
from collections.abc import Iterator, MutableMapping
from pathlib import Path

VARIABLE = "NEARKERNEL_CACHE"
OFF, _ON = ("0", "off", "no", "false"), ("1", "on", "yes", "true")
_ENTRY = "-cache"  # how JAX ends the names of entries
_FOLDERS = "jax-"  # how folders of one version and processor begin
_CHECKED = ".checked"  # its time: entries that are older have been looked through


def chosen(environment: MutableMapping[str, str]) -> "str | bool | None":
    """What the environment says: a folder, True for the user's cache folder, False for none; else None."""
    said = environment.get(VARIABLE, "").strip()
    if said.lower() in (*OFF, *_ON):
        return said.lower() in _ON
    return said or None


def on_by_default(environment: MutableMapping[str, str]) -> bool:
    """Has processes with this environment keep programs, unless it says otherwise; whether they will."""
    if chosen(environment) is None:
        environment[VARIABLE] = "1"
    folder = chosen(environment)
    if folder is False or environment.get("JAX_COMPILATION_CACHE_DIR"):
        return folder is not False
    return usable(place(True if folder is None else folder), mine=folder is True) is not None


def place(folder: "str | os.PathLike[str] | bool") -> Path:
    """A folder as it was given, or that of the user's caches for True."""
    if isinstance(folder, bool):
        return user_folder()
    return Path(os.path.expanduser(os.fspath(folder))).absolute()


def user_folder() -> Path:
    """Where this user's programs keep what they can make again."""
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "nearkernel" / "programs"


def usable(folder: Path, mine: bool) -> Path | None:
    """The part of `folder` for this JAX and this processor, made if need be; None where nothing can be written.

    Programs are code: with `mine`, a folder that others may write to is not used.
    """
    from importlib.metadata import version  # JAX itself takes a second to import

    if not folder.is_absolute():  # a user without a home
        return None
    part = folder / f"{_FOLDERS}{version('jaxlib')}-{_processor()}"
    try:
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = part / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
        if mine and hasattr(os, "getuid"):
            state = part.stat()
            if state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
    except OSError:
        return None
    return part


@functools.cache
def _processor() -> str:
    """Programs are compiled for the instructions of one processor, and a home folder may be shared by several."""
    about = f"{platform.machine()} {platform.processor()}"
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        about += next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return hashlib.sha256(about.encode()).hexdigest()[:8]


def sweep(folder: Path, size: int) -> None:
    """Removes broken entries, then the least recently used until all versions together take less than `size` bytes."""
    programs = []
    for part in _parts(folder):
        mark = part / _CHECKED
        since = mark.stat().st_mtime if mark.exists() else 0.0
        with contextlib.suppress(OSError):
            mark.touch()
        for entry in _entries(part):
            with contextlib.suppress(OSError):  # another process may have removed it
                state = entry.stat()
                if state.st_mtime >= since and not _whole(Path(entry.path)):
                    os.unlink(entry.path)
                else:
                    programs.append((max(state.st_atime, state.st_mtime), state.st_size, entry.path))
    total = sum(taken for _, taken, _ in programs)
    if total <= size:
        return
    for _, taken, path in sorted(programs):
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= taken
        if total <= 0.8 * size:  # so that it need not be done again at once
            return


def _parts(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [each for each in folder.iterdir() if each.name.startswith(_FOLDERS) and each.is_dir()]
    return []


def _entries(part: Path) -> Iterator["os.DirEntry[str]"]:
    with contextlib.suppress(OSError), os.scandir(part) as entries:
        yield from (entry for entry in entries if entry.name.endswith(_ENTRY))


def _whole(path: Path) -> bool:
    """Whether a compressed entry can be read to its end; other compressions than zlib are left to JAX."""
    held = path.read_bytes()
    if held[:1] != b"\x78":
        return len(held) > 0
    reader = zlib.decompressobj()
    try:
        reader.decompress(held)
    except zlib.error:
        return False
    return reader.eof
