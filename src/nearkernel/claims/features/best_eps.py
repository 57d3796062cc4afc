"""How much feature learning is best on test data."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, exact, refuted, setting
from .._drawing import BLUE, GREEN, ORANGE
from ._problems import problem, solved, trained_outputs


class BestEps(Claim):
    """The test loss is least at eps* = -sum (z^F - y) z^I / sum [z^I^2 + 2 (z^F - y) z^II]."""

    source = "talk on the principles of deep learning theory: does feature learning help"
    formula = "L(eps) = 1/2 sum (z^F + eps z^I + eps^2 z^II - y)^2,   L'(0) = sum (z^F - y) z^I"
    erratum = Erratum(
        "talk on the principles of deep learning theory, line 906",
        "eps* without the 2 before (z^F - y) z^II",
        "z^II is the coefficient of eps^2, as line 898 of the same slide defines it, and not the second derivative",
        "eps* without the 2, as in line 906",
    )

    eps: float = setting(
        1e-3, "Where the exact loss of the constructed test labels is least.", low=2e-4, high=4e-3
    )
    share: float = setting(
        0.3, "What half of the term with z^II takes away of the curvature.", low=0.1, high=0.4
    )

    def run(self, seed: int) -> Result:
        p, rule = problem(6, seed, new=8), nk.DirectOptimization()
        at = lambda e: trained_outputs(rule, p, e)
        first = (at(self.eps + 1e-4) - at(self.eps - 1e-4)) / 2e-4
        second = (at(self.eps + 1e-3) - 2 * at(self.eps) + at(self.eps - 1e-3)) / 2e-6
        across = second - first * (first @ second) / (first @ first)
        y_new = at(self.eps) + self.share * (first @ first) / (across @ across) * across
        found = solved(rule, p, 0.01, order=2).feature_learning(p.x_new, y_new)
        z_f, z_i, z_ii = (term[:, 0] for term in found.terms)
        printed = -((z_f - y_new) @ z_i) / (z_i @ z_i + (z_f - y_new) @ z_ii)
        loss = lambda e: 0.5 * np.sum((at(e) - y_new) ** 2)
        rows = (
            exact("eps*", found.best_eps, self.eps, 0.05),
            refuted("eps* without the 2, as in line 906", printed, self.eps, tolerance=0.05),
            exact("slope of the test loss at eps = 0", found.slope, (loss(1e-5) - loss(-1e-5)) / 2e-5, 1e-3),
        )
        grid = np.linspace(-2 * self.eps, 4 * self.eps, 25)
        marks = {"eps*": np.array([found.best_eps]), "eps* without the 2": np.array([printed])}
        losses = {"theory": found.predicted(grid), "measured": np.array([loss(e) for e in grid])}
        return Result(rows, {"eps": grid, **losses, **marks})

    def draw(self, axes, result):
        data, base = result.data, result.data["measured"].min()
        axes.plot(data["eps"], data["theory"] - base, color=BLUE, label="to second order")
        axes.plot(
            data["eps"], data["measured"] - base, "o", mfc="white", color=BLUE, label="trained at each eps"
        )
        axes.axvline(data["eps*"][0], color=GREEN, ls="--", label="eps*")
        axes.axvline(data["eps* without the 2"][0], color=ORANGE, ls=":", label="line 906")
        axes.set(xlabel="eps", ylabel="test loss above its least")
