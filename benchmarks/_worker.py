"""The inside of a worker process: runs tasks when asked, and measures its own time and memory.

Needs only NumPy, JAX and the standard library, so that it also runs in a rival's environment. Requests and answers
are JSON lines; what libraries print goes to standard error.
"""

import contextlib
import ctypes
import gc
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

Results = dict[str, np.ndarray]
Task = Callable[..., Callable[[], Results]]


def load(folder: Path, *names: str) -> list[np.ndarray]:
    """Arrays that the host saved."""
    return [np.load(folder / f"{name}.npy") for name in names]


def start_jax() -> None:
    """Run something trivial: what JAX itself takes to start is no library's first call and no library's memory."""
    import jax

    jax.jit(lambda a: a + 1.0)(np.zeros(3)).block_until_ready()


def _status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return 1024 * int(line.split()[1])
    raise LookupError(name)


def resident() -> int:
    """Bytes of memory that this process holds."""
    try:
        return _status("VmRSS")
    except OSError:  # not Linux
        return peak()


def give_back() -> None:
    """Return freed memory to the system, so that an earlier call's is not taken for a later one's."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def reset_peak() -> None:
    """Let `peak` start again from what is held now, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most bytes that this process held since `reset_peak`, or since its start where that is not possible."""
    try:
        return _status("VmHWM")
    except OSError:
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else 1024 * size


class _Server:
    """Holds one loaded task, the memory it started from and its last results."""

    def __init__(self, tasks: dict[str, Task]):
        self.tasks = tasks
        self.results: Results = {}

    def load(self, task: str, folder: str, **options) -> dict:
        self.run_once = self.tasks[task](Path(folder), **options)
        self.base = resident()
        return {}

    def run(self) -> dict:
        """Seconds, CPU seconds, and the most bytes held above the loaded inputs."""
        self.results = {}
        reset_peak()
        start, start_cpu = time.perf_counter(), time.process_time()
        self.results = self.run_once()
        seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        return {"seconds": seconds, "cpu": cpu, "bytes": peak() - self.base}

    def weigh(self) -> dict:
        """The bytes that a call adds to what is held before it, with everything compiled."""
        self.results = {}
        give_back()
        self.base = resident()
        return {"bytes": self.run()["bytes"]}

    def save(self, path: str) -> dict:
        np.savez(path, **{name: np.asarray(value) for name, value in self.results.items()})
        return {}


def serve(*tasks: Task) -> None:
    """Answer requests until standard input ends. A task loads its inputs and returns the function to be timed."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = _Server({task.__name__: task for task in tasks})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(server, request.pop("do"))(**request)
        except Exception:  # the host decides what a failure means
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
