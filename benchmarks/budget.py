"""Where the time of a kernel matrix goes: its parts alone, on one thread and on all, beside the whole.

.venv/bin/python benchmarks/budget.py [--write]
"""

import time
from collections.abc import Callable

import jax
import numpy as np
from _common import report, table

import nearkernel as nk
from nearkernel._run.blas import one_thread
from nearkernel._run.executor import in_order, lanes
from nearkernel.kernels.tiles import _Blocks, covering, gaps, matrices, ready
from nearkernel.kernels.wide.network import wide

N, DIM, SIDE, REPEATS = 4000, 784, 400, 8


def best(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds and CPU seconds of the quickest of several calls."""
    found = []
    for _ in range(REPEATS):
        time.sleep(0.05)  # threads of the last call may still spin
        clock, cpu = time.perf_counter(), time.process_time()
        call()
        found.append((time.perf_counter() - clock, time.process_time() - cpu))
    return min(found)


def tables(_) -> str:
    x = np.random.default_rng(0).normal(size=(N, DIM))
    net = nk.MLP(DIM, (512, 512, 512), 1, "relu", 1.5, 0.1)
    with jax.enable_x64(True), one_thread():
        return table(lines(net, x))


def lines(net: nk.MLP, x: np.ndarray) -> list[dict[str, str]]:
    kernel, side, _ = ready(wide(net, ("nngp", "ntk")), x, None)
    blocks, found = _Blocks(kernel, side, side), [np.zeros((N, N)) for _ in range(2)]
    tiles = list(covering(slice(0, N), slice(0, N), [SIDE, SIDE], lower=True))
    gap = gaps(side.unit[:SIDE], side.unit[SIDE : 2 * SIDE], False)

    def products(at) -> None:
        gaps(side.unit[at[0]], side.unit[at[1]], at[0] == at[1])

    def functions(at) -> None:
        blocks.at(*at, at[0] == at[1])

    def copies(at) -> None:
        for matrix in found:
            matrix[at], matrix[at[::-1]] = gap, gap.T

    def over(task, threads: int):
        return best(lambda: [None for _ in in_order(task, tiles, threads)])

    parts = {
        "products (BLAS) and gaps": products,
        "the same, then layers (XLA), tile by tile": functions,
        "copies into both matrices": copies,
    }
    shown = []
    for name, task in parts.items():
        alone, cpu = over(task, 1)
        every, _ = over(task, lanes())
        shown.append(line(name, alone, every, cpu))
    first, cpu = best(lambda: ready(kernel, x, None))
    shown.append(line("lengths, unit vectors, rows (one thread)", first, first, cpu))
    whole, cpu = best(lambda: matrices(kernel, side, None, 2))
    shown.append(line("both matrices, layers of a tile beside products of the next", None, whole, cpu))
    whole, cpu = best(lambda: nk.kernels.nngp_and_ntk(net, x))
    return [*shown, line("the whole call", None, whole, cpu)]


def line(what: str, alone: float | None, every: float, cpu: float) -> dict[str, str]:
    return {
        "what": what,
        "one thread, ms": "" if alone is None else f"{1e3 * alone:.0f}",
        "all threads, ms": f"{1e3 * every:.0f}",
        "CPU ms": f"{1e3 * cpu:.0f}",
    }


if __name__ == "__main__":
    report(__doc__, "budget", tables)
