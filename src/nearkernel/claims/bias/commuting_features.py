"""Implicit bias of quadratic models beyond diagonal networks."""

import numpy as np
import scipy.integrate

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE, Figure


class CommutingFeatures(Claim):
    """Quadratic models whose meta-features commute have an implicit bias; in others weights of the loss decide."""

    source = "graduate course: implicit bias, open problems"
    formula = "z = theta.Psi(x) theta, Psi(x) = Q diag(x, -x) Q^T: ends at the minimum of Q_alpha; else no potential"

    dim: int = setting(8, "Features d; there are 2 d weights.", low=4, high=20)
    points: int = setting(3, "Points that are interpolated.", low=2, high=6)
    trials: int = setting(10, "Problems.", low=3, high=100, quick=4)

    def run(self, seed: int) -> Result:
        table = []
        for t in range(self.trials):
            rng = generator(seed, f"problem {t}")
            d, n = self.dim, self.points
            x, turn = rng.normal(size=(n, d)), np.linalg.qr(rng.normal(size=(2 * d, 2 * d)))[0]
            y = 0.5 * x @ rng.normal(size=d)
            own = np.stack([(turn * np.concatenate([row, -row])) @ turn.T for row in x])
            noise = rng.normal(size=own.shape) * np.linalg.norm(x, axis=1)[:, None, None] / np.sqrt(2 * d)
            mixed = (noise + noise.transpose(0, 2, 1)) / np.sqrt(2)
            start, even, uneven = turn @ np.full(2 * d, 0.3), np.ones(n), np.geomspace(1, 30, n)
            ends = [_end(psi, y, start, weights) for psi in (own, mixed) for weights in (even, uneven)]
            halves = turn.T @ ends[0]
            beta = halves[:d] ** 2 - halves[d:] ** 2
            theory = nk.theory.implicit_minimizer(x, y, 0.3)
            apart = [np.linalg.norm(a - b) / np.linalg.norm(a - start) for a, b in (ends[:2], ends[2:])]
            table.append((np.linalg.norm(beta - theory) / np.linalg.norm(theory), *apart))
        away, same, other = np.array(table).T
        rows = (
            at_most(
                "distance of the end from the minimum of the potential, turned diagonal network",
                1e-3,
                away.max(),
            ),
            at_most("its distance from the end with other weights of the loss", 1e-3, same.max()),
            at_least("the same for meta-features that do not commute, mean", 0.02, other.mean()),
        )
        return Result(rows, {"trial": np.arange(self.trials), "commute": same, "do not commute": other})

    figure = Figure("trial", "how far apart two weightings of the loss end", xlabel="problem", log="y")
    figure.line("commute", BLUE, "o", "meta-features commute")
    figure.line("do not commute", ORANGE, "s", "they do not")


def _end(psi: np.ndarray, y: np.ndarray, start: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Gradient flow of 1/2 sum weights (theta.Psi theta - y)^2 until it interpolates."""

    def force(_, theta):
        turned = psi @ theta
        return -2 * (weights * (turned @ theta - y)) @ turned

    run = scipy.integrate.solve_ivp(force, (0.0, 400.0), start, method="LSODA", rtol=1e-9, atol=1e-11)
    return run.y[:, -1]
