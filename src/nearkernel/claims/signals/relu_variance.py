"""Signals in deep relu networks: kept, blown up or lost."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._drawing import BLUE, GREEN, ORANGE
from .._drawn import drawn


class ReluVariance(Claim):
    """A layer of a random relu network multiplies the variance of signals by C_W/2, so C_W = 2 keeps it."""

    source = "graduate course: initialization"
    formula = "E (z^l)^2 = (C_W/2)^(l-1) E (z^1)^2 at any width, without biases"

    depth: int = setting(8, "Layers.", low=2, high=30)
    width: int = setting(32, "Neurons in each.", low=8, high=256)
    networks: int = setting(10_000, "Networks drawn for each C_W.", low=100, high=100_000, quick=2000)

    def run(self, seed: int) -> Result:
        layers, x = np.arange(1, self.depth + 1), np.array([[1.0, -0.5, 2.0]])
        rows, data = [], {"layer": layers}
        for weight_var in (1.6, 2.0, 2.4):
            net = nk.MLP(3, (self.width,) * (self.depth - 1), self.width, "relu", weight_var=weight_var)
            variances = drawn(
                net, x, self.networks, [seed, int(10 * weight_var)],
                lambda nets: np.stack([np.mean(z[:, 0] ** 2, axis=1) for z in nets.z], axis=1),
            )  # fmt: skip
            theory = np.array([layer.kernel[0, 0] for layer in nk.propagate(net, x)])
            mean, error = variances.mean(axis=0), variances.std(axis=0) / np.sqrt(self.networks)
            label = f"C_W = {weight_var:g}"
            rows.append(
                statistical(f"variance in layer {self.depth}, {label}", theory[-1], mean[-1], error[-1])
            )
            data |= {f"theory, {label}": theory, f"measured, {label}": mean, f"sem, {label}": error}
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        data = result.data
        for weight_var, color in ((1.6, BLUE), (2.0, GREEN), (2.4, ORANGE)):
            label = f"C_W = {weight_var:g}"
            axes.plot(data["layer"], data[f"theory, {label}"], color=color)
            axes.errorbar(
                data["layer"],
                data[f"measured, {label}"],
                data[f"sem, {label}"],
                fmt="o",
                ms=4,
                color=color,
                label=label,
            )
        axes.set(yscale="log", xlabel="layer", ylabel="variance of preactivations")
