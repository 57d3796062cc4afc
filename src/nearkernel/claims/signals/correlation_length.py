"""How many layers it takes to forget the angle between two inputs."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._drawing import BLUE, ORANGE, Figure


class CorrelationLength(Claim):
    """Off criticality a network forgets the angle of two inputs exponentially, over a length given by chi_perp."""

    source = "graduate course: criticality"
    formula = "|c^l - c*| ~ exp(-l/xi),   ordered phase: xi = -1/ln chi_perp(K*)"

    ordered: float = setting(0.8, "C_W of the ordered network; C_b = 0.05.", low=0.5, high=1.1)
    chaotic: float = setting(2.5, "C_W of the chaotic network; C_b = 0.02.", low=2.0, high=4.0)

    def run(self, seed: int) -> Result:
        x = np.array([[1.0, 0.2, -0.4], [0.7, -0.3, 0.9]])
        rows, data = [], {"layer": np.arange(1, 42)}
        for name, weight_var, bias_var, at in (
            ("ordered", self.ordered, 0.05, 8),
            ("chaotic", self.chaotic, 0.02, 18),
        ):
            layers = nk.propagate(nk.MLP(3, (1,) * 40, 1, "tanh", weight_var, bias_var), x)
            c = np.array([layer.correlation[0, 1] for layer in layers])
            away = np.abs(c - nk.statistics.phase_diagram("tanh", weight_var, bias_var).correlation[0, 0])
            length = nk.critical("tanh").correlation_length(weight_var, bias_var)
            rows.append(
                exact(f"correlation length, {name}", length, -1 / np.log(away[at + 1] / away[at]), 0.03)
            )
            data |= {name: away, f"{name}, theory": away[at] * np.exp(-(np.arange(41) - at) / length)}
        return Result(tuple(rows), data)

    figure = Figure("layer", "distance of the correlation from its end", log="y", ylim=(1e-12, 2))
    figure.line("ordered", BLUE, "o", "ordered, layer by layer", ms=3.5, mfc="white")
    figure.line("ordered, theory", BLUE, "-", "ordered, exp(-l/ξ)")
    figure.line("chaotic", ORANGE, "o", "chaotic, layer by layer", ms=3.5, mfc="white")
    figure.line("chaotic, theory", ORANGE, "-", "chaotic, exp(-l/ξ)")
