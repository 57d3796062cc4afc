"""Outputs of random relu networks have fat tails; how fat is known exactly."""

import jax
import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._drawing import Figure


class ExcessKurtosis(Claim):
    """The output of a random relu network has excess kurtosis 3 (prod (1 + 5/n) - 1): depth over width
    decides."""

    source = "graduate course: initialization, networks of finite width"
    formula = "E z^4 / (E z^2)^2 - 3 = 3 [prod_l (1 + 5/n_l) - 1],   C_W = 2, C_b = 0"

    depth: int = setting(3, "Hidden layers.", low=1, high=8)
    widths: int = setting(4, "How many widths: 8, 16, 32, ...", low=2, high=5, quick=2)
    networks: int = setting(100_000, "Networks drawn at each width.", low=2000, high=1_000_000, quick=20_000)

    def run(self, seed: int) -> Result:
        widths = 8 * 2 ** np.arange(self.widths)
        theory = 3 * ((1 + 5 / widths) ** self.depth - 1)
        x = np.ones((1, 2))
        found = []
        for n in widths:
            net = nk.MLP(2, (int(n),) * self.depth, 1, "relu", weight_var=2.0)
            law = nk.theory.gaussianity(net, x, self.networks, jax.random.key(seed + int(n)))
            found.append((law.kurtosis[0], law.kurtosis_sem[0]))
        measured, error = np.array(found).T
        rows = [
            statistical(f"excess kurtosis, width {n}", *row)
            for n, *row in zip(widths, theory, measured, error, strict=True)
        ]
        return Result(tuple(rows), {"width": widths, "theory": theory, "measured": measured, "sem": error})

    figure = Figure("width", "excess kurtosis", log="xy")
    figure.pair()
