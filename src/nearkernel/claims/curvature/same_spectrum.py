"""One set of eigenvalues, seen from parameters and from points."""

from typing import Any

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE


class SameSpectrum(Claim):
    """The Gauss-Newton matrix of the squared loss and the tangent kernel have the same eigenvalues, up to zeros."""

    source = "graduate course: Hessians and the tangent kernel"
    formula = "G = J^T J (P x P),   Theta = J J^T (m x m);   Hessian = G + sum_a r_a d^2 z_a"

    points: int = setting(12, "Points.", low=2, high=40)

    def run(self, seed: int) -> Result:
        import jax

        rng = generator(seed, "data")
        x, y = rng.normal(size=(self.points, 3)), rng.normal(size=self.points)
        net = nk.MLP(3, (12,), 1, "tanh", weight_var=1.5, bias_var=0.1)
        theta = net.init(jax.random.key(seed))
        kernel = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, theta)(x))[::-1]
        geometry: Any = nk.geometry  # its operators convert their arguments
        eigenvalues = lambda kind: np.linalg.eigvalsh(kind(net, theta, x, y).dense())[::-1]
        matrix = eigenvalues(geometry.GaussNewton)
        fisher = eigenvalues(geometry.Fisher)
        hessian = eigenvalues(geometry.Hessian)
        last = self.points - 1
        rows = (
            exact("largest eigenvalue", kernel[0], matrix[0], 1e-9),
            exact("smallest eigenvalue", kernel[last], matrix[last], 1e-6),
            exact(
                "1 + largest of the others over the largest",
                1.0,
                1 + abs(matrix[self.points]) / matrix[0],
                1e-9,
            ),
            exact("largest eigenvalue of the Fisher information", kernel[0], fisher[0], 1e-9),
        )
        return Result(rows, {"theory": kernel, "measured": matrix[: self.points], "Hessian": hessian})

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["theory"], color=BLUE, label="tangent kernel")
        axes.plot(data["measured"], "o", mfc="white", color=BLUE, label="Gauss-Newton")
        axes.plot(data["Hessian"][: 2 * len(data["theory"])], "x", ms=4, color=ORANGE, label="Hessian")
        axes.set(xlabel="number", ylabel="eigenvalue")
