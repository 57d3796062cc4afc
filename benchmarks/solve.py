"""Kernel ridge regression against scikit-learn's KernelRidge: fit and predict, seconds, memory and agreement.

    .venv/bin/python benchmarks/solve.py [--quick] [--write]

Both see the same arrays, each in its own process, and run in turn; the best of several runs counts.
"""

import sys

import numpy as np
from _common import Worker, data, deviation, in_turn, report, table
from _record import keep

DIM, NEW, GAMMA, ALPHA, REPEATS, AGREE = 50, 1000, 0.01, 0.1, 3, 1e-6


def arrays(n: int) -> dict[str, np.ndarray]:
    """A smooth function of noisy inputs."""
    draw = np.random.default_rng(0).normal
    x, x_new = draw(size=(n, DIM)), draw(size=(NEW, DIM))
    return {"x": x, "x_new": x_new, "y": np.sin(x[:, 0]) + 0.1 * draw(size=n)}


def run(n: int) -> dict[str, str]:
    """The line of the table."""
    with (
        data(**arrays(n)) as folder,
        Worker(sys.executable, "_ours.py") as ours,
        Worker(sys.executable, "_sklearn.py") as theirs,
    ):
        for worker in (ours, theirs):
            worker.ask("load", task="ridge", folder=str(folder), gamma=GAMMA, alpha=ALPHA)
        mine, other = in_turn([ours, theirs], [REPEATS, REPEATS])
        apart = deviation(*(w.results(folder / "found.npz")["mean"] for w in (ours, theirs))).max()
    keep(f"RBF ridge, n = {n}", "scikit-learn", other.cpu, mine.cpu)
    missed = {
        "speed": 2 * mine.best > other.best,
        "memory": mine.working > other.working,
        "agreement": apart > AGREE,
    }
    return {
        "row": f"RBF ridge, d = {DIM}, {NEW} new points",
        "n": str(n),
        "theirs, s": f"{other.best:.3g}",
        "ours, s": f"{mine.best:.3g}",
        "theirs/ours": f"{other.best / mine.best:.2f}",
        "target": "2",
        "in CPU s": f"{other.cpu / mine.cpu:.2f}",
        "first call, s": f"{mine.first:.2f} ({other.first:.2f})",
        "peak, MB": f"{mine.working / 1e6:.0f} ({other.working / 1e6:.0f})",
        "deviation": f"{apart:.0e}",
        "missed": ", ".join(name for name, is_missed in missed.items() if is_missed) or "none",
    }


if __name__ == "__main__":
    report(
        __doc__,
        "solve",
        lambda chosen: table([run(2000 if chosen.quick else 10_000)]),
        ("jax", "numpy", "scipy", "scikit-learn"),
        quick={"action": "store_true", "help": "2,000 points instead of 10,000"},
    )
