"""Kernel machines on many points against scikit-learn's Nystroem + Ridge and GPyTorch: seconds at equal test error.

    .venv/bin/python benchmarks/large.py [--quick] [--write]

Ridge regression in 50 dimensions, k(x, y) = exp(-|x - y|^2 / 100), ridge 0.1, kernel parameters fixed. GPyTorch
gets an environment of its own, made once in a cache folder; it computes in float32, as its users do, and so do we.
Each library runs in its own process. A rival's seconds are compared with those in which we reach its test error.
"""

import dataclasses
import sys

import numpy as np
from _common import GPYTORCH, Measured, Worker, data, in_turn, report, table
from _record import keep, note

DIM, LENGTH, RIDGE, NEW, TARGET = 50, 50**0.5, 0.1, 2000, 2
OURS, SKLEARN, RIVAL = "nearkernel", "scikit-learn, Nystroem + Ridge", "GPyTorch"
EQUAL = 1.01  # errors that differ less count as equal: 2,000 test points know them to 2 %
ALL, PREPARED = "all points", "all points, preconditioner of rank 100"


def truth(x: np.ndarray) -> np.ndarray:
    return np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]


def arrays(n: int, most: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0).normal
    x, x_new = draw(size=(n, DIM)), draw(size=(NEW, DIM))
    return {"x": x, "y": truth(x) + 0.1 * draw(size=n), "x_new": x_new, "centers": x[:most]}


@dataclasses.dataclass(frozen=True)
class Run:
    """One method of one library, its settings, and how often it runs."""

    library: str
    method: str
    settings: dict
    repeats: int = 2

    def worker(self) -> Worker:
        script = {OURS: "_ours.py", SKLEARN: "_sklearn.py"}.get(self.library, "_gpytorch.py")
        return Worker(GPYTORCH.python() if self.library == RIVAL else sys.executable, script)


@dataclasses.dataclass(frozen=True)
class Found:
    """What a run took, its root mean squared test error, and its predictions."""

    run: Run
    took: Measured
    error: float
    mean: np.ndarray


def measured(n: int, runs: list[Run]) -> list[Found]:
    most = max(run.settings.get("m", 1) for run in runs)
    given, found = arrays(n, most), []
    expected = truth(given["x_new"])
    with data(**given) as folder:
        for run in runs:
            with run.worker() as worker:
                task = "centers" if "m" in run.settings else "machine"
                worker.ask("load", task=task, folder=str(folder), length=LENGTH, ridge=RIDGE, **run.settings)
                (took,) = in_turn([worker], [run.repeats])
                mean = worker.results(folder / "found.npz")["mean"]
            error = float(np.sqrt(np.mean((mean - expected) ** 2)))
            found.append(Found(run, took, error, mean))
            shown = f"{n}: {run.library}, {run.method}: {took.best:.3g} s, error {error:.4f}"
            print(shown, file=sys.stderr, flush=True)
    return found


def centers(library: str, sizes: tuple[int, ...]) -> list[Run]:
    return [Run(library, f"{m} centers", {"m": m}) for m in sizes]


def everything(quick: bool) -> list[Run]:
    """All points: ours, and GPyTorch's conjugate gradients, also with more preparation than it takes by itself."""
    repeats = 2 if quick else 1
    return [
        Run(OURS, ALL, {}, repeats), Run(RIVAL, ALL, {}, repeats), Run(RIVAL, PREPARED, {"rank": 100}, repeats),
    ]  # fmt: skip


def at_error(found: list[Found], error: float, quantity) -> float | None:
    """What we need for this test error, between our runs on a logarithmic scale; None if none of them reaches it."""
    frontier: list[tuple[float, float]] = []  # errors that fall as the quantity grows
    for value, own in sorted((quantity(each.took), each.error) for each in found):
        if not frontier or own < frontier[-1][0]:
            frontier.append((own, value))
    error *= EQUAL
    if frontier[-1][0] > error:
        return None
    errors, values = np.log(np.array(frontier[::-1])).T
    return float(np.exp(np.interp(np.log(error), errors, values)))


def line(n: int, their: Found, ours: list[Found]) -> dict[str, str]:
    """A rival's run beside what we need for its test error, and beside our run of the same method."""
    seconds = at_error(ours, their.error, lambda took: took.best)
    cpu = at_error(ours, their.error, lambda took: took.cpu)
    same = next(each for each in ours if their.run.method.startswith(each.run.method))
    if cpu is not None:
        keep(f"{their.run.method}, n = {n}, {their.run.library}", their.run.library, their.took.cpu, cpu)
    ratio = 0.0 if seconds is None else their.took.best / seconds
    apart = float(np.sqrt(np.mean((same.mean - their.mean) ** 2)) / np.std(same.mean))
    return {
        "row": f"RBF ridge, {their.run.method}", "n": str(n), "rival": their.run.library,
        "theirs, s": f"{their.took.best:.3g}", "test error": f"{their.error:.4f}",
        "ours at this error, s": "not reached" if seconds is None else f"{seconds:.3g}",
        "theirs/ours": f"{ratio:.2f}", "target": f"{TARGET}",
        "in CPU s": "" if cpu is None else f"{their.took.cpu / cpu:.2f}",
        "ours, same method, s": f"{same.took.best:.3g}", "its error": f"{same.error:.4f}",
        "peak, MB": f"{same.took.working / 1e6:.0f} ({their.took.working / 1e6:.0f})", "deviation": f"{apart:.0e}",
        "missed": "none" if ratio >= TARGET else "speed",
    }  # fmt: skip


def tables(quick: bool) -> str:
    sizes = (100, 300, 600) if quick else (250, 500, 1000, 2000, 4000)
    plans = {
        2000 if quick else 10_000: [*everything(quick), *centers(OURS, sizes)],
        4000 if quick else 20_000: everything(quick),
        8000 if quick else 100_000: centers(OURS, sizes),
    }
    lines, points = [], []
    for n, runs in plans.items():
        if any("m" in run.settings for run in runs):
            runs = [*runs, *centers(SKLEARN, sizes[:-1]), *centers(RIVAL, sizes[:-1])]
        found = measured(n, runs)
        ours = [each for each in found if each.run.library == OURS]
        lines += [line(n, each, ours) for each in found if each.run.library != OURS]
        points += [
            {"n": n, "library": each.run.library, "method": each.run.method, "seconds": float(f"{each.took.best:.4g}"),
             "error": float(f"{each.error:.5g}")}
            for each in found
        ]  # fmt: skip
    note("points", points)
    return table(lines)


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "fewer points, a minute in all"}
    report(
        __doc__,
        "large",
        lambda chosen: tables(chosen.quick),
        ("jax", "numpy", "scipy", "scikit-learn"),
        quick=quick,
    )
