"""Gradients on their way back."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._claim import generator, sem
from .._drawing import Figure
from .._drawn import drawn


class GradientGrowth(Claim):
    """Backpropagated gradients of relu networks grow by chi_perp = C_W/2 per layer, on average exactly at any width."""

    source = "graduate course: initialization, exploding and vanishing gradients"
    formula = "E |dz/dz^l|^2 = (C_W/2) E |dz/dz^(l+1)|^2,   chi_perp = C_W E[s'^2]"

    weight_var: float = setting(2.4, "Variance of the weights, C_W.", low=1.0, high=3.0)
    depth: int = setting(6, "Hidden layers.", low=2, high=20)
    networks: int = setting(10_000, "Networks that are drawn.", low=100, high=100_000, quick=2000)

    def run(self, seed: int) -> Result:
        net = nk.MLP(3, (32,) * self.depth, 1, "relu", weight_var=self.weight_var)
        x = generator(seed, "inputs").normal(size=(1, 3))
        squares = drawn(
            net, x, self.networks, seed,
            lambda nets: np.stack([np.sum(s[:, 0, 0] ** 2, axis=1) for s in nets.signals[:-1]], axis=1),
        )  # fmt: skip
        layers = np.arange(1, self.depth + 1)
        theory = (self.weight_var / 2) ** (self.depth + 1 - layers)
        mean, error = squares.mean(axis=0), [sem(column) for column in squares.T]
        rows = [
            statistical(f"squared gradient at layer {l}", theory[l - 1], mean[l - 1], error[l - 1])
            for l in (self.depth, 1 + self.depth // 2, 1)
        ]
        chi = nk.critical("relu").chi_perp(1.0) * self.weight_var / 2
        data = {
            "layer": layers,
            "theory": chi ** (self.depth + 1.0 - layers),
            "measured": mean,
            "sem": np.array(error),
        }
        return Result(tuple(rows), data)

    figure = Figure("layer", "E |dz/dz^l|²", log="y")
    figure.pair()
