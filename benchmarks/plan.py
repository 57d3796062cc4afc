"""Plans against measured times: `nk.scale.plan` from rates measured in seconds, beside builds, products, solutions,
passes and clusters.

    .venv/bin/python benchmarks/plan.py [--quick] [--write]

Rates come from 8,000 points; predictions are for up to 100,000, and for local Dask clusters whose workers share
this machine. A prediction within a quarter is asked for. The number of iterations is not predicted: the plan is given
the one that was needed. The better of two runs counts. The run takes
a quarter of an hour on 2 cores.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _common import report, table
from distributed import LocalCluster

import nearkernel as nk
from nearkernel._run.precision import in_float64
from nearkernel.scale.centers import centered
from nearkernel.scale.products import Recomputed

DIM, ASKED, MEMORY = 50, 0.25, "1GiB"  # too little to hold a matrix


def kernels() -> dict[str, nk.kernels.AbstractKernel]:
    net = nk.MLP(DIM, (1,) * 3, 1, "relu", weight_var=2.0)
    return {"rbf": nk.kernels.RBF(DIM**0.5), "ntk": nk.kernels.NTK(net)}


def points(n: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(n, DIM))


def seconds(work: Callable[[], object], path: Path | None = None) -> float:
    """Of the better of two runs, as everywhere; what the first has written at `path` is removed."""
    found = []
    for _ in range(2):
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return min(found)


def line(
    what: str, kernel: str, n: int, predicted: float, measured: float, unit: str = "s"
) -> dict[str, str]:
    apart = predicted / measured - 1
    return {
        "what": what, "kernel": kernel, "n": f"{n:,}", f"predicted, {unit}": f"{predicted:.3g}",
        f"measured, {unit}": f"{measured:.3g}", "off by": f"{100 * apart:+.0f} %",
        "within a quarter": "yes" if abs(apart) <= ASKED else "NO",
    }  # fmt: skip


@in_float64
def here(name: str, kernel: nk.kernels.AbstractKernel, quick: bool) -> list[dict[str, str]]:
    """On this machine, all cores."""
    rates = nk.scale.measure_rates(kernel, DIM)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "K"
        for n in (6_000,) if quick else (10_000, 20_000):
            x = points(n)
            took = seconds(lambda x=x: nk.scale.build(kernel, x, path), path)
            found.append(line("matrix on disk", name, n, nk.scale.plan(n, DIM, rates).build.seconds, took))
    for n in (10_000,) if quick else (20_000, 50_000, 100_000):
        products = Recomputed(kernel, points(n), 2**30)
        products.tile(slice(0, products.size), slice(0, products.size))  # compiles
        took = seconds(lambda n=n, products=products: products.times(np.ones((n, 1))))
        found.append(line("product", name, n, nk.scale.plan(n, DIM, rates).product.seconds, took))
    for n in (12_000,) if quick else (20_000, 40_000):
        x = points(n)
        solver = nk.dynamics.ConjugateGradients(tol=1e-3, memory=MEMORY)
        nk.solve(kernel, x[:3000], x[:3000, 0], nk.Ridge(1.0), solver=solver)  # compiles
        begin = time.perf_counter()
        solved = nk.solve(kernel, x, np.sin(x[:, 0]), nk.Ridge(1.0), solver=solver)
        took = time.perf_counter() - begin
        wanted = nk.scale.plan(n, DIM, rates, iterations=solved.iterations, memory=MEMORY).solve.seconds
        found.append(line(f"conjugate gradients, {solved.iterations} iterations", name, n, wanted, took))
    for n, m in ((20_000, 500),) if quick else ((50_000, 1000), (100_000, 2000)):
        x = points(n)
        centered(kernel, x[:m], x[:m, :1], x[:m], 2**30)  # compiles
        took = seconds(lambda x=x, m=m: centered(kernel, x, x[:, :1], x[:m], 2**30))
        wanted = nk.scale.plan(n, DIM, rates, centers=m).centers.seconds
        found.append(line(f"pass, {m:,} centers", name, n, wanted, took))
    return found


def clusters(name: str, kernel: nk.kernels.AbstractKernel, quick: bool) -> list[dict[str, str]]:
    """Speed-up of workers on this machine over one of them; each has built a small matrix before."""
    rates, n = nk.scale.measure_rates(kernel, DIM), 6_000 if quick else 16_000
    took: dict[int, float] = {}
    for workers in (1, 2, 4):
        with (
            tempfile.TemporaryDirectory() as folder,
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        ):
            address = cluster.scheduler_address
            nk.scale.build(kernel, points(2400), Path(folder) / "first", block=300, scheduler=address)
            x, path = points(n), Path(folder) / "K"
            took[workers] = seconds(
                lambda x=x, path=path, address=address: nk.scale.build(kernel, x, path, scheduler=address),
                path,
            )
    predicted = {w: nk.scale.plan(n, DIM, rates, workers=w, machines=1).build.seconds for w in took}
    return [
        line(f"{w} workers against 1", name, n, predicted[1] / predicted[w], took[1] / took[w], "times")
        for w in (2, 4)
    ]


def tables(quick: bool) -> str:
    lines = [row for name, kernel in kernels().items() for row in here(name, kernel, quick)]
    shared = [row for name, kernel in kernels().items() for row in clusters(name, kernel, quick)]
    good = sum(row["within a quarter"] == "yes" for row in (*lines, *shared))
    count = f"{good} of {len(lines) + len(shared)} predictions are within a quarter."
    return "\n\n".join([table(lines), table(shared), count])


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "smaller problems, a minute in all"}
    report(
        __doc__, "plan", lambda chosen: tables(chosen.quick), ("jax", "numpy", "scipy", "dask"), quick=quick
    )
