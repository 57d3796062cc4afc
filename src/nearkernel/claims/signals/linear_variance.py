"""Signals in deep linear networks: kept, blown up or lost."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, Row, refuted, setting, statistical
from .._drawing import BLUE, GREEN, ORANGE
from .._drawn import drawn


class LinearVariance(Claim):
    """A layer of a random linear network multiplies the covariance of signals by C_W, so C_W = 1 keeps it."""

    source = "graduate course: initialization"
    formula = "E z^l z'^l = C_W^(l-1) E z^1 z'^1 at any width, without biases"
    erratum = Erratum(
        "graduate course, line 132",
        "K^(l+1) = (C_W)^2 K^l",
        "the recursion of lines 124 and 126, which have C_W, so that only this line has a square too much",
        "covariance in layer 2, C_W = 1.3, as in line 132",
    )

    depth: int = setting(8, "Layers.", low=2, high=30)
    width: int = setting(32, "Neurons in each.", low=8, high=256)
    networks: int = setting(10_000, "Networks drawn for each C_W.", low=100, high=100_000, quick=2000)

    def run(self, seed: int) -> Result:
        layers, x = np.arange(1, self.depth + 1), np.array([[1.0, -0.5, 2.0], [0.4, 1.0, 1.5]])
        rows: list[Row] = []
        data: dict[str, np.ndarray] = {"layer": layers}
        for weight_var in (0.8, 1.0, 1.3):
            net = nk.MLP(3, (self.width,) * (self.depth - 1), self.width, "linear", weight_var=weight_var)
            products = drawn(
                net, x, self.networks, [seed, int(10 * weight_var)],
                lambda nets: np.stack([np.mean(z[:, 0] * z[:, 1], axis=1) for z in nets.z], axis=1),
            )  # fmt: skip
            mean, error = products.mean(axis=0), products.std(axis=0) / np.sqrt(self.networks)
            first, label = weight_var * float(x[0] @ x[1]) / 3, f"C_W = {weight_var:g}"
            theory = first * weight_var ** (layers - 1)
            rows.append(
                statistical(f"covariance in layer {self.depth}, {label}", theory[-1], mean[-1], error[-1])
            )
            data |= {f"theory, {label}": theory, f"measured, {label}": mean, f"sem, {label}": error}
        rows += [
            statistical(f"covariance in layer 2, {label}", theory[1], mean[1], error[1]),
            refuted(
                "covariance in layer 2, C_W = 1.3, as in line 132",
                weight_var**2 * first,
                mean[1],
                sem=error[1],
            ),
        ]
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        data = result.data
        for weight_var, color in ((0.8, BLUE), (1.0, GREEN), (1.3, ORANGE)):
            label = f"C_W = {weight_var:g}"
            bars = {"fmt": "o", "ms": 4, "color": color, "label": label}
            axes.plot(data["layer"], data[f"theory, {label}"], color=color)
            axes.errorbar(data["layer"], data[f"measured, {label}"], data[f"sem, {label}"], **bars)
        axes.set(yscale="log", xlabel="layer", ylabel="covariance of preactivations")
