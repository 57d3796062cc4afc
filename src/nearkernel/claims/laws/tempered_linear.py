"""Deep linear networks at a temperature, with more points than inputs, and several outputs."""

import math

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, setting, statistical
from .._claim import generator
from .._drawing import Figure


class TemperedLinear(Claim):
    """The posterior of a deep linear network at a temperature above zero is a mixture of Gaussians over one scale."""

    source = "graduate course: Bayesian deep linear networks"
    formula = "p(theta | data) ~ prior exp(-|X theta - y|^2/(2 T)), weights N(0, 1/fan-in): mean, variance of theta.x"

    draws: int = setting(
        400_000,
        "Networks of the prior, weighed by their likelihood.",
        low=50_000,
        high=4_000_000,
        quick=150_000,
    )
    width: int = setting(4, "Neurons in each of two hidden layers.", low=2, high=20)

    def run(self, seed: int) -> Result:
        rng, d = generator(seed, "networks"), 3
        x = rng.normal(size=(5, d))  # more points than inputs: the temperature makes up for it
        y = x @ np.array([0.8, -0.5, 0.3]) + 0.3 * rng.normal(size=5)
        new = rng.normal(size=(4, d))
        net = nk.MLP(d, (self.width, self.width), 1, "linear", weight_var=1.0)
        rows, theory, measured, errors = [], [], [], []
        theta = np.eye(d) * np.ones((self.draws, 1, 1))
        for fan_in, out in ((d, self.width), (self.width, self.width), (self.width, 1)):
            theta = theta @ (rng.normal(size=(self.draws, fan_in, out)) / math.sqrt(fan_in))
        theta = theta[..., 0]
        misfit = np.sum((theta @ x.T - y) ** 2, axis=1)
        z = theta @ new.T
        for temperature in (0.3, 1.0):
            law = nk.posterior(net, x, y, new, temperature, theory=nk.FiniteWidth())
            weights = np.exp(-misfit / (2 * temperature))
            weights /= weights.sum()
            mean = weights @ z
            error = np.sqrt(weights**2 @ (z - mean) ** 2)
            square = weights @ (z - mean) ** 2
            spread = np.sqrt(weights**2 @ ((z - mean) ** 2 - square) ** 2)
            for i in (0, 1):
                name = f"at input {i}, T = {temperature:g}"
                rows.append(statistical(f"mean {name}", law.mean[i], mean[i], error[i]))
                rows.append(statistical(f"variance {name}", law.std[i] ** 2, square[i], spread[i]))
            theory += list(law.mean)
            measured += list(mean)
            errors += list(error)
            rows.append(at_least(f"draws that count, T = {temperature:g}", 500.0, 1 / np.sum(weights**2)))
        return Result(
            tuple(rows),
            {
                "input": np.arange(len(theory)),
                "theory": np.array(theory),
                "measured": np.array(measured),
                "sem": np.array(errors),
            },
        )

    figure = Figure("input", "mean of the posterior", xlabel="new input, at two temperatures")
    figure.pair()
