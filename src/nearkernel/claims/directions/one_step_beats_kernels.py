"""Sample sizes: a network after one step against fixed kernels."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE, Figure


class OneStepBeatsKernels(Claim):
    """On a polynomial of two hidden directions a network after one gradient step needs fewer points than a kernel
    that was fixed before."""

    source = "feature learning against kernels: one gradient step"
    formula = "n ~ d^2 r + d r^p points for the network, d^p for rotation-invariant kernels"

    dim: int = setting(16, "Inputs d.", low=8, high=24)
    points: int = setting(3000, "Training points.", low=500, high=4000, quick=2000)

    def run(self, seed: int) -> Result:
        from nearkernel.estimators import KernelMachine, OneStepNetworkRegressor

        rng = generator(seed, "data")
        u = np.linalg.qr(rng.normal(size=(self.dim, 2)))[0].T
        c = 0.5 / 2**0.5
        target = nk.theory.MultiIndexPolynomial(u, {(2, 0): c, (0, 2): -c, (2, 2): c})
        x, new = rng.normal(size=(self.points, self.dim)), rng.normal(size=(4000, self.dim))
        y, truth = target(x), target(new)
        sizes = np.array([self.points // 4, self.points // 2, self.points])
        errors = []
        for n in sizes:
            machines = (
                OneStepNetworkRegressor(width=400, random_state=seed),
                KernelMachine(nk.kernels.RBF(self.dim**0.5), nk.Ridge(0.1)),
            )
            found = [m.fit(x[:n], y[:n]).predict(new) for m in machines]
            errors.append([np.mean((f - truth) ** 2) / np.var(truth) for f in found])
        network, kernel = np.array(errors).T
        rows = (
            at_most("error of the network / error of the kernel", 0.7, network[-1] / kernel[-1]),
            at_least("error of the kernel", 0.2, kernel[-1]),
        )
        return Result(rows, {"n": sizes, "network": network, "kernel": kernel})

    figure = Figure("n", "test error / variance", xlabel="points", log="xy")
    figure.line("network", BLUE, label="one step")
    figure.line("kernel", ORANGE, label="RBF kernel")
