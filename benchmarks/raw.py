"""Kernels of raw data against the same data standardized: CPU seconds in one run.

    .venv/bin/python benchmarks/raw.py [--quick] [--write]

Raw columns make preactivations hundreds of units wide, and inputs nearly parallel. CPU seconds of this process, the
best of several runs, taken in turn; and those of the first call on raw data, with compilation.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from _common import report, table
from sklearn import datasets

import nearkernel as nk

REPEATS = 3
SLOWER = 4.0  # asked: raw over standardized


def hard_tanh(z):
    return jnp.clip(z, -1.0, 1.0)


SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "diabetes": lambda return_X_y: datasets.load_diabetes(return_X_y=return_X_y, scaled=False),
    "breast_cancer": datasets.load_breast_cancer,
}
ACTIVATIONS = {
    **{name: name for name in ("erf", "tanh", "sigmoid", "softplus", "silu", "gelu", "elu", "selu")},
    "hard tanh": hard_tanh,
    "hard swish": jax.nn.hard_swish,
    "tanh(z) + 0.1*z^2": "tanh(z) + 0.1*z^2",
}


def seconds(net: nk.MLP, raw: np.ndarray) -> tuple[float, float, float]:
    """CPU seconds of raw data, standardized data, and the first call."""
    both = raw, (raw - raw.mean(axis=0)) / np.maximum(raw.std(axis=0), 1e-12)
    times: list[list[float]] = [[], []]
    for _ in range(1 + REPEATS):
        for x, found in zip(both, times, strict=True):
            begin = time.process_time()
            nk.kernels.nngp_and_ntk(net, x)
            found.append(time.process_time() - begin)
    return min(times[0][1:]), min(times[1][1:]), times[0][0]


def measured(quick: bool) -> str:
    lines = []
    for name in ("breast_cancer",) if quick else SETS:
        x = SETS[name](return_X_y=True)[0]
        for label, activation in ACTIVATIONS.items():
            raw, standard, first = seconds(nk.MLP(x.shape[1], (512,) * 2, 1, activation, 1.5, 0.1), x)
            lines.append(
                {
                    "row": f"{name}, {label}",
                    "n": str(len(x)),
                    "raw, CPU s": f"{raw:.3g}",
                    "standardized, CPU s": f"{standard:.3g}",
                    "raw/standardized": f"{raw / standard:.1f}",
                    "first call, CPU s": f"{first:.3g}",
                    "missed": "ratio" if raw > SLOWER * standard else "none",
                }
            )
    return table(lines)


if __name__ == "__main__":
    report(
        __doc__,
        "raw",
        lambda chosen: measured(chosen.quick),
        quick={"action": "store_true", "help": "one data set"},
    )
