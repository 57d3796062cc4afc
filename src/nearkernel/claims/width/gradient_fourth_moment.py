"""Moments of the derivative of a random relu network by its input."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical, unlike
from .._claim import sem
from .._drawing import ORANGE, Figure
from .._drawn import drawn


class GradientFourthMoment(Claim):
    """The fourth moment of dz/dx in a random relu network is (12/n_0^2) prod (1 + 5/n_l)."""

    source = "graduate course: path counting, exploding and vanishing gradients"
    formula = "E (dz/dx_p)^2 = 2/n_0,   E (dz/dx_p)^4 = (12/n_0^2) prod_l (1 + 5/n_l) -> (12/n_0^2) exp(5 sum 1/n_l)"

    width: int = setting(10, "Neurons in each hidden layer.", low=4, high=40)
    depth: int = setting(4, "Hidden layers, at most.", low=1, high=6)
    networks: int = setting(200_000, "Networks drawn at each depth.", low=2000, high=1_000_000, quick=30_000)

    def run(self, seed: int) -> Result:
        depths, x, found = np.arange(1, self.depth + 1), np.array([[0.3, -1.0, 0.5]]), []
        for depth in depths:
            net = nk.MLP(3, (self.width,) * int(depth), 1, "relu", weight_var=2.0)
            squares = drawn(net, x, self.networks, [seed, depth], _variance)
            law = nk.theory.input_gradient(net, 1)
            found.append(
                (law.fourth_moment, np.mean(3 * squares**2), sem(3 * squares**2), 12 / 9 * np.exp(law.beta))
            )
        theory, measured, error, wide = np.array(found).T
        rows = [
            statistical(f"fourth moment, {depth} hidden", *row)
            for depth, *row in zip(depths, theory, measured, error, strict=True)
        ]
        rows.append(statistical("second moment, deepest", 2 / 3, squares.mean(), sem(squares)))
        rows.append(
            unlike(
                "fourth moment, 1 hidden, by its limit for wide layers", wide[0], measured[0], sem=error[0]
            )
        )
        data = {"depth": depths, "theory": theory, "measured": measured, "sem": error, "wide layers": wide}
        return Result(tuple(rows), data)

    figure = Figure("depth", "E (dz/dx)⁴", xlabel="hidden layers", log="y")
    figure.pair()
    figure.line("wide layers", ORANGE, "x--", "limit for wide layers")


def _variance(nets):
    """Of dz/dx_1 given all but the first layer of weights, which is integrated out to tame the fourth moment."""
    return 2 / 3 * np.sum(nets.signals[0][:, 0, 0] ** 2, axis=1)
