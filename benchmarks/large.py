"""Kernel machines on many points against scikit-learn's Nystroem + Ridge and GPyTorch: accuracy for time.

    .venv/bin/python benchmarks/large.py [--quick] [--write]

Ridge regression in 50 dimensions, k(x, y) = exp(-|x - y|^2 / 100), ridge 0.1, kernel parameters fixed. GPyTorch
gets an environment of its own, made once in a cache folder; it computes in float32, as its users do, and so do we.
Each library runs in its own process, in turn.
"""

import dataclasses
import sys

import numpy as np
from _common import GPYTORCH, Measured, Worker, data, in_turn, report, table
from _record import keep, note

DIM, LENGTH, RIDGE, NEW = 50, 50**0.5, 0.1, 2000
MOST = 2000  # centers
OURS, SKLEARN, RIVAL = "nearkernel", "scikit-learn, Nystroem + Ridge", "GPyTorch"


def truth(x: np.ndarray) -> np.ndarray:
    return np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]


def arrays(n: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0).normal
    x, x_new = draw(size=(n, DIM)), draw(size=(NEW, DIM))
    return {"x": x, "y": truth(x) + 0.1 * draw(size=n), "x_new": x_new, "centers": x[:MOST]}


@dataclasses.dataclass(frozen=True)
class Run:
    """One method: who, which task with which settings, and how often."""

    label: str
    library: str
    task: str
    settings: dict
    repeats: int = 2

    def worker(self) -> Worker:
        script = {OURS: "_ours.py", SKLEARN: "_sklearn.py"}.get(self.library, "_gpytorch.py")
        return Worker(GPYTORCH.python() if self.library == RIVAL else sys.executable, script)


def measured(n: int, runs: list[Run]) -> dict[str, tuple[Measured, float, np.ndarray]]:
    """Of each: what it took, its root mean squared test error, its predictions."""
    given = arrays(n)
    found, expected = {}, truth(given["x_new"])
    with data(**given) as folder:
        for run in runs:
            with run.worker() as worker:
                worker.ask(
                    "load", task=run.task, folder=str(folder), length=LENGTH, ridge=RIDGE, **run.settings
                )
                (took,) = in_turn([worker], [run.repeats])
                mean = worker.results(folder / "found.npz")["mean"]
            error = float(np.sqrt(np.mean((mean - expected) ** 2)))
            found[run.label] = took, error, mean
            print(f"{n}: {run.label}: {took.best:.3g} s, error {error:.4f}", file=sys.stderr, flush=True)
    return found


def centers(sizes: tuple[int, ...], rivals: tuple[str, ...]) -> list[Run]:
    return [Run(f"{name}, {m} centers", name, "centers", {"m": m}) for m in sizes for name in (OURS, *rivals)]


def everything() -> list[Run]:
    return [Run(f"{name}, all points", name, "machine", {}) for name in (OURS, RIVAL)]


def rows(n: int, found: dict) -> list[dict[str, str]]:
    """Ours beside each rival of the same task."""
    lines = []
    for label, (their, their_error, their_mean) in found.items():
        rival, _, task = label.rpartition(", ")
        if rival == OURS:
            continue
        ours, error, mean = found[f"{OURS}, {task}"]
        keep(f"{task}, n = {n}, {rival}", rival, their.cpu, ours.cpu)
        apart = float(np.sqrt(np.mean((mean - their_mean) ** 2)) / np.std(mean))
        lines.append(
            {
                "row": f"RBF ridge, {task}", "n": str(n), "rival": rival, "theirs, s": f"{their.best:.3g}",
                "ours, s": f"{ours.best:.3g}", "theirs/ours": f"{their.best / ours.best:.2f}",
                "in CPU s": f"{their.cpu / ours.cpu:.2f}", "test error": f"{error:.4f} ({their_error:.4f})",
                "peak, MB": f"{ours.working / 1e6:.0f} ({their.working / 1e6:.0f})", "deviation": f"{apart:.0e}",
            }
        )  # fmt: skip
    return lines


def tables(quick: bool) -> str:
    few, many = (2000, 8000) if quick else (10_000, 100_000)
    sizes = (100, 300) if quick else (250, 500, 1000, 2000)
    small = measured(few, [*everything(), *centers(sizes, (SKLEARN, RIVAL))])
    large = measured(many, centers(sizes[:-1], (SKLEARN, RIVAL)))
    note(
        "points",
        [
            {"n": n, "method": label, "seconds": took.best, "error": error}
            for n, found in ((few, small), (many, large))
            for label, (took, error, _) in found.items()
        ],
    )
    shown = (*rows(few, small), *rows(many, large))
    return table(list(shown))


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "fewer points, a minute in all"}
    report(
        __doc__,
        "large",
        lambda chosen: tables(chosen.quick),
        ("jax", "numpy", "scipy", "scikit-learn"),
        quick=quick,
    )
