"""What a test run cost, by folder: seconds, seconds of the processor, compiled programs; printed with `--durations`.

    python tests/support/durations.py LOG [OLD=NEW ...]    # seconds as tables, from the log of a run with --durations=0

Seconds of the processor do not depend on what else the machine does. Programs are those that a process asked for and
did not hold yet, whether XLA compiled them or a kept one was read.
"""

import os
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

_LINE = re.compile(r"^(\d+\.\d+)s (?:call|setup|teardown) +(tests/\S+?\.py)(::\S.*)$", re.MULTILINE)
_PROGRAM = "/jax/core/compile/backend_compile_duration"


def table(head: tuple[str, ...], rows: list[tuple]) -> str:
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def by_folder(spent: dict[str, Counter]) -> str:
    """A table of folders, the most seconds first, from what each test spent."""
    sums, kinds = defaultdict(Counter), ("seconds", "processor", "programs")
    for test, each in spent.items():
        for name in ("all", test.partition("::")[0].rpartition("/")[0]):
            sums[name].update({"tests": 1, **each})
    shown = ("tests", *(kind for kind in kinds if kind in sums["all"]))
    ordered = sorted(sums.items(), key=lambda item: -item[1]["seconds"])
    return table(
        ("folder", *shown), [(name, *(round(each[kind]) for kind in shown)) for name, each in ordered]
    )


def slowest(spent: dict[str, Counter], count: int = 30) -> str:
    ordered = sorted(spent.items(), key=lambda item: -item[1]["seconds"])[:count]
    return table(("test", "seconds"), [(name, round(each["seconds"], 1)) for name, each in ordered])


class Durations:
    """Plugin: adds up what tests cost, also those that other processes ran."""

    def __init__(self):
        self.spent = defaultdict(Counter)
        self.programs, self.processor = 0, 0.0

    def pytest_sessionstart(self):
        import jax

        def heard(event, seconds, **about):
            self.programs += event == _PROGRAM

        jax.monitoring.register_event_duration_secs_listener(heard)
        self.processor = sum(os.times()[:4])  # with processes that have ended

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        before, self.processor = self.processor, sum(os.times()[:4])
        report.spent = {
            "seconds": report.duration,
            "processor": self.processor - before,
            "programs": self.programs,
        }
        self.programs = 0
        return report

    def pytest_runtest_logreport(self, report):
        self.spent[report.nodeid].update(
            getattr(report, "spent", {})
        )  # a process that broke off says nothing

    def pytest_terminal_summary(self, terminalreporter):
        if terminalreporter.config.option.durations is not None and self.spent:
            terminalreporter.section("seconds, seconds of the processor, and compiled programs")
            terminalreporter.write_line(by_folder(self.spent))


def read(log: str, moved: dict[str, str]) -> dict[str, Counter]:
    """Seconds by test in a log, its files where they are now."""
    spent = defaultdict(Counter)
    for seconds, path, test in _LINE.findall(log):
        spent[moved.get(path, path) + test].update(seconds=float(seconds))
    return spent


if __name__ == "__main__":
    log, *renamed = sys.argv[1:]
    found = read(Path(log).read_text(encoding="utf-8"), dict(each.split("=") for each in renamed))
    sys.stdout.write(f"{by_folder(found)}\n\n{slowest(found)}\n")
