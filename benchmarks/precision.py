"""Kernels in float32 against float64, and of activations without a closed form against relu: CPU seconds in one run.

    .venv/bin/python benchmarks/precision.py [--quick] [--write]

CPU seconds of this process, the best of several runs, taken in turn: they hardly depend on what else the machine does.
"""

import time

import numpy as np
from _common import report, table

import nearkernel as nk

DIM, DEPTH, REPEATS = 784, 3, 4
FASTER, SLOWER, DIGITS = 1.7, 3.0, 1e-5  # asked: float64 over float32, any over relu, deviation of float32


def seconds(net: nk.MLP, x: np.ndarray) -> tuple[float, float, float]:
    """CPU seconds in float64 and in float32, and the largest deviation of the latter."""
    best = {"float64": np.inf, "float32": np.inf}
    found = {}
    for _ in range(1 + REPEATS):  # the first compiles
        for dtype in best:
            with nk.precision(dtype):
                begin = time.process_time()
                found[dtype] = nk.kernels.nngp_and_ntk(net, x)
                best[dtype] = min(best[dtype], time.process_time() - begin)
    pairs = zip(found["float32"], found["float64"], strict=True)
    return (
        best["float64"],
        best["float32"],
        max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs),
    )


def measured(quick: bool) -> str:
    x, lines, relu = np.random.default_rng(0).normal(size=(500 if quick else 2000, DIM)), [], 0.0
    for name in ("relu", "erf", "tanh", "sigmoid", "softplus", "silu"):
        double, single, off = seconds(nk.MLP(DIM, (512,) * DEPTH, 1, name, 1.5, 0.1), x)
        relu = relu or double
        missed = {
            "float32": double / single < FASTER,
            "relu": double / relu > SLOWER,
            "digits": off > DIGITS,
        }
        lines.append(
            {
                "row": f"{name}, NNGP + NTK",
                "n": str(len(x)),
                "float64, CPU s": f"{double:.3g}",
                "over relu": f"{double / relu:.1f}",
                "float32, CPU s": f"{single:.3g}",
                "float64/float32": f"{double / single:.2f}",
                "deviation": f"{off:.0e}",
                "missed": ", ".join(name for name, is_missed in missed.items() if is_missed) or "none",
            }
        )
    return table(lines)


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "500 points instead of 2,000"}
    report(__doc__, "precision", lambda chosen: measured(chosen.quick), quick=quick)
