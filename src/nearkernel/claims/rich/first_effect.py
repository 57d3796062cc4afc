"""The first effect of richness."""

import warnings

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._drawing import BLUE, GREEN, Figure
from ._trained import STEPS, limit, network, problem, rate


class FirstEffect(Claim):
    """Richness gamma0 moves predictions by gamma0^2 c, and c is width times the cubic part of the 1/width theory."""

    source = "mean-field theory of networks that learn features: the limit of small richness"
    formula = "f = f_lazy + gamma0^2 c,  c = N [dd(2 y) - 2 dd(y)]/6 with dd the ddNTK part of order 1/N"

    points: int = setting(3, "Training points.", low=1, high=6)

    def run(self, seed: int) -> Result:
        x, y, x_new = problem(seed, self.points)
        x_new, lazy = x_new[:2], network(100, "linear", "ntk")
        descent = nk.GradientDescent(rate(x, "linear"), STEPS)

        def ddntk(y):
            found = nk.forecast(lazy, x, y, descent, x_new, theory=nk.FiniteWidth())
            assert isinstance(found, nk.results.FiniteForecast)
            return 100 * found.contributions["ddntk"].mean

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the whole correction need not be small
            cubic = (ddntk(2 * y) - 2 * ddntk(y)) / 6
        start = nk.forecast(lazy, x, y, descent, x_new).mean
        gammas = np.array([0.05, 0.1, 0.2, 0.4])
        moved = np.array([limit(x, y, x_new, g, activation="linear").mean - start for g in gammas])
        slopes = moved / gammas[:, None] ** 2
        first = (4 * slopes[0] - slopes[1]) / 3
        rows = [exact(f"c at new input {k + 1}", cubic[k], first[k], 1e-3) for k in range(len(x_new))]
        size = np.linalg.norm(moved, axis=1)
        return Result(
            tuple(rows), {"richness": gammas, "moved": size, "law": gammas**2 * np.linalg.norm(cubic)}
        )

    figure = Figure("richness", "how far predictions moved", log="xy")
    figure.line("moved", BLUE, "o", "rich limit minus lazy limit")
    figure.line("law", GREEN, "--", "gamma0^2 c of the 1/width theory")
