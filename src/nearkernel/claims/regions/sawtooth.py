"""Depth folds: few neurons, many pieces."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, exact, refuted, setting
from .._drawing import ORANGE, Figure


class Sawtooth(Claim):
    """A relu network of 2 L neurons in L layers can have 2^L linear pieces on the unit interval."""

    source = "graduate course: linear regions"
    formula = "f(x) = 2 relu(x) - 4 relu(x - 1/2), applied L times: 2^(L-1) spikes, 2^L pieces on [0, 1]"
    erratum = Erratum(
        "graduate course, line 2500",
        "L spikes and so 2 · 2^L pieces",
        "2^L spikes, counting what lies beside the unit interval as well; line 2493 has the right 2^L pieces",
        "pieces between -1 and 2, as in line 2500",
    )

    levels: int = setting(10, "L, how often the fold is applied.", low=3, high=14, quick=8)

    def run(self, seed: int) -> Result:
        levels = np.arange(1, self.levels + 1)
        pieces = np.array([len(nk.theory.breakpoints(*nk.theory.sawtooth(int(l)), 0, 1)) + 1 for l in levels])
        net, params = nk.theory.sawtooth(self.levels)
        wide = len(nk.theory.breakpoints(net, params, -1, 2)) + 1
        grid = np.linspace(0, 1, 2 * 2**self.levels + 1)
        teeth = net(params, grid[:, None])[:, 0]
        spikes = np.sum((teeth[1:-1] > teeth[:-2]) & (teeth[1:-1] > teeth[2:]))
        rows = (
            exact("pieces", 2**self.levels, pieces[-1], 0.0),
            exact("spikes", 2 ** (self.levels - 1), spikes, 0.0),
            exact("neurons", 2 * self.levels, sum(net.widths), 0.0),
            refuted("pieces between -1 and 2, as in line 2500", 2 * 2**self.levels, wide),
            refuted("spikes, as in line 2500", self.levels, spikes),
            refuted("spikes, read as 2^L", 2**self.levels, spikes),
        )
        return Result(rows, {"levels": levels, "theory": 2.0**levels, "measured": pieces})

    figure = Figure("levels", "linear pieces on [0, 1]", xlabel="layers of two neurons", log="y")
    figure.pair()
    figure.line(lambda data: 2 * data["theory"], ORANGE, "--", "line 2500")
