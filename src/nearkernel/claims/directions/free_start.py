"""A start that is not symmetric."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator, sem
from .._drawing import BLUE, GRAY, Figure


class FreeStart(Claim):
    """One gradient step finds hidden directions as well from small readouts without symmetry as from output 0."""

    source = "feature learning against kernels: one gradient step"
    formula = "a_j = +-h, neurons independent: W -> span of the hidden directions as h -> 0"

    dim: int = setting(16, "Inputs d.", low=8, high=40)
    points: int = setting(1500, "Training points.", low=300, high=10_000)
    trials: int = setting(24, "Data sets.", low=6, high=200, quick=10)

    def run(self, seed: int) -> Result:
        rng, d = generator(seed, "data"), self.dim
        target = nk.theory.MultiIndexPolynomial(np.eye(2, d), {(2, 0): 0.5, (0, 2): -0.5})
        heads = (None, 1e-4, 1e-2, 1e-1, 1.0)
        table = np.empty((self.trials, len(heads)))
        for i in range(self.trials):
            x = rng.normal(size=(self.points, d))
            for j, head in enumerate(heads):
                found = nk.theory.one_step_features(x, target(x), 100, i, subspace=np.eye(2, d), head=head)
                table[i, j] = found.share
        pairs, small, large = table[:, 0], table[:, 1], table[:, -1]
        rows = (
            at_least(
                "share in the hidden directions, h = 1e-4, over that of pairs",
                0.98,
                np.mean(small / pairs),
                sem(small / pairs),
            ),
            at_least("share in the hidden directions, h = 1e-4, over chance", 3.0, small.mean() * d / 2),
            at_most(
                "share in the hidden directions, h = 1, over that of pairs", 0.8, large.mean() / pairs.mean()
            ),
        )
        values = {
            "h": np.array(heads[1:], float),
            "share": table.mean(axis=0)[1:],
            "pairs": np.full(4, pairs.mean()),
        }
        return Result(rows, values)

    figure = Figure("h", "share of |W|² in the hidden directions", xlabel="size h of the readout", log="x")
    figure.line("share", BLUE, label="independent neurons")
    figure.line("pairs", GRAY, "--", "symmetric pairs")
