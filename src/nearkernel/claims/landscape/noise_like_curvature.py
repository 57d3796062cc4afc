"""The shape of gradient noise."""

from typing import Any

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, exact, setting
from .._claim import generator
from .._drawing import BLUE, GRAY


class NoiseLikeCurvature(Claim):
    """Trained on noisy labels, a network has gradient noise in proportion to its Hessian, by the noise's variance."""

    source = "graduate course: implicit bias of SGD"
    formula = "cov over points of grad l_i = alpha H late in training,   alpha = mean r_i^2 = sigma^2"

    points: int = setting(300, "Training points.", low=200, high=1000)
    sigma: float = setting(0.5, "Deviation of the noise on the labels.", low=0.2, high=1.0)
    steps: int = setting(2000, "Steps of gradient descent.", low=200, high=4000, quick=500)

    def run(self, seed: int) -> Result:
        import jax

        rng = generator(seed, "data")
        x: Any = rng.uniform(-1, 1, (self.points, 1))
        y: Any = np.sin(3 * x[:, 0]) + self.sigma * rng.normal(size=self.points)
        net = nk.MLP(1, (16, 16), 1, "tanh", weight_var=1.5, bias_var=0.1)
        params = net.init(jax.random.key(seed))
        descent = nk.GradientDescent(1.0 / nk.geometry.sharpness(net, params, x, y), self.steps)
        trained = nk.simulate(net, params, x, y, descent, nk.Record(every=self.steps)).params
        found = []
        for state in (params, trained):
            hessian = nk.geometry.Hessian(net, state, x, y, "squared")
            matrix, total = hessian.dense(), hessian.gradient()
            noise = nk.theory.gradient_moment(net, state, x, y, 1) - np.outer(total, total)
            noise = noise / self.points  # of the gradient of one point, summed over points
            product = np.sum(noise * matrix)
            cosine = product / np.linalg.norm(noise) / np.linalg.norm(matrix)
            residual = np.asarray(net(state, x))[:, 0] - y
            found.append((cosine, product / np.sum(matrix**2), np.mean(residual**2), noise, matrix))
        before, after = found
        rows = (
            at_most("cosine of the two matrices at initialization", 0.9, before[0]),
            at_least("cosine of the two matrices after training", 0.95, after[0]),
            exact("alpha over the mean squared residual", 1.0, after[1] / after[2], 0.2),
            exact("alpha over the variance of the labels' noise", 1.0, after[1] / self.sigma**2, 0.3),
        )
        chosen = np.argsort(-np.abs(after[4]).ravel())[:400]
        return Result(rows, {"Hessian": after[4].ravel()[chosen], "noise": after[3].ravel()[chosen]})

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["Hessian"], data["noise"], ".", color=BLUE, label="entries after training")
        ends = np.array([data["Hessian"].min(), data["Hessian"].max()])
        axes.plot(ends, self.sigma**2 * ends, "--", color=GRAY, label="sigma^2 times the Hessian")
        axes.set(xlabel="entry of the Hessian", ylabel="entry of the noise's covariance")
