"""Compiled programs that stay: `nk.cache`, and the environment variable `NEARKERNEL_CACHE`."""

import contextlib
import os
import warnings
from pathlib import Path

import jax

from . import programs as _programs

SIZE = "256MiB"
_SWEEP = 200  # new programs after which the folder is made smaller again
_folder: Path | None = None
_size, _new, _listening = 0, 0, False


def cache(folder: "str | os.PathLike[str] | bool" = True, *, size: "str | int" = SIZE) -> Path | None:
    """Keep compiled programs on disk, so that the first call in the next process need not compile again.

    This is JAX's persistent compilation cache, for all programs of this process. The folder may be deleted at any
    time and be used by several processes. Each version of JAX and each kind of processor has its own part. Only
    share a folder with people whom you trust: programs are code.

    **Arguments:**

    - `folder`: where. True, the default: `nearkernel/programs` in the user's cache folder, unless JAX has a folder
      already, which then stays. False: keep nothing from now on.
    - `size`: how many bytes to keep, as a number or a text such as "1GiB". The least recently used programs are
      removed.

    **Returns:** the folder in use, or None if there is none or it cannot be written to. Environment variable:
    `NEARKERNEL_CACHE=1` or a folder does the same for every process; 0 switches it off, also for `nearkernel` in a
    terminal and the lab, where it is on.
    """
    from .._base.check import shown
    from .memory import parse_bytes

    if not isinstance(folder, bool | str | os.PathLike) or folder == "":
        raise TypeError(
            f"`folder` must be a folder, True (the user's cache folder) or False; got {shown(folder)}."
        )
    return _switch(folder, parse_bytes(size, "size"))


def _switch(folder: "str | os.PathLike[str] | bool", size: int) -> Path | None:
    global _folder, _size
    if folder is False:
        if _folder is not None:
            _tell_jax(None)
        _folder = None
        return None
    if folder is True and _folder is None and jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return Path(jax.config.jax_compilation_cache_dir)  # type: ignore[attr-defined]
    base = _programs.place(folder)
    part = _programs.usable(base, mine=folder is True)
    if part is None:
        return _switch(False, size)
    _folder, _size = base, size
    _programs.sweep(base, size)
    _tell_jax(part)
    return part


def _tell_jax(part: Path | None) -> None:
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    global _listening
    jax.config.update("jax_compilation_cache_dir", None if part is None else str(part))
    reset_cache()  # it remembers the folder of its first program
    if part is None:
        return
    if jax.config.jax_persistent_cache_min_compile_time_secs == 1.0:  # type: ignore[attr-defined]
        # Small programs take most of the time.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # An entry that cannot be read or written costs a compilation, which is no reason to tell.
    warnings.filterwarnings("ignore", message=".*persistent compilation cache entry.*", category=UserWarning)
    if not _listening:
        _listening = True
        jax.monitoring.register_event_listener(_heard)


def _heard(event: str, **_: object) -> None:
    """Keeps the folder small in processes that compile for days."""
    global _new
    if event == "/jax/compilation_cache/cache_misses" and _folder is not None:
        _new += 1
        if _new % _SWEEP == 0:
            with contextlib.suppress(OSError):
                _programs.sweep(_folder, _size)


def by_environment() -> None:
    """What `NEARKERNEL_CACHE` says, once JAX is there."""
    from .memory import parse_bytes

    folder = _programs.chosen(os.environ)
    if folder is not None:
        _switch(folder, parse_bytes(SIZE))
