"""Which weights a diagonal network finds."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, exact, refuted, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE, Figure


class DiagonalNetwork(Claim):
    """Gradient flow of a diagonal network from alpha ends where a potential between L1 and L2 norm is least."""

    source = "graduate course: implicit bias, diagonal networks"
    formula = "beta = 2 alpha^2 sinh(X^T nu),  Q = alpha^2 sum q(beta/alpha^2), q(z) = 2 - sqrt(4 + z^2) + z asinh(z/2)"
    erratum = Erratum(
        "graduate course, line 1617",
        "f = alpha^2 theta_0^2 sinh, without a 2",
        "the f of lines 1562, 1585 and 1599, so that only this line lost the 2; the potential after it is right",
        "1 + the same with alpha^2, as in line 1617",
    )

    alpha: float = setting(0.1, "Scale of the initialization.", low=0.03, high=3.0)
    dim: int = setting(16, "Weights.", low=8, high=40)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        x, truth = rng.normal(size=(self.dim // 2, self.dim)), np.zeros(self.dim)
        truth[:2] = 1.0, -1.5
        y = x @ truth
        theory = nk.theory.implicit_minimizer(x, y, self.alpha)
        net = nk.theory.DiagonalNetwork(self.dim, self.alpha)
        run = nk.simulate(net, net.init(), x, y, nk.GradientFlow(), tol=1e-8)
        found = net.weights(run.params)
        halves = run.params["plus"][0] * run.params["minus"][0]
        worst = np.argmax(np.abs(found - theory))
        # If beta = c sinh(X^T nu), then arcsinh(beta/c) lies in the span of the rows of X; with another c it does not.
        left = lambda c: _outside(np.arcsinh(found / c), x)
        rows = (
            exact("weight 0", theory[0], found[0], 1e-4),
            exact("weight that differs most, plus 1", 1 + theory[worst], 1 + found[worst], 1e-5),
            exact("product of both halves, weight 0", self.alpha**2, halves, 1e-5),
            exact(
                "1 + part of arcsinh(beta/(2 alpha^2)) not in the rows of X",
                1.0,
                1 + left(2 * self.alpha**2),
                1e-4,
            ),
            refuted(
                "1 + the same with alpha^2, as in line 1617", 1.0, 1 + left(self.alpha**2), tolerance=0.01
            ),
        )
        other = np.linalg.lstsq(x, y, rcond=None)[0]
        data = {
            "weight": np.arange(self.dim),
            "theory": theory,
            "measured": np.asarray(found),
            "least squares": other,
        }
        return Result(rows, data)

    figure = Figure("weight", "value at the end")
    figure.line("theory", BLUE, "_", "least potential", ms=14, mew=2)
    figure.line("measured", BLUE, "o", "gradient flow", mfc="white")
    figure.line("least squares", ORANGE, "x")
    figure.level(0, lw=0.8, ls="-")


def _outside(vector: np.ndarray, x: np.ndarray) -> float:
    """The share of a vector that is not in the span of the rows of x."""
    inside = x.T @ np.linalg.lstsq(x.T, vector, rcond=None)[0]
    return float(np.linalg.norm(vector - inside) / np.linalg.norm(vector))
