"""Features and time share a budget."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, statistical
from .._claim import generator, sem
from .._drawing import Figure


class BestUseOfCompute(Claim):
    """With endless data the error of p features at time t, and the best split of C = p t, follow from power laws."""

    source = "theory of scaling laws: time and width together, compute-optimal frontier"
    formula = "E ~ C^-(x y/(x + y)),  x = min(b - 1, a),  y = (b - 1)/a,  for lam_i = i^-a, v_i^2 = i^-b"

    features: int = setting(60, "Random features of the draws.", low=10, high=400)
    draws: int = setting(12, "Draws.", low=4, high=200, quick=6)

    def run(self, seed: int) -> Result:
        rng, index = generator(seed, "data"), np.arange(1, 801.0)
        task, p = nk.forecasts.KernelTask(index**-1.5, index**-2.0), self.features
        times = np.array([1.0, 10.0, 100.0])
        drawn = []
        for _ in range(self.draws):
            mix = np.sqrt(task.eigenvalues)[:, None] * rng.normal(size=(800, p)) / p**0.5
            vectors, values, _ = np.linalg.svd(mix, full_matrices=False)
            inside = vectors.T @ np.sqrt(task.power)
            rest = task.power.sum() - inside @ inside
            drawn.append([(inside**2 * np.exp(-2 * values**2 * t)).sum() + rest for t in times])
        means, errors = np.mean(drawn, axis=0), np.array([sem(column) for column in np.transpose(drawn)])
        theory = nk.theory.population_law(task, times, p)
        rows = [
            statistical(f"error at time {t:g}, {p} features", theory[i], means[i], errors[i], 0.02)
            for i, t in enumerate(times)
        ]
        best = nk.theory.compute_optimal(nk.forecasts.power_law_task(1.5, 2.0), [1e4, 1e5])
        exponents = nk.theory.scaling_exponents(1.5, 2.0)
        rows.append(exact("power of the compute", exponents.compute, best.slope, 0.06))
        growth = float(np.log(best.features[1] / best.features[0]) / np.log(10))
        rows.append(exact("power of the best number of features", exponents.best_features, growth, 0.06))
        return Result(tuple(rows), {"time": times, "theory": theory, "measured": means, "error": errors})

    figure = Figure("time", "error", log="xy")
    figure.pair("theory", "measured", "error")
