"""Kernels and predictions against neural-tangents 0.6.5: seconds, memory and agreement in one run.

    make benchmark                                          # or:
    .venv/bin/python benchmarks/kernels.py [--quick] [--only TEXT] [--write]

The rival gets an environment of its own (it does not import on a current JAX), made once in a cache folder.
Both libraries see the same arrays, each in its own process, and run in turn; the best of several runs counts.
"""

import dataclasses
import itertools
import math
import sys
from typing import Any

import numpy as np
from _common import Measured, Worker, beside, data, deviation, deviations, in_turn, report, table_of
from _record import keep

DIM = 784
AGREE = 1e-9
COMPILATION = 2.0  # seconds that a first call may take above a later one
VARIANCES = {"weight_var": 1.5, "bias_var": 0.1}


@dataclasses.dataclass(frozen=True)
class Row:
    """A task that both have, the data it needs, and what is asked of us (`target`: their seconds over ours)."""

    label: str
    task: str
    target: float
    n: int
    options: dict[str, Any]
    rival_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    repeats: int = 20
    rival_repeats: int = 20
    agree: tuple[float, float] = (AGREE, AGREE)  # on and off the diagonal

    def arrays(self) -> dict[str, np.ndarray]:
        draw = np.random.default_rng(0).normal
        found = {"x": draw(size=(self.n, DIM))}
        if self.task == "forecast":
            found.update(y=draw(size=(self.n, 1)), x_new=draw(size=(self.n // 2, DIM)))
        if self.task == "empirical":
            sizes = [DIM, *self.options["widths"], self.options["out_dim"]]
            for i, shape in enumerate(itertools.pairwise(sizes)):
                found.update({f"weight{i}": draw(size=shape), f"bias{i}": draw(size=shape[1:])})
        return found


def rows(quick: bool) -> list[Row]:
    """All of them; `quick` at a quarter of the size."""
    part = 4 if quick else 1
    found = [
        Row(
            f"{name}, NNGP + NTK", "infinite", 3, n // part, {"activation": name}, {}, repeats, repeats, agree
        )
        for n, repeats in ((500, 40), (2000, 20), (8000, 3))
        for name, agree in [("relu", (1e-6, AGREE)), ("erf", (AGREE, AGREE)), ("gelu", (AGREE, AGREE))]
    ]
    found.append(
        Row(
            "tanh, NNGP + NTK (theirs in batches of 100)",
            "infinite",
            30,
            2000 // part,
            {"activation": "tanh"},
            {"batch_size": 100},
            repeats=3,
            rival_repeats=0,  # minutes: the first call counts
            agree=(1e-2, 1e-2),
        )
    )
    for n, out, full, repeats in (
        (200, 1, False, 40),
        (200, 10, False, 40),
        (200, 10, True, 20),
        (1000, 1, False, 20),
        (1000, 10, False, 10),
    ):
        options = {"activation": "relu", "widths": [512, 512], "out_dim": out, "full": full}
        name = f"empirical NTK, {out} output{'s' * (out > 1)}, {'full' if full else 'mean over outputs'}"
        found.append(Row(name, "empirical", 3, n, options, {}, repeats, repeats))
    times = [float(t) for t in np.geomspace(1e-2, 1e3, 100)]
    for cached in (False, True):
        for label, chosen, repeats in (("t = inf", [math.inf], 20), ("100 times", times, 3)):
            options = {"activation": "erf", "times": chosen, "cached": cached}
            name = f"prediction, {label}, {'factors cached' if cached else 'from inputs'}"
            found.append(Row(name, "forecast", 2, 1000 // part, options, {}, repeats, repeats))
    return found


def run(row: Row, rival: str) -> dict[str, str]:
    """One line of the table."""
    with (
        data(**row.arrays()) as folder,
        Worker(sys.executable, "_ours.py") as ours,
        Worker(rival, "_rival.py") as theirs,
        Worker(sys.executable, "_ours.py") as limit,
    ):
        options = {"task": row.task, "folder": str(folder), **VARIANCES, **row.options}
        ours.ask("load", **options)
        theirs.ask("load", **options, **row.rival_options)
        if row.task == "empirical":
            limit.ask("load", task="empirical_limit", folder=str(folder), **row.options)
        else:
            limit.ask("load", task="limit", folder=str(folder), passes=3)
        measured = in_turn([ours, theirs, limit], [row.repeats, row.rival_repeats, max(row.repeats, 5)])
        found, expected = ours.results(folder / "ours.npz"), theirs.results(folder / "theirs.npz")
    if row.task == "forecast":  # in covariances and in means
        return line(
            row, *measured, *(float(deviation(found[name], expected[name]).max()) for name in ("cov", "mean"))
        )
    return line(row, *measured, *deviations(found, expected))


def line(
    row: Row, ours: Measured, theirs: Measured, limit: Measured, on: float, off: float
) -> dict[str, str]:
    keep(f"{row.label}, n = {row.n}", "neural-tangents", theirs.cpu, ours.cpu)
    missed = {
        "first call": ours.first - ours.best >= COMPILATION,
        "agreement": on > row.agree[0] or off > row.agree[1],
    }
    return beside(row.label, row.n, row.target, ours, theirs, limit, (on, off), missed)


def measured(chosen) -> str:
    return table_of(rows(chosen.quick), run, chosen.only)


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "a quarter of the points"}
    only = {"default": "", "help": "rows whose name holds this text"}
    report(__doc__, "kernels", measured, quick=quick, only=only)
