"""The recursion of the tangent kernel, with and without the variance of biases where it does not belong."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, refuted, setting, statistical
from .._claim import generator, sem
from .._drawing import ORANGE, Figure
from .._drawn import drawn


class BiasInRecursion(Claim):
    """Biases enter the tangent kernel once per layer, through the covariance, not through the derivative factor."""

    source = "notes on random features and Gaussian processes: neural tangent kernel"
    formula = "Theta^(l+1) = K^(l+1) + C_W E[s' s'] Theta^l,   Theta^1 = K^1"
    erratum = Erratum(
        "notes on random features and Gaussian processes, line 319",
        "C_W E[s' s'] + C_b for the factor of the kernel of the layer below",
        "with the recursion of line 313, started at Theta^1 = Sigma^1, and inputs divided by the root of their number",
        "kernel of 0 and 0, as in line 319",
    )

    width: int = setting(16, "Neurons in the hidden layer; the mean kernel is exact at any.", low=1, high=256)
    bias_var: float = setting(0.5, "Variance of the biases, C_b.", low=0.05, high=2.0)
    networks: int = setting(40_000, "Networks that are drawn.", low=100, high=400_000, quick=8000)

    def run(self, seed: int) -> Result:
        net = nk.MLP(3, (self.width,), 1, "tanh", weight_var=1.5, bias_var=self.bias_var)
        x = generator(seed, "inputs").normal(size=(4, 3))
        first, second = nk.propagate(net, x)
        theory, printed = second.ntk, second.ntk + self.bias_var * first.ntk
        kernels = drawn(net, x, self.networks, seed, lambda nets: nets.kernel[:, :, 0, :, 0])
        mean, error = kernels.mean(axis=0), kernels.std(axis=0) / np.sqrt(self.networks)
        rows = [
            statistical(f"kernel of inputs {i} and {j}", theory[i, j], mean[i, j], error[i, j])
            for i, j in ((0, 0), (0, 1), (2, 3))
        ]
        rows.append(
            refuted("kernel of 0 and 0, as in line 319", printed[0, 0], mean[0, 0], sem=sem(kernels[:, 0, 0]))
        )
        at = np.triu_indices(4)
        return Result(
            tuple(rows),
            {"theory": theory[at], "line 319": printed[at], "measured": mean[at], "sem": error[at]},
        )

    figure = Figure("theory", "tangent kernel", xlabel="tangent kernel by the recursion")
    figure.pair()
    figure.line("line 319", ORANGE, "x")
