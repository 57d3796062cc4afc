"""Keeps the server's memory flat: the compiler remembers every shape and formula that was ever asked for."""

import functools

import psutil

MOST = 1 << 30  # bytes above the first answer before compiled programs are thrown away


@functools.cache
def _start() -> int:
    return psutil.Process().memory_info().rss


def tidy() -> None:
    """Forgets compiled programs when they have grown too many; those in use are compiled again."""
    if psutil.Process().memory_info().rss > _start() + MOST:
        import jax

        jax.clear_caches()
        _start.cache_clear()
        _start()
