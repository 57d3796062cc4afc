"""Kernel machines on many points: seconds, iterations and memory of the whole process, each row in its own process.

    .venv/bin/python benchmarks/scale.py [--quick] [--write]

Ridge regression on n points in 50 dimensions, k(x, y) = exp(-|x - y|^2 / 100), ridge 0.1: the matrix of 100,000 points
would take 75 GiB. The whole run takes about a quarter of an hour on 2 cores.
"""

import json
import resource
import subprocess
import sys
import time

import numpy as np
from _common import report, table

import nearkernel as nk

DIM, LENGTH, RIDGE, LIMIT = 50, 50**0.5, 0.1, 4 * 2**30


def problem(n: int) -> tuple[nk.kernels.AbstractKernel, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0).normal
    x = draw(size=(n, DIM))
    return nk.kernels.RBF(LENGTH), x, np.sin(x[:, 0]) + 0.1 * draw(size=n)


def product(n: int) -> dict:
    """Seconds of one iteration: a product with a matrix that is computed again each time."""
    from nearkernel.scale._products import Recomputed

    kernel, x, y = problem(n)
    with nk.precision("float32"):
        products = Recomputed(kernel, x, 3 * 2**30)
        products.times(y[:, None])  # compiles
        begin = time.perf_counter()
        products.times(y[:, None])
    return {"seconds": time.perf_counter() - begin}


def iterated(n: int) -> dict:
    """Conjugate gradients to 1e-3 within the limit, on float32 tiles."""
    kernel, x, y = problem(n)
    solver = nk.dynamics.ConjugateGradients(tol=1e-3, memory="3GiB")
    begin = time.perf_counter()
    with nk.precision("float32"):
        found = nk.solve(kernel, x, y, nk.Ridge(RIDGE), solver=solver)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "iterations": found.iterations, "residual": found.relative_residual}


def centres(n: int, m: int) -> dict:
    """One pass over points that stay on disk."""
    import tempfile

    from numpy.lib.format import open_memmap

    with tempfile.TemporaryDirectory() as folder:
        x = open_memmap(f"{folder}/x.npy", "w+", np.float64, (n, DIM))
        y, draw = np.empty(n), np.random.default_rng(0).normal
        for at in range(0, n, 10_000):
            part = slice(at, min(at + 10_000, n))
            x[part] = draw(size=(part.stop - part.start, DIM))
            y[part] = np.sin(x[part, 0]) + 0.1 * draw(size=part.stop - part.start)
        x.flush()
        x_new = draw(size=(2000, DIM))
        solver = nk.dynamics.Nystrom(centres=m, memory="1GiB")
        begin = time.perf_counter()
        found = nk.solve(
            nk.kernels.RBF(LENGTH),
            np.load(f"{folder}/x.npy", mmap_mode="r"),
            y,
            nk.Ridge(RIDGE),
            solver=solver,
        )
        seconds = time.perf_counter() - begin
        error = float(np.mean((found.predict(x_new).mean - np.sin(x_new[:, 0])) ** 2))
    return {"seconds": seconds, "error": error}


def measured(name: str, *sizes: int) -> dict:
    """A row in a process of its own: its answer, and the most memory that the process had."""
    command = [sys.executable, __file__, "row", name, *map(str, sizes)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def tables(quick: bool) -> str:
    sizes = (4_000, 8_000, 16_000) if quick else (12_500, 25_000, 50_000)
    seconds = [measured("product", n)["seconds"] for n in sizes]
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    found = [
        {"what": "one iteration, matrix computed again", "n": str(n), "seconds": f"{s:.3g}", "iterations": "1",
         "residual": "", "peak, MiB": "", "asked": "", "reached": ""}
        for n, s in zip(sizes, seconds, strict=True)
    ]  # fmt: skip
    n = 16_000 if quick else 100_000
    run = measured("iterated", n)
    fine = run["residual"] <= 1e-3 and run["bytes"] < LIMIT
    found.append(
        {"what": "conjugate gradients to 1e-3", "n": str(n), "seconds": f"{run['seconds']:.3g}",
         "iterations": str(run["iterations"]), "residual": f"{run['residual']:.1e}",
         "peak, MiB": f"{run['bytes'] / 2**20:.0f}", "asked": "residual 1e-3 within 4 GiB",
         "reached": "yes" if fine else "no"}
    )  # fmt: skip
    n, m = (100_000, 500) if quick else (1_000_000, 2000)
    run = measured("centres", n, m)
    found.append(
        {"what": f"{m} centers, one pass, x on disk", "n": str(n), "seconds": f"{run['seconds']:.3g}",
         "iterations": "1 pass", "residual": f"test error {run['error']:.1e}",
         "peak, MiB": f"{run['bytes'] / 2**20:.0f}",
         "asked": "one pass, bounded memory", "reached": "yes" if run["bytes"] < LIMIT else "no"}
    )  # fmt: skip
    return f"{table(found)}\n\nSeconds of an iteration grow as n^{exponent:.2f} (fitted)."


def row(name: str, *sizes: str) -> None:
    """What a process of its own does."""
    answer = {"product": product, "iterated": iterated, "centres": centres}[name](*map(int, sizes))
    print(json.dumps({**answer, "bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["row"]:
        row(*sys.argv[2:])
    else:
        quick = {"action": "store_true", "help": "smaller problems, a minute in all"}
        report(__doc__, "scale", lambda chosen: tables(chosen.quick), quick=quick)
