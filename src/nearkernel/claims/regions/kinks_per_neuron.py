"""How often random networks bend along a line."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, setting, statistical
from .._drawing import GREEN, Figure


class KinksPerNeuron(Claim):
    """A random relu network has about as many kinks along a line as neurons: exponentially fewer than it could."""

    source = "graduate course: linear regions"
    formula = (
        "on the line a neuron of layer 1 switches once, of layer 2 about 1 - 2^-n times;  bound: prod (n + 1)"
    )

    width: int = setting(4, "Neurons in each of two hidden layers.", low=2, high=12)
    networks: int = setting(4000, "Networks that are drawn and cut exactly.", low=100, high=40_000, quick=800)

    def run(self, seed: int) -> Result:
        import jax

        n = self.width
        net = nk.MLP(1, (n, n), 1, "relu", 2.0, 1.0)
        found = nk.theory.measure_crossings(net, -1e6, 1e6, self.networks, jax.random.key(seed))
        first = nk.MLP(1, (n,), 1, "relu", 2.0, 1.0)
        part = nk.theory.measure_crossings(first, -1.0, 1.0, self.networks, jax.random.key(seed + 1))
        theory = nk.theory.mean_crossings(first, -1.0, 1.0)[0]
        bound = nk.theory.region_bounds(net).layers
        rows = (
            statistical("switches of a neuron of layer 1 on [-1, 1]", theory, part.mean[0], part.sem[0]),
            statistical(
                "switches of a neuron of layer 2 on the line", 1 - 2.0**-n, found.mean[1], found.sem[1], 1e-4
            ),
            at_most("pieces on the line, on average", bound, 1 + n * found.mean.sum()),
        )
        data = {
            "layer": np.array([1, 2]),
            "theory": np.array([1, 1 - 2.0**-n]),
            "measured": found.mean,
            "sem": found.sem,
        }
        return Result(rows, data)

    figure = Figure(
        "layer", "switches of a neuron on the line", xticks=(1, 2), xlim=(0.5, 2.5), ylim=(None, 1.04)
    )
    figure.line("theory", GREEN, "_", ms=40, mew=2)
    figure.bars("measured", lambda data: 4 * data["sem"], label="measured, ± 4 σ")
