"""Catapults of several points: rates, features, and degrees of the model."""

import math

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE, Figure


class CatapultPoints(Claim):
    """Quadratic models of relu networks have a catapult phase on several points too, from 2/ntk to about 4/ntk."""

    source = "graduate course: catapults, open problems"
    formula = "lazy below lr ntk = 2, ntk the largest eigenvalue of the tangent kernel; divergent above a limit near 4"

    width: int = setting(1000, "Neurons of the network.", low=200, high=5000, quick=400)
    trials: int = setting(10, "Networks for each number of points.", low=4, high=100, quick=4)

    def run(self, seed: int) -> Result:
        counts, table = np.array([1, 2, 4, 8]), []
        for n in counts:
            rng = generator(seed, f"{n} points")
            table.append([self._boundaries(rng, int(n)) for _ in range(self.trials)])
        found = np.array(table)  # (counts, trials, 2)
        mean, error = found.mean(axis=1), found.std(axis=1, ddof=1) / math.sqrt(self.trials)
        rows = []
        for at, n in enumerate(counts):
            rows.append(exact(f"lr ntk at which the loss rises, {n} points", 2.0, mean[at, 0], 0.06))
            rows.append(exact(f"lr ntk at which training diverges, {n} points", 4.0, mean[at, 1], 0.1))
        return Result(
            tuple(rows),
            {"points": counts.astype(float), "onset": mean[:, 0], "limit": mean[:, 1], "sem": error[:, 1]},
        )

    def _boundaries(self, rng: np.random.Generator, n: int) -> tuple[float, float]:
        m, d = self.width, 4
        x, y = rng.normal(size=(n, d)) / math.sqrt(d), rng.choice([-1.0, 1.0], n)
        u, v = rng.normal(size=(m, d)), rng.normal(size=m)
        on = (x @ u.T > 0) / math.sqrt(m)  # of the quadratic model: neurons keep their sides
        inner = on * (x @ u.T)
        ntk = np.linalg.eigvalsh(inner @ inner.T + (x @ x.T) * ((on * v) @ (on * v).T))[-1]

        def losses(lr: float) -> np.ndarray:
            a, b, found = u.copy(), v.copy(), []
            for _ in range(150):
                hidden = on * (x @ a.T)
                r = hidden @ b - y
                found.append(0.5 * r @ r)
                if not found[-1] < 1e12:
                    return np.array([*found, np.inf])
                a, b = a - lr * ((on * r[:, None]).T @ x) * b[:, None], b - lr * r @ hidden
            return np.array(found)

        onset, limit = nk.theory.phase_boundaries(losses, ntk, rtol=0.03)
        return onset * ntk, limit * ntk

    figure = Figure("points", "lr · largest eigenvalue of the kernel", log="x", ylim=(0, 6))
    figure.line("onset", BLUE, label="the loss starts to rise")
    figure.bars("limit", "sem", ORANGE, "o-", label="training diverges")
    figure.level(2)
    figure.level(4)
