"""Classifiers that are trained forever."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, exact, setting
from .._claim import generator
from .._drawing import BLUE, GRAY, ORANGE, Figure


class MaxMargin(Claim):
    """On separable data the weights turn to the maximum margin like 1/log t, and grow along it like log t."""

    source = "graduate course: implicit bias, margins"
    formula = "w(t) = w_hat log t + w_tilde + o(1),   exp(-y_i x_i.w_tilde) = a_i > 0 on the support vectors"

    points: int = setting(40, "Points in five dimensions.", low=10, high=200)
    log_time: float = setting(2000.0, "Logarithm of the time.", low=500.0, high=5000.0)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        w, x = rng.normal(size=5), rng.normal(size=(self.points, 5))
        labels = np.sign(x @ w)
        x = x + 0.3 * labels[:, None] * w
        times = np.geomspace(5, self.log_time, 25)
        path = nk.theory.margin_flow(x, labels, times, "exponential")
        limit = path.limit
        power = np.log(path.direction_error[-1] / path.direction_error[-4]) / np.log(times[-1] / times[-4])
        settled = path.w[-1] - times[-1] * limit.w
        signed = x * labels[:, None]
        first = limit.support[0]
        growth, least = np.linalg.norm(path.w[-1]) / times[-1], limit.dual[limit.support].min()
        rows = (
            exact("power of log t of the direction's error", -1.0, power, 0.05),
            exact("length of w over log t, times the margin", 1.0, growth * limit.margin, 0.05),
            exact(
                "exp(-y x.w_tilde) of a support vector",
                limit.dual[first],
                np.exp(-signed[first] @ settled),
                0.02,
            ),
            at_least("least a of the support vectors, as a share", 1e-12, least / limit.dual.max()),
            exact("least margin of the limit", 1.0, np.min(signed @ limit.w), 1e-9),
        )
        guide = path.direction_error[-1] * times[-1] / times
        data = {"log t": times, "direction error": path.direction_error, "1/log t": guide}
        return Result(rows, {**data, "margin gap": path.margin_gap})

    figure = Figure("log t", log="xy")
    figure.line("direction error", BLUE, label="error of the direction", ms=3.5)
    figure.line("margin gap", ORANGE, "s-", "missing margin", ms=3.5)
    figure.line("1/log t", GRAY, ":")
