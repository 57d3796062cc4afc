"""More features can hurt, and then help."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical, unlike
from .._claim import generator, sem
from .._drawing import Figure


class PeakOfFeatures(Claim):
    """The error of p random features and m examples, at any time, follows from the spectrum of their kernel."""

    source = "theory of learning curves: p random features and m samples"
    formula = "s = kappa (m - z)(p - z)/p,   E(m, p, t) bilinear in the ridges of the decay"

    examples: int = setting(50, "Examples.", low=10, high=400)
    draws: int = setting(60, "Data sets and features drawn.", low=8, high=1000, quick=25)
    time: float = setting(20.0, "Time of gradient flow.", low=0.1, high=1e4, log=True)

    def run(self, seed: int) -> Result:
        rng, m = generator(seed, "data"), self.examples
        index = np.arange(1, 401.0)
        task = nk.forecasts.KernelTask(index**-1.4, index**-1.8, noise=0.05)
        v, root = np.sqrt(task.power), np.sqrt(task.eigenvalues)
        counts = np.array([m // 2, m, 3 * m])
        rows, theory, means, errors = [], [], [], []
        for p in counts:
            found = []
            for _ in range(self.draws):
                phi, mix = rng.normal(size=(m, 400)), root[:, None] * rng.normal(size=(400, p)) / p**0.5
                y = phi @ v + 0.05**0.5 * rng.normal(size=m)
                u, values, rotation = np.linalg.svd(phi @ mix, full_matrices=False)
                kept = values > 1e-9 * values[0]
                shrunk = values[kept] * nk.GradientFlow(self.time).filter(values[kept] ** 2)
                w = mix @ (rotation[kept].T @ (shrunk * (u[:, kept].T @ y)))
                found.append(((w - v) ** 2).sum() + 0.05)
            theory.append(nk.theory.sample_law(task, [m], nk.GradientFlow(self.time), int(p))[0])
            means.append(np.mean(found))
            errors.append(sem(found))
            rows.append(statistical(f"error, {p} features", theory[-1], means[-1], errors[-1], 0.02))
        kernel = nk.theory.sample_law(task, [m], nk.GradientFlow(self.time))[0]
        rows.append(unlike(f"error, {m} features, if it were the kernel's", kernel, means[1], sem=errors[1]))
        data = {
            "features": counts,
            "theory": np.array(theory),
            "measured": np.array(means),
            "error": np.array(errors),
        }
        return Result(tuple(rows), data)

    figure = Figure("features", "error", xlabel="random features", log="xy")
    figure.pair("theory", "measured", "error")
