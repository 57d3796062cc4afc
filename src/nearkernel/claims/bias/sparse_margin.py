"""Margins of quadratic models."""

import numpy as np
import scipy.integrate
import scipy.optimize

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE, Figure


class SparseMargin(Claim):
    """On separable data a diagonal quadratic model tends to the largest margin per absolute sum of its weights."""

    source = "graduate course: implicit bias, open problems"
    formula = "beta = u^2 - v^2, exponential loss: beta/|beta|_1 -> argmax min_i y_i x_i.beta / |beta|_1, not |beta|_2"

    dim: int = setting(20, "Features d.", low=8, high=60)
    points: int = setting(12, "Points.", low=4, high=30)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        labels = np.where(np.arange(self.points) % 2, 1.0, -1.0)
        x = rng.normal(size=(self.points, self.dim))
        x[:, 0] = labels * np.abs(x[:, 0]) + labels
        signed = x * labels[:, None]
        d = self.dim
        # max t with signed (p - q) >= t, sum p + q = 1
        program = scipy.optimize.linprog(
            np.append(np.zeros(2 * d), -1.0),
            np.column_stack([-signed, signed, np.ones(self.points)]),
            np.zeros(self.points),
            np.append(np.ones(2 * d), 0.0)[None],
            [1.0],
            bounds=[(0, None)] * (2 * d) + [(None, None)],
        )
        best, straight = -program.fun, nk.theory.max_margin(x, labels).w

        def field(_, log_square):
            """ln u^2 and ln v^2 in time that runs as the loss falls: d ln u^2/dt = 4 X^T q, q ~ exp(-margins)."""
            u, v = np.exp(np.minimum(log_square.reshape(2, d), 300.0))
            margins = signed @ (u - v)
            weights = np.exp(margins.min() - margins)
            # Time is slowed as the weights grow, so that the margins grow by about 1 in a unit of it.
            pull = signed.T @ (weights / weights.sum()) / (1 + np.abs(u - v).sum())
            return 4 * np.concatenate([pull, -pull])

        times = np.geomspace(1.0, 3000.0, 40)
        start = np.full(2 * d, np.log(0.01))
        run = scipy.integrate.solve_ivp(
            field, (0, times[-1]), start, method="LSODA", t_eval=times, rtol=1e-7, atol=1e-9
        )
        u, v = np.exp(run.y.reshape(2, d, -1))
        beta = (u - v).T
        share = (beta @ signed.T).min(axis=1) / np.abs(beta).sum(axis=1) / best
        other = (signed @ straight).min() / np.abs(straight).sum() / best
        rows = (
            at_least("margin per absolute sum at the end, over the largest", 0.97, share[-1]),
            at_most("the same, at the most", 1.0 + 1e-6, share.max()),
            at_most("that of the largest margin per length", 0.95, other),
        )
        return Result(
            rows, {"time": times, "quadratic model": share, "linear model": np.full(len(times), other)}
        )

    figure = Figure(
        "time",
        "margin / |β|₁, over the largest",
        xlabel="time, slowed as weights grow",
        log="x",
        ylim=(0, 1.05),
    )
    figure.line("quadratic model", BLUE, "-")
    figure.line("linear model", ORANGE, "-", "limit of the linear model")
    figure.level(1)
