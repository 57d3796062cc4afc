"""Training of a cubic model without looking at its parameters."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import generator, slope
from .._drawing import BLUE, GRAY, GREEN, Figure
from ._problems import F, cubic, problem


class CubicRecursion(Claim):
    """Outputs, kernel, dNTK and ddNTKs of a cubic model close among themselves, to eps^3."""

    source = "talk on the principles of deep learning theory: cubic models"
    formula = "z, k and mu move by k, mu, nu and kappa alone; nu and kappa frozen: error O(eps^3)"

    steps: int = setting(40, "Steps of gradient descent.", low=5, high=200, quick=20)
    lr: float = setting(0.3, "Learning rate; the largest eigenvalue of the kernel is 4.", low=0.05, high=0.4)

    def run(self, seed: int) -> Result:
        p, eps = problem(5, seed + 1, new=2), np.geomspace(2e-3, 5e-4, 3)
        inputs = np.concatenate([p.x, p.x_new])
        start = 0.4 * generator(seed, "start").normal(size=(1, F))
        errors = []
        for e in eps:
            model = cubic(e)
            params = nk.simulate(model, start, p.x, p.y, nk.GradientDescent(self.lr, self.steps)).params
            real = np.asarray(model(params, inputs))[:, 0]
            data = (model, start, p.x, p.y, self.lr, self.steps, p.x_new)
            runs = [nk.theory.sample_space_descent(*data, order=k) for k in range(3)]
            errors.append([np.linalg.norm(run.outputs[-1] - real) for run in runs])
        columns = np.array(errors).T
        rows = [
            exact(f"power of eps, tensors to order {k}", k + 1, slope(eps, columns[k]), 0.06)
            for k in range(3)
        ]
        return Result(tuple(rows), {"eps": eps} | {f"error of order {k}": columns[k] for k in range(3)})

    figure = Figure("eps", "distance from the trained model", log="xy")
    figure.line("error of order 0", GRAY, label="kernel frozen")
    figure.line("error of order 1", BLUE, label="dNTK frozen")
    figure.line("error of order 2", GREEN, label="ddNTKs frozen")
