"""At the critical point signals die slowly."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._drawing import BLUE, ORANGE, Figure


class PowerLaw(Claim):
    """At criticality (C_W = 1, C_b = 0) the variance in layer l of a tanh network falls like 1/(2 l)."""

    source = "graduate course: criticality"
    formula = "K' = K + (s'''(0)/s'(0)) K^2 + ...: 1/K grows by 2 per layer for tanh, by 1 for sin"

    depth: int = setting(200, "Layers.", low=60, high=400, quick=120)

    def run(self, seed: int) -> Result:
        layers, rows, data = np.arange(1, self.depth + 1), [], {"layer": np.arange(1, self.depth + 1)}
        for name, rate in (("tanh", 2.0), ("sin", 1.0)):
            found = nk.critical(name)
            net = nk.MLP(
                3, (1,) * (self.depth - 1), 1, name, weight_var=found.weight_var, bias_var=found.bias_var
            )
            kernel = np.array([layer.kernel[0, 0] for layer in nk.propagate(net, np.ones((1, 3)))])
            half = self.depth // 2
            growth = (1 / kernel[-1] - 1 / kernel[half]) / (self.depth - 1 - half)
            rows.append(exact(f"growth of 1/K per layer, {name}", rate, growth, 0.02))
            rows.append(exact(f"critical C_W, {name}", 1.0, found.weight_var, 1e-9))
            data |= {f"measured, {name}": kernel, f"theory, {name}": found.kernel_law(layers)}
        return Result(tuple(rows), data)

    figure = Figure("layer", "variance of preactivations", log="xy")
    figure.line("measured, tanh", BLUE, "-", "tanh, layer by layer", lw=3, alpha=0.4)
    figure.line("theory, tanh", BLUE, "--", "tanh, power law")
    figure.line("measured, sin", ORANGE, "-", "sin, layer by layer", lw=3, alpha=0.4)
    figure.line("theory, sin", ORANGE, "--", "sin, power law")
