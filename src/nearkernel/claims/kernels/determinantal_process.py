"""Points that repel each other."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._claim import generator
from .._drawing import Figure


class DeterminantalProcess(Claim):
    """A determinantal process draws a set of points with a chance proportional to the determinant of its kernel."""

    source = "graduate course: kernels, processes"
    formula = "P(S) = det(K_S)/det(1 + K),   P(i in S) = [K (1 + K)^-1]_ii"

    draws: int = setting(4000, "Sets that are drawn.", low=200, high=50_000, quick=800)

    def run(self, seed: int) -> Result:
        import itertools

        import jax

        x, kernel = generator(seed, "points").normal(size=(5, 2)), 2.0 * nk.kernels.RBF(1.5)
        process, matrix = nk.theory.DPP(kernel, x), kernel(x)
        found = [
            tuple(process.sample(jax.random.fold_in(jax.random.key(seed), i))) for i in range(self.draws)
        ]
        sets = [each for size in range(6) for each in itertools.combinations(range(5), size)]
        theory = np.array([np.linalg.det(matrix[np.ix_(s, s)]) if s else 1.0 for s in sets])
        theory = theory / np.linalg.det(np.eye(5) + matrix)
        measured = np.array([found.count(each) for each in sets]) / self.draws
        error = np.sqrt(theory * (1 - theory) / self.draws)
        inside = np.diagonal(matrix @ np.linalg.inv(np.eye(5) + matrix))
        often = np.array([[i in each for i in range(5)] for each in found]).mean(axis=0)
        rows = [
            statistical(
                f"chance of point {i}", inside[i], often[i], np.sqrt(inside[i] * (1 - inside[i]) / self.draws)
            )
            for i in range(5)
        ]
        likely = np.argsort(theory)[::-1][:4]
        rows += [
            statistical(f"chance of the set {' '.join(map(str, sets[i]))}", theory[i], measured[i], error[i])
            for i in likely
        ]
        order = np.argsort(theory)[::-1][:12]
        data = {"set": np.arange(len(order)), "theory": theory[order], "measured": measured[order]}
        return Result(tuple(rows), {**data, "sem": error[order]})

    figure = Figure("set", "chance", xlabel="the likeliest sets", log="y")
    figure.pair()
