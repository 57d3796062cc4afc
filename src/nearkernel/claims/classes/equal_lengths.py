"""Lengths of class means in training, centered and not."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, setting
from .._digits import digits, trained
from .._drawing import ORANGE, Figure


class EqualLengths(Claim):
    """Lengths of class means become more equal in training, centered or not."""

    source = "graduate course: neural collapse"
    formula = "std/mean over classes of |m_c| and of |m_c - m_G|, falling as classes collapse"

    classes: int = setting(4, "Classes C: digits 0 to C - 1.", low=3, high=6)
    points: int = setting(200, "Images.", low=60, high=400, quick=120)
    steps: int = setting(4000, "Steps of gradient descent.", low=500, high=20_000, quick=1500)
    runs: int = setting(3, "Networks.", low=2, high=20, quick=2)

    def run(self, seed: int) -> Result:
        import jax

        x, own = digits(self.classes, self.points)
        y = np.eye(self.classes)[own]
        net = nk.MLP(64, (64, 64), self.classes, "relu", weight_var=2.0, parametrization="standard")
        times, table = np.array([0, self.steps // 30, self.steps]), []
        for run in range(self.runs):
            params, done = net.init(jax.random.key(seed * 100 + run)), 0
            lr = 0.5 / nk.geometry.sharpness(net, params, x, y, "cross_entropy")
            for time in times:
                if time > done:
                    params = trained(net, params, x, y, nk.GradientDescent(lr, int(time - done)))
                    done = time
                features, classifier = nk.theory.last_layer(net, params, x)
                found = nk.geometry.collapse(features, own, classifier)
                table.append((found.nc2_norms, found.nc2_lengths))
        found = np.array(table).reshape(self.runs, len(times), 2).mean(axis=0)
        rows = (
            at_most(
                "spread of the lengths of centered means, end over start", 0.8, found[-1, 0] / found[0, 0]
            ),
            at_most(
                "spread of the lengths of means as they are, end over start", 1.0, found[-1, 1] / found[0, 1]
            ),
            at_most("spread of the lengths of centered means at the end", 0.15, found[-1, 0]),
            at_most("spread of the lengths of means as they are at the end", 0.15, found[-1, 1]),
        )
        return Result(
            rows, {"step": times.astype(float), "centered": found[:, 0], "as they are": found[:, 1]}
        )

    figure = Figure(
        lambda data: data["step"] + 1, "std / mean of the lengths", xlabel="step + 1", log="x", ylim=(0, None)
    )
    figure.line("centered")
    figure.line("as they are", ORANGE)
