"""Random features as an approximate kernel."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical, unlike
from .._claim import generator, sem
from .._drawing import Figure


class RandomFeatures(Claim):
    """The kernel of p random features, each divided by sqrt(p), is unbiased, with a variance that falls like 1/p."""

    source = "notes on random features and Gaussian processes: random-feature regression"
    formula = "k_p(x, x') = 1/p sum_i s(w_i.x) s(w_i.x'),   E k_p = k,   Var k_p = Var_1/p"

    draws: int = setting(400, "Kernels drawn at each p.", low=20, high=5000, quick=100)

    def run(self, seed: int) -> Result:
        x = generator(seed, "inputs").normal(size=(2, 3))
        net = nk.MLP(3, (1,), 1, "tanh", weight_var=1.6, bias_var=0.2)
        inner = lambda kernel: (kernel - 0.2) / 1.6  # of the hidden layer: without the readout's C_W and C_b
        theory = inner(nk.kernels.NNGP(net)(x)[0, 1])
        rng, sizes, found = generator(seed, "features"), np.array([10, 40, 160]), []
        for p in sizes:
            w, b = rng.normal(size=(self.draws, 3, p)), rng.normal(size=(self.draws, 1, p))
            phi = np.tanh(np.sqrt(1.6 / 3) * x @ w + np.sqrt(0.2) * b) / np.sqrt(p)
            kernels = np.sum(phi[:, 0] * phi[:, 1], axis=1)
            squares = (kernels - theory) ** 2
            found.append((kernels.mean(), sem(kernels), squares.mean(), sem(squares)))
        mean, error, variance, spread = np.array(found).T
        four = nk.propagate(net, x, order=1)[2].four_point[0, 1, 0, 1] / 1.6**2  # Var of one neuron's product
        rows = [
            statistical(f"kernel, p = {p}", theory, m, e) for p, m, e in zip(sizes, mean, error, strict=True)
        ]
        rows += [
            statistical(f"variance, p = {p}", four / p, v, e)
            for p, v, e in zip(sizes, variance, spread, strict=True)
        ]
        rows.append(unlike("kernel without 1/sqrt(p), p = 160", theory, 160 * mean[-1], sem=160 * error[-1]))
        return Result(tuple(rows), {"p": sizes, "theory": four / sizes, "measured": variance, "sem": spread})

    figure = Figure("p", "variance of the kernel", xlabel="number p of features", log="xy")
    figure.pair()
