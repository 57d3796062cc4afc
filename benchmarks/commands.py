"""What the command line costs: seconds until `nearkernel --help` is there, CPU seconds of `predict` on a small table.

    .venv/bin/python benchmarks/commands.py [--quick] [--write]

CPU seconds are those of the command and of all processes that it starts. A table of 150 rows is predicted with an empty
folder of compiled programs, and again with the folder that the first run left.
"""

import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import asked, report, table
from sklearn.datasets import load_iris

HELP, PREDICT = 0.3, 5.0  # seconds, CPU seconds that are asked for


def run(folder: str, *words: str) -> tuple[float, float]:
    """Seconds and CPU seconds of `nearkernel WORDS`, children included."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = dict(os.environ, NEARKERNEL_CACHE=f"{folder}/programs")
    command = [sys.executable, "-m", "nearkernel", *words]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, sum(getattr(after, each) - getattr(before, each) for each in ("ru_utime", "ru_stime"))


def flowers(path: Path) -> None:
    """Iris, 150 rows, as a table with a header."""
    found = load_iris()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "d", "kind"])
        writer.writerows(
            [*row, found.target_names[k]] for row, k in zip(found.data, found.target, strict=True)
        )


def tables(quick: bool) -> str:
    repeats = 3 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        flowers(Path(folder) / "iris.csv")
        shown = min(run(folder, "--help")[0] for _ in range(1 + repeats))
        predict = ("predict", "iris.csv", "--target", "kind")
        cold = run(folder, *predict)
        warm = [run(folder, *predict) for _ in range(1 if quick else 3)]
    lines = [
        asked("nearkernel --help: seconds", shown, HELP),
        asked("nearkernel predict, 150 rows, empty cache: CPU seconds", cold[1], PREDICT),
        asked("the same: seconds", cold[0], None),
        asked("nearkernel predict, 150 rows, again: CPU seconds", min(cpu for _, cpu in warm), PREDICT),
        asked("the same: seconds", min(seconds for seconds, _ in warm), None),
    ]
    return table(lines)


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "fewer runs"}
    report(__doc__, "commands", lambda chosen: tables(chosen.quick), quick=quick)
