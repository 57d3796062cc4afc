"""What one question may cost the machine."""

import dataclasses

import psutil

_MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Limits:
    """Seconds are processor time: a busy machine refuses nothing. Four times as long by the clock ends it, too."""

    seconds: float = 30.0  # of an answer
    run_seconds: float = 1800.0  # of a run: a check, or a claim
    most_memory: int = 3072 * _MIB  # of a process at work
    kept_memory: int = 768 * _MIB  # of a process that waits for the next question
    grace: float = 5.0  # seconds for work whose reader has left
    idle: float = 60.0  # seconds after which a process for runs ends
    waiting: int = 200  # questions


class TooMuch(Exception):
    """A question costs more than it may."""


class Meter:
    """What a process spends from now on."""

    def __init__(self, pid: int, now: float):
        self._process, self._begin = psutil.Process(pid), now
        self._before = self._seconds()

    def _seconds(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system

    def memory(self) -> int:
        return self._process.memory_info().rss

    def require(self, now: float, seconds: float, memory: int) -> None:
        """Raises `TooMuch` beyond `seconds` or `memory`."""
        if max(self._seconds() - self._before, (now - self._begin) / 4) > seconds:
            raise TooMuch(
                f"these settings take more than {seconds:g} s to compute; choose smaller ones, or a simpler formula."
            )
        if self.memory() > memory:
            raise TooMuch(
                f"these settings take more than {memory // _MIB} MiB of memory; choose smaller ones."
            )
