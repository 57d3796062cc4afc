"""Weights that are not normal."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical, unlike
from .._claim import generator, sem
from .._drawing import GRAY, Figure


class AnyWeights(Claim):
    """The fourth moment of a random relu network with uniform weights is known, and is not that of normal ones."""

    source = "graduate course: path counting"
    formula = "B' = n v^2 M/2,  A' = B' + n (n-1) v^2 A/4,  C' likewise,  M = A + 2 C + (mu_4 - 3) B;  E[z^4] = v^2 M"

    size: int = setting(400_000, "Networks of each width.", low=20_000, high=4_000_000, quick=100_000)
    most: int = setting(8, "Largest width.", low=4, high=16)

    def run(self, seed: int) -> Result:
        x, widths = np.array([[1.0, 0.0]]), np.unique([2, 4, self.most])
        table, rows = [], []
        for n in widths:
            net = nk.MLP(2, (int(n), int(n)), activation="relu", weight_var=2.0)
            found, normal = (nk.theory.relu_moments(net, x, each) for each in (1.8, 3.0))
            z = _outputs(generator(seed, f"width {n}"), self.size, int(n), x[0])
            theory, other = float(found.fourth[0]), float(normal.fourth[0])
            table.append((theory, np.mean(z**4), sem(z**4), other))
            rows.append(statistical(f"E[z^4], width {n}", theory, np.mean(z**4), sem(z**4)))
            rows.append(statistical(f"E[z^2], width {n}", found.second[0], np.mean(z**2), sem(z**2)))
        rows.append(
            unlike(f"E[z^4], width {widths[0]}, of normal weights", table[0][3], table[0][1], sem=table[0][2])
        )
        columns = dict(zip(("theory", "measured", "sem", "normal"), np.array(table).T, strict=True))
        return Result(tuple(rows), {"width": widths, **columns})

    figure = Figure("width", "fourth moment of an output", xlabel="width of two hidden layers")
    figure.pair(label="uniform")
    figure.line("normal", GRAY, "--", "normal weights")


def _outputs(rng: np.random.Generator, size: int, n: int, x: np.ndarray) -> np.ndarray:
    """z (size,) of relu networks with uniform weights of variance 2/fan-in."""
    s = np.broadcast_to(x, (size, 1, len(x)))
    for fan_in, fan_out in ((len(x), n), (n, n), (n, 1)):
        edge = np.sqrt(3 * 2 / fan_in)
        z = s @ rng.uniform(-edge, edge, (size, fan_in, fan_out))
        s = np.maximum(z, 0.0)
    return z[:, 0, 0]
