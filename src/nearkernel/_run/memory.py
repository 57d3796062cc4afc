"""How much memory a result may take: a budget, not luck."""

import os
import re

import numpy as np

from .._base.check import shown

_MOST = 2.0**80  # bytes: more than there are
_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def available_bytes() -> int:
    """Free memory of this machine, or of this container if its limit is lower."""
    import psutil

    free = psutil.virtual_memory().available
    for limit, used in (("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),):
        try:
            with open(limit) as file_limit, open(used) as file_used:
                free = min(free, int(file_limit.read()) - int(file_used.read()))
        except (OSError, ValueError):  # no such controller, or the word "max"
            pass
    return max(free, 0)


def parse_bytes(text: "str | int | float", name: str = "memory") -> int:
    """Bytes of a number or of a text such as "4GiB"."""
    if isinstance(text, int | float) and not isinstance(text, bool) and 0 < text < _MOST:
        return int(text)
    parsed = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", str(text))
    if parsed and parsed[2].lower() in _UNITS and parsed[1].count(".") <= 1 and parsed[1] != ".":
        size = float(parsed[1]) * _UNITS[parsed[2].lower()]
        if 1 <= size < _MOST:
            return int(size)
    raise ValueError(f'`{name}` must be a size such as "4GiB" or a number of bytes; got {shown(text)}.')


def human_bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def require_fits(size: int, what: str, advice: str) -> None:
    """Refuse before allocating what this machine cannot hold."""
    free = available_bytes()
    if size > free:
        raise MemoryError(f"{what} needs {human_bytes(size)}, but {human_bytes(free)} are free: {advice}.")


def rows_that_fit(bytes_per_row: float, budget: int = 256 * 2**20, most: int = 10**9) -> int:
    """How many rows of a chunk stay within `budget` bytes (at least one)."""
    return int(np.clip(budget // max(bytes_per_row, 1), 1, most))


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
