"""Kernels of networks on distinct inputs are positive, by how much."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, setting
from .._claim import generator
from .._drawing import BLUE, GREEN


class SmallestEigenvalue(Claim):
    """Hermite coefficients of the activation bound the smallest eigenvalues of NNGP and NTK from below."""

    source = "graduate course: convergence of wide networks"
    formula = "lambda_min(K) >= C_W sum_r mu_r^2 lambda_min of Khatri-Rao powers of the inputs' correlations"

    points: int = setting(10, "Inputs, random in four dimensions.", low=2, high=30)
    depth: int = setting(3, "Hidden layers, at most.", low=1, high=6, quick=2)

    def run(self, seed: int) -> Result:
        x = generator(seed, "inputs").normal(size=(self.points, 4))
        rows, found = [], []
        for name in ("tanh", "relu"):
            for depth in range(1, self.depth + 1):
                law = nk.theory.smallest_eigenvalue(nk.MLP(4, (8,) * depth, 1, name, 1.5, 0.1), x)
                rows.append(at_most(f"bound for the NNGP, {name}, {depth} hidden", law.nngp, law.nngp_bound))
                rows.append(at_most(f"bound for the NTK, {name}, {depth} hidden", law.ntk, law.ntk_bound))
                found.append((law.ntk, law.ntk_bound))
        true, bound = np.array(found).T
        return Result(
            tuple(rows), {"case": np.arange(len(true)), "smallest eigenvalue": true, "bound": bound}
        )

    def draw(self, axes, result):
        data = result.data
        axes.plot(
            data["case"], data["smallest eigenvalue"], "o", color=BLUE, label="smallest eigenvalue of the NTK"
        )
        axes.plot(data["case"], data["bound"], "v", color=GREEN, label="bound")
        names = [f"{name}\n{depth}" for name in ("tanh", "relu") for depth in range(1, self.depth + 1)]
        axes.set_xticks(data["case"], names)
        axes.set(yscale="log", xlabel="activation and hidden layers")
