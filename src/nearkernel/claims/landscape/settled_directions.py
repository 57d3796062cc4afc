"""Where a loss is steep stays the same."""

import itertools

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._digits import hessian, on_the_way
from .._drawing import BLUE, GRAY


class SettledDirections(Claim):
    """The steepest directions of a classifier's loss turn early in training and settle as it converges."""

    source = "graduate course: Hessians of classifiers"
    formula = "|V(t)^T V(2 t)|^2 / (C - 1) -> 1,   V(t) the C - 1 leading eigenvectors of the Hessian"

    classes: int = setting(4, "Classes C: digits 0 to C - 1.", low=3, high=6)
    points: int = setting(200, "Images.", low=60, high=400, quick=120)
    width: int = setting(32, "Neurons in each of two hidden layers.", low=16, high=64, quick=24)

    def run(self, seed: int) -> Result:
        steps = (0, 20, 40, 80, 160, 320, 640)
        problem, states = on_the_way(seed, self.classes, self.points, self.width, steps)
        k = self.classes - 1
        spaces = [nk.geometry.top_eigenpairs(hessian(problem, params), k).vectors for params in states]
        overlap = np.array([np.sum((a.T @ b) ** 2) / k for a, b in itertools.pairwise(spaces)])
        rows = (
            at_most("overlap of the first 20 steps", 0.8, overlap[0]),
            at_least("overlap of steps 80 and 160", 0.9, overlap[3]),
            at_least("overlap of steps 320 and 640", 0.95, overlap[-1]),
        )
        return Result(rows, {"step": np.array(steps[1:]), "overlap": overlap})

    def draw(self, axes, result):
        axes.plot(result.data["step"], result.data["overlap"], "o-", color=BLUE)
        axes.axhline(1, color=GRAY, ls="--", lw=1)
        axes.set(xscale="log", ylim=(0, 1.05), xlabel="step", ylabel="overlap with the steps before")
