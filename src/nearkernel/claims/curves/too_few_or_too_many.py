"""More examples can hurt, and then help."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, statistical
from .._claim import generator, sem
from .._drawing import ORANGE, Figure


class TooFewOrTooMany(Claim):
    """Trained to the end, the error has a peak where examples are as many as features; stopped early, it has none."""

    source = "theory of learning curves: sample-wise double descent, any time"
    formula = "E = sum_jk w_j w_k [noise + sum v^2 (1-L_j)(1-L_k)] / (1 - sum L_j L_k/m),   m = sum L_j + s_j/kappa_j"

    features: int = setting(60, "Isotropic Gaussian features.", low=20, high=400)
    draws: int = setting(60, "Data sets at each size.", low=8, high=1000, quick=25)

    def run(self, seed: int) -> Result:
        rng, d = generator(seed, "data"), self.features
        task = nk.forecasts.KernelTask(np.ones(d), np.full(d, 1 / d), noise=0.25)
        sizes = np.array([d // 2, d + max(d // 5, 4), 3 * d])
        rows, data = [], {"examples": sizes}
        for name, at in {
            "end": lambda m: nk.GradientFlow(),
            "early": lambda m: nk.GradientFlow(3 / m),
        }.items():
            theory, means, errors = [], [], []
            for m in sizes:
                found = []
                for _ in range(self.draws):
                    x, v = rng.normal(size=(m, d)), np.full(d, d**-0.5)
                    y = x @ v + 0.5 * rng.normal(size=m)
                    u, values, rotation = np.linalg.svd(x, full_matrices=False)
                    w = rotation.T @ (values * at(m).filter(values**2) * (u.T @ y))
                    found.append(((w - v) ** 2).sum() + 0.25)
                theory.append(nk.theory.sample_law(task, [m], at(m))[0])
                means.append(np.mean(found))
                errors.append(sem(found))
                rows.append(
                    statistical(f"error, {name}, {m} examples", theory[-1], means[-1], errors[-1], 0.02)
                )
            data |= {
                f"{name}, theory": np.array(theory),
                name: np.array(means),
                f"{name}, error": np.array(errors),
            }
        plain = nk.theory.sample_law(task, [3 * d])[0]
        rows.append(exact("many examples, noise m/(m - d)", 0.25 * 3 * d / (2 * d), plain, 1e-9))
        return Result(tuple(rows), data)

    figure = Figure("examples", "error")
    figure.pair("end, theory", "end", "end, error", label="end", color=ORANGE)
    figure.pair("early, theory", "early", "early, error", label="early")
