"""Keeps the server's memory flat: the compiler remembers every shape and formula that was ever asked for."""

import ctypes
import functools
import sys

import psutil

MOST = 1 << 29  # bytes above the first answer


@functools.cache
def _start() -> int:
    return _held()


def _held() -> int:
    return psutil.Process().memory_info().rss


def tidy() -> None:
    """Gives back what compiling has left behind; if that is not enough, forgets compiled programs, which are compiled
    again when they are needed."""
    if _held() <= _start() + MOST:
        return
    _give_back()
    if _held() > _start() + MOST / 2:
        import jax

        jax.clear_caches()
        _give_back()
    if _held() > _start() + MOST / 2:
        # Something else has grown: do not throw programs away after every answer.
        _start.cache_clear()
        _start()


def _give_back() -> None:
    """The C library keeps freed memory for itself, on Linux by the gigabyte, unless it is told."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
