"""Kernel machines on many points: seconds, iterations and memory of the whole process, each row in its own process.

    .venv/bin/python benchmarks/scale.py [--quick] [--write]

Ridge regression on n points in 50 dimensions, k(x, y) = exp(-|x - y|^2 / 100), ridge 0.1: the matrix of 100,000 points
would take 75 GiB. All in float32, as the guide recommends at these sizes. The whole run takes ten minutes on 2 cores.
"""

import json
import resource
import subprocess
import sys
import time
import timeit

import numpy as np
from _common import report, table

import nearkernel as nk
from nearkernel._run.blas import one_thread
from nearkernel._run.memory import cores

DIM, LENGTH, RIDGE, TOL = 50, 50**0.5, 0.1, 1e-3
SOLVE, PASS, MEMORY = 480.0, 90.0, 3e9  # seconds and bytes that are asked for on 2 cores


def problem(n: int) -> tuple[nk.kernels.AbstractKernel, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0).normal
    x = draw(size=(n, DIM))
    return nk.kernels.RBF(LENGTH), x, np.sin(x[:, 0]) + 0.1 * draw(size=n)


def product(n: int) -> dict:
    """Seconds of one iteration: a product with a matrix that is computed again each time."""
    from nearkernel.scale.products import Recomputed

    kernel, x, y = problem(n)
    with nk.precision("float32"):
        products = Recomputed(kernel, x, 3 * 2**30)
        products.times(y[:, None])  # compiles
        begin = time.perf_counter()
        products.times(y[:, None])
    return {"seconds": time.perf_counter() - begin}


def iterated(n: int) -> dict:
    """Conjugate gradients to 1e-3; the budget leaves room for the program itself."""
    kernel, x, y = problem(n)
    solver = nk.dynamics.ConjugateGradients(tol=TOL, memory="2.2GB")
    begin = time.perf_counter()
    with nk.precision("float32"):
        found = nk.solve(kernel, x, y, nk.Ridge(RIDGE), solver=solver)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "iterations": found.iterations, "residual": found.relative_residual}


def centers(n: int, m: int) -> dict:
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
        solver = nk.dynamics.Nystrom(centers=m, memory="1GiB")
        kernel, mapped = nk.kernels.RBF(LENGTH), np.load(f"{folder}/x.npy", mmap_mode="r")
        begin = time.perf_counter()
        with nk.precision("float32"):
            found = nk.solve(kernel, mapped, y, nk.Ridge(RIDGE), solver=solver)
        seconds = time.perf_counter() - begin
        error = float(np.mean((found.predict(x_new).mean - np.sin(x_new[:, 0])) ** 2))
    return {"seconds": seconds, "error": error}


def measured(name: str, *sizes: int) -> dict:
    """A row in a process of its own: its answer, and the most memory that the process had."""
    command = [sys.executable, __file__, "row", name, *map(str, sizes)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def limit(n: int, d: int = DIM, tile: int = 400) -> dict:
    """Seconds that no product can avoid: one Gram product, an exponential and two products with a vector per tile."""
    rows = np.random.default_rng(0).normal(size=(tile, d)).astype(np.float32)
    vector = np.ones((tile, 1), np.float32)

    def work() -> None:
        gram = rows @ rows.T
        np.exp(gram, out=gram)
        gram @ vector
        gram.T @ vector

    with one_thread():
        best = min(timeit.repeat(work, number=50, repeat=5)) / 50
    return {"seconds": best * 0.5 * (n / tile) ** 2 / cores()}


def judged(what: str, n: int, run: dict, steps: str, reached: str, asked: str, fine: bool) -> dict[str, str]:
    return {
        "what": what, "n": str(n), "seconds": f"{run['seconds']:.3g}", "iterations": steps, "reached": reached,
        "peak, MB": f"{run['bytes'] / 1e6:.0f}", "asked": asked, "missed": "none" if fine else "yes",
    }  # fmt: skip


def tables(quick: bool) -> str:
    sizes = (4_000, 8_000, 16_000) if quick else (12_500, 25_000, 50_000)
    runs, least = [measured("product", n) for n in sizes], [measured("limit", n)["seconds"] for n in sizes]
    exponent = np.polyfit(np.log(sizes), np.log([run["seconds"] for run in runs]), 1)[0]
    found = [
        judged("matrix computed again", n, run, "1", f"{run['seconds'] / low:.1f} times its limit", "", True)
        for n, run, low in zip(sizes, runs, least, strict=True)
    ]  # fmt: skip
    n, part = (16_000, 40) if quick else (100_000, 1)  # a quick run is judged by its part of n^2
    run = measured("iterated", n)
    fine = run["residual"] <= TOL and run["bytes"] <= MEMORY and run["seconds"] <= SOLVE / part
    asked = f"residual {TOL:g}, {SOLVE / part:g} s, {MEMORY / 1e9:g} GB"
    residual = f"residual {run['residual']:.1e}"
    found.append(judged("conjugate gradients", n, run, str(run["iterations"]), residual, asked, fine))
    n, m, part = (
        (100_000, 500, 100) if quick else (1_000_000, 2000, 1)
    )  # of n m^2, and seconds for its compilation
    run, allowed = measured("centers", n, m), PASS / part + (3 if quick else 0)
    fine = run["bytes"] <= MEMORY and run["seconds"] <= allowed
    error, asked = f"test error {run['error']:.1e}", f"{allowed:.3g} s, {MEMORY / 1e9:g} GB"
    found.append(judged(f"{m} centers, x on disk", n, run, "1 pass", error, asked, fine))
    return f"{table(found)}\n\nSeconds of an iteration grow as n^{exponent:.2f} (fitted)."


def row(name: str, *sizes: str) -> None:
    """What a process of its own does."""
    answer = {"product": product, "limit": limit, "iterated": iterated, "centers": centers}[name](
        *map(int, sizes)
    )
    print(json.dumps({**answer, "bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["row"]:
        row(*sys.argv[2:])
    else:
        quick = {"action": "store_true", "help": "smaller problems, a minute in all"}
        report(__doc__, "scale", lambda chosen: tables(chosen.quick), quick=quick)
