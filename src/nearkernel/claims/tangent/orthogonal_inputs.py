"""What the tangent kernel of a relu network says about inputs at an angle."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, refuted, setting, statistical
from .._drawing import ORANGE, Figure
from .._drawn import drawn


class OrthogonalInputs(Claim):
    """The mean tangent kernel of a relu network is not proportional to x.x': orthogonal inputs share a kernel."""

    source = "graduate course: path counting and the tangent kernel"
    formula = "Theta^(l+1) = K^(l+1) + (C_W/2) (1 - angle/pi) Theta^l, by the recursion;   C_W = 2"
    erratum = Erratum(
        "graduate course, lines 2321 and 2325",
        "x.x' times 2^(L+1)/n_0 times the chance that all neurons are on for both inputs",
        "up to the number of layers, which line 2323 itself questions: then it still vanishes for orthogonal inputs",
        "kernel of orthogonal inputs, as in line 2325",
    )

    width: int = setting(16, "Neurons in the hidden layer; the mean kernel is exact at any.", low=1, high=256)
    networks: int = setting(20_000, "Networks that are drawn.", low=200, high=200_000, quick=5000)

    def run(self, seed: int) -> Result:
        net = nk.MLP(2, (self.width,), 1, "relu", weight_var=2.0)
        angles = np.linspace(0, np.pi, 9)
        x = np.sqrt(2) * np.column_stack([np.cos(angles), np.sin(angles)])
        theory = nk.theory.relu_ntk(net, x).mean[0]
        kernels = drawn(net, x, self.networks, seed, lambda nets: nets.kernel[:, 0, 0, :, 0])
        mean, error = kernels.mean(axis=0), kernels.std(axis=0, ddof=1) / np.sqrt(self.networks)
        printed = theory[0] * np.cos(angles) * (1 - angles / np.pi)  # right for equal inputs
        rows = (
            statistical("kernel of equal inputs", theory[0], mean[0], error[0]),
            statistical("kernel of orthogonal inputs", theory[4], mean[4], error[4]),
            refuted("kernel of orthogonal inputs, as in line 2325", 0.0, mean[4], sem=error[4]),
        )
        data = {
            "angle": np.degrees(angles),
            "theory": theory,
            "measured": mean,
            "sem": error,
            "line 2325": printed,
        }
        return Result(rows, data)

    figure = Figure("angle", "mean tangent kernel", xlabel="angle between the inputs (degrees)")
    figure.pair()
    figure.line("line 2325", ORANGE, "--")
