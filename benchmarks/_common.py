"""The outside of the benchmarks: environments, workers that run in turn, tables."""

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from _record import committed, kept, save

HERE = Path(__file__).parent
_PAUSE = 0.1  # seconds between runs: the threads of the last one spin for a while
RIVAL_PYTHONS = ("python3.12", "python3.11", "python3.10")  # jaxlib 0.4.30 has no wheels for newer ones


@dataclasses.dataclass(frozen=True)
class Environment:
    """A rival that needs an environment of its own, outside of the repository, or where the `variable` says."""

    name: str
    variable: str
    packages: tuple[str, ...]
    check: str  # code that runs where it is installed
    pythons: tuple[str, ...] = ()  # it needs one of them, if any

    def python(self) -> str:
        """Its Python; the environment is made once."""
        default = f"~/.cache/nearkernel/benchmarks/{self.name.lower()}"
        folder = Path(os.environ.get(self.variable, default)).expanduser()
        python, stamp = folder / "bin" / "python", folder / ".nearkernel-ready"
        if stamp.exists() and stamp.read_text().split("\n") == list(self.packages):
            return str(python)
        if not self._works(python):
            print(f"Making an environment for {self.name} in {folder} (minutes, once) ...", file=sys.stderr)
            maker = _python_of_its_time() if self.pythons else sys.executable
            subprocess.run([maker, "-m", "venv", "--clear", str(folder)], check=True)
            pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
            subprocess.run([*pip, *self.packages], check=True)
            if not self._works(python):
                sys.exit(f"error: {self.name} was installed in {folder} but does not import there.")
        stamp.write_text("\n".join(self.packages))
        return str(python)

    def _works(self, python: Path) -> bool:
        command = [str(python), "-c", self.check]
        return python.exists() and subprocess.run(command, capture_output=True).returncode == 0


NEURAL_TANGENTS = Environment(
    "neural-tangents",
    "NEARKERNEL_RIVAL_ENV",
    ("jax==0.4.30", "jaxlib==0.4.30", "numpy<2", "scipy<1.14", "neural-tangents==0.6.5"),
    "import neural_tangents as nt; assert nt.__version__ == '0.6.5'",
    RIVAL_PYTHONS,
)
GPYTORCH = Environment(
    "GPyTorch",
    "NEARKERNEL_GPYTORCH_ENV",
    ("torch==2.13.0", "gpytorch==1.15.2", "numpy"),
    "import gpytorch; assert gpytorch.__version__.startswith('1.15')",
)


def _python_of_its_time() -> str:
    if sys.version_info[:2] <= (3, 12):
        return sys.executable
    for name in RIVAL_PYTHONS:
        if found := shutil.which(name):
            return found
    sys.exit(f"error: neural-tangents needs one of {', '.join(RIVAL_PYTHONS)}, and none is on the PATH.")


class Worker:
    """A process that loads a task and runs it when asked; see `_worker.serve`."""

    def __init__(self, python: str, script: str):
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
        if python != sys.executable:
            environment.pop("PYTHONPATH", None)
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [python, str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )

    def ask(self, do: str, **arguments) -> dict:
        """Send a request and wait for its answer."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise RuntimeError(f"a worker ended with code {self.process.wait()}:\n{self.log.read()[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def results(self, path: Path) -> dict[str, np.ndarray]:
        """What the last run gave."""
        self.ask("save", path=str(path))
        with np.load(path) as arrays:
            return dict(arrays)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


@dataclasses.dataclass(frozen=True)
class Measured:
    """Seconds of the first and of the best later call, CPU seconds of the best; bytes above the inputs.

    `peak` is that of the first call, compilation included; `working` that of a later one.
    """

    first: float
    best: float
    cpu: float
    peak: int
    working: int


def in_turn(workers: list[Worker], repeats: list[int]) -> list[Measured]:
    """Run all workers A, B, A, B, ...; the minimum counts, since other programs only add time.

    With 0 repeats the first call is all that is measured.
    """
    runs = [[worker.ask("run")] for worker in workers]
    for turn in range(max(repeats)):
        for worker, own, count in zip(workers, runs, repeats, strict=True):
            if turn < count:
                time.sleep(_PAUSE)
                own.append(worker.ask("run"))
    weights = [w.ask("weigh") if len(own) > 1 else own[0] for w, own in zip(workers, runs, strict=True)]
    return [
        Measured(
            own[0]["seconds"],
            min(run["seconds"] for run in own[1:] or own),
            min(run["cpu"] for run in own[1:] or own),
            own[0]["bytes"],
            weight["bytes"],
        )
        for own, weight in zip(runs, weights, strict=True)
    ]


@contextlib.contextmanager
def data(**arrays: np.ndarray) -> Iterator[Path]:
    """A folder that holds the arrays for the workers, and goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="nearkernel-") as name:
        for key, array in arrays.items():
            np.save(Path(name) / f"{key}.npy", array)
        yield Path(name)


def deviation(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """|ours - theirs| relative to theirs, or to a thousandth of their largest entry where theirs is smaller."""
    scale = np.maximum(np.abs(theirs), 1e-3 * np.abs(theirs).max())
    return np.abs(ours - theirs) / scale


def deviations(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> tuple[float, float]:
    """The largest on and off the diagonal, over all matrices (rows and outputs are one index)."""
    on, off = 0.0, 0.0
    for name in theirs:
        size = math.isqrt(ours[name].size)
        apart = deviation(ours[name], theirs[name]).reshape(size, size)
        on = max(on, float(np.diagonal(apart).max()))
        np.fill_diagonal(apart, 0.0)
        off = max(off, float(apart.max()))
    return on, off


def machine(*packages: str) -> str:
    """One line on what the table was made with."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    model = "unknown processor"
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = f"Python {platform.python_version()}"
    return f"{cores} cores ({model}), {', '.join([python, *versions])}"


def others_work() -> bool:
    """Whether other programs take more than a tenth of the machine while this one sleeps a second."""

    def times() -> tuple[float, float]:
        line = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        return sum(map(int, line)), int(line[3]) + int(line[4])  # all, and idle or waiting for a disk

    try:
        total, idle = times()
        time.sleep(1.0)
        later, later_idle = times()
    except OSError:  # no Linux
        return os.getloadavg()[0] > 1.5
    return 1.0 - (later_idle - idle) / max(1.0, later - total) > 0.1


def table(rows: list[dict[str, str]]) -> str:
    """Markdown, its columns aligned."""
    header = list(rows[0])
    cells = [header, *([row[name] for name in header] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(header))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)


def table_of(rows: Sequence, run: Callable, only: str) -> str:
    """`run(row, python of the rival)` of the rows whose label holds `only`, shown as they come, as one table."""
    rival, lines = NEURAL_TANGENTS.python(), []
    for row in rows:
        if only in row.label:
            lines.append(run(row, rival))
            print(
                "\n".join(f"{name:14} {value}" for name, value in lines[-1].items()), end="\n\n", flush=True
            )
    if not lines:
        sys.exit(f"error: no row holds {only!r}.")
    return table(lines)


def beside(
    label: str,
    n: int,
    target: float,
    ours: Measured,
    theirs: Measured,
    limit: Measured,
    deviation: tuple[float, float],
    missed: dict[str, bool],
) -> dict[str, str]:
    """A line of the tables against neural-tangents; `target` is asked of their seconds over ours."""
    ratio = theirs.best / ours.best
    missed = {"speed": ratio < target, "memory": ours.working >= theirs.working, **missed}
    return {
        "row": label,
        "n": str(n),
        "theirs, s": f"{theirs.best:.3g}",
        "ours, s": f"{ours.best:.3g}",
        "theirs/ours": f"{ratio:.1f}",
        "target": f"{target:g}",
        "in CPU s": f"{theirs.cpu / ours.cpu:.1f}",
        "ours/limit": f"{ours.best / limit.best:.1f}",
        "first call, s": f"{ours.first:.2f} ({theirs.first:.2f})",
        "peak, MB": f"{ours.working / 1e6:.0f} ({theirs.working / 1e6:.0f})",
        "first peak, MB": f"{ours.peak / 1e6:.0f} ({theirs.peak / 1e6:.0f})",
        "deviation": ", ".join(f"{each:.0e}" for each in deviation),
        "missed": ", ".join(name for name, is_missed in missed.items() if is_missed) or "none",
    }


def write(name: str, text: str) -> None:
    """Replace what stands in README.md between the markers of this name."""
    path = HERE / "README.md"
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    found, count = re.subn(
        f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", path.read_text(), flags=re.DOTALL
    )
    if count != 1:
        sys.exit(f"error: {path} must hold {begin} and {end} once.")
    path.write_text(found)


def asked(what: str, value: float, most: float | None) -> dict[str, str]:
    """A row of a table: what was measured, what was asked for, and whether that was reached."""
    return {
        "what": what,
        "measured": f"{value:d}" if isinstance(value, int) else f"{value:.3g}",
        "asked": "" if most is None else f"{most:g}",
        "reached": "" if most is None else ("yes" if value <= most else "NO"),
    }


def report(
    document: str,
    name: str,
    make: Callable[[argparse.Namespace], str],
    packages: Sequence[str] = ("jax", "numpy", "scipy"),
    **options: dict,
) -> None:
    """The command of a benchmark: prints what `make` measures and, with --write, puts it into README.md.

    `options` are further flags, such as quick={"action": "store_true"}; a quick run is never written there. Ratios
    that the script has kept go to `results/`, or to the file of --json.
    """
    parser = argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help="put the tables into README.md, ratios into results/"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the ratios here")
    for flag, settings in options.items():
        parser.add_argument(f"--{flag}", **settings)
    chosen = parser.parse_args()
    busy = others_work()
    text = make(chosen)
    shared = " (while other programs shared the machine)" if busy or others_work() else ""
    text = f"{text}\n\nMade by `python benchmarks/{name}.py`{shared} on {machine(*packages)}."
    print(text)
    quick = getattr(chosen, "quick", False)
    if chosen.write and not quick:
        write(name, text)
    whole = not getattr(chosen, "only", "")
    path = chosen.json or (committed(name, quick) if chosen.write and whole and kept() else None)
    if path is not None:
        save(path, kept(), f"{machine(*packages)}{shared}", bool(shared))
