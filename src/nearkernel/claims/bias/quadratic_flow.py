"""Does gradient flow of a quadratic model fit its data?"""

import math

import numpy as np
import scipy.integrate

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE, Figure


class QuadraticFlow(Claim):
    """Gradient flow of random quadratic models fits the data if weights are several times as many as points."""

    source = "graduate course: implicit bias, open problems"
    formula = (
        "dtheta/dt = -grad 1/2 sum (phi.theta + eps/2 theta.psi theta - y)^2 from 0: loss -> 0, or stuck"
    )

    points: int = setting(6, "Points n.", low=3, high=12)
    trials: int = setting(40, "Models for each number of weights.", low=10, high=400, quick=16)

    def run(self, seed: int) -> Result:
        n, ratios = self.points, np.array([0.5, 1.0, 2.0, 4.0])
        share = {}
        for eps in (0.3, 3.0):
            share[eps] = np.array(
                [np.mean([self._fits(seed, eps, int(r * n), t) for t in range(self.trials)]) for r in ratios]
            )
        error = math.sqrt(0.25 / self.trials)
        rows = (
            at_most("share that fits, half as many weights as points, eps = 0.3", 0.1, share[0.3][0]),
            at_most("share that fits, as many weights as points, eps = 3", 0.7, share[3.0][1], error),
            at_least("share that fits, 4 times as many weights as points, eps = 0.3", 0.95, share[0.3][3]),
            at_least("share that fits, 4 times as many weights as points, eps = 3", 0.8, share[3.0][3]),
        )
        return Result(rows, {"weights / points": ratios, "eps = 0.3": share[0.3], "eps = 3": share[3.0]})

    def _fits(self, seed: int, eps: float, f: int, trial: int) -> bool:
        rng, n = generator(seed, f"{eps} {f} {trial}"), self.points
        phi, y = rng.normal(size=(n, f)) / math.sqrt(f), rng.normal(size=n)
        psi = rng.normal(size=(n, f, f))
        psi = eps * (psi + psi.transpose(0, 2, 1)) / math.sqrt(2) / f

        def force(_, theta):
            turned = psi @ theta
            return -(phi @ theta + 0.5 * turned @ theta - y) @ (phi + turned)

        run = scipy.integrate.solve_ivp(
            force, (0.0, 3000.0), np.zeros(f), method="LSODA", rtol=1e-6, atol=1e-8
        )
        theta = run.y[:, -1]
        loss = np.sum((phi @ theta + 0.5 * (psi @ theta) @ theta - y) ** 2)
        return bool(loss < 1e-3 * np.sum(y**2))

    figure = Figure("weights / points", "share of models whose flow fits the data", log="x")
    figure.line("eps = 0.3", BLUE, label="ε = 0.3")
    figure.line("eps = 3", ORANGE, label="ε = 3")
    figure.level(1)
