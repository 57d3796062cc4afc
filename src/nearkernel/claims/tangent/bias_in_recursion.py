"""The recursion of the tangent kernel, with and without the variance of biases where it does not belong."""

import dataclasses

import jax
import numpy as np

import nearkernel as nk

from .. import Claim, Result, refuted, setting, statistical
from .._claim import generator
from .._drawing import ORANGE, pair


@dataclasses.dataclass(frozen=True)
class BiasInRecursion(Claim):
    """Biases enter the tangent kernel once a layer, through the covariance, not through the derivative
    factor."""

    source = "notes on random features and Gaussian processes: neural tangent kernel"
    formula = "Theta^(l+1) = K^(l+1) + C_W E[s' s'] Theta^l,   Theta^1 = K^1"
    erratum = "The notes add C_b to the derivative factor."

    width: int = setting(
        32, "Neurons in the hidden layer; with one layer the mean kernel is exact.", low=1, high=1024
    )
    bias_var: float = setting(0.5, "Variance of the biases, C_b.", low=0.05, high=2.0)
    networks: int = setting(20_000, "Networks that are drawn.", low=100, high=200_000, quick=4000)

    def run(self, seed: int) -> Result:
        net = nk.MLP(3, (self.width,), 1, "erf", weight_var=1.5, bias_var=self.bias_var)
        x = generator(seed, "inputs").normal(size=(4, 3))
        first, second = nk.propagate(net, x)
        theory, printed = second.ntk, second.ntk + self.bias_var * first.ntk
        kernel = lambda params: nk.kernels.EmpiricalNTK(net, params)(x)
        found = nk.measure(kernel, net, self.networks, jax.random.key(seed))
        rows = [
            statistical(f"kernel of inputs {i} and {j}", theory[i, j], found.mean[i, j], found.sem[i, j])
            for i, j in ((0, 0), (0, 1), (2, 3))
        ]
        rows.append(
            refuted("kernel of 0 and 0, as printed", printed[0, 0], found.mean[0, 0], sem=found.sem[0, 0])
        )
        at = np.triu_indices(4)
        data = {
            "theory": theory[at],
            "as printed": printed[at],
            "measured": found.mean[at],
            "sem": found.sem[at],
        }
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        data = result.data
        pair(axes, data["theory"], data["theory"], data["measured"], data["sem"])
        axes.plot(data["theory"], data["as printed"], "x", color=ORANGE, label="as printed")
        axes.set(xlabel="tangent kernel by the recursion", ylabel="tangent kernel")
