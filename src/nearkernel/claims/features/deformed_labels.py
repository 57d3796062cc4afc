"""A quadratic model as a linear one with other labels."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import slope
from .._drawing import GRAY, Figure
from ._problems import F, phi, problem, quadratic, trained


class DeformedLabels(Claim):
    """A quadratic model has, to first order, the weights of a linear one whose labels its quadratic form moved."""

    source = "graduate course: quadratic models"
    formula = "W = f^T K^-1 (y - eps/2 psi(W^F, W^F)) + O(eps^2),   W^F = f^T K^-1 y"

    points: int = setting(6, "Training points; there are 11 features.", low=3, high=9)

    def run(self, seed: int) -> Result:
        p, eps, errors = problem(self.points, seed), np.geomspace(8e-3, 1e-3, 4), []
        linear, rule = nk.FeatureModel(phi), nk.DirectOptimization()
        for e in eps:
            real = np.ravel(trained(rule, p, e)[0])
            labels = nk.solve(quadratic(e), p.x, p.y, rule, order=1).deformed_labels()
            fits = [np.ravel(nk.solve(linear, p.x, each, rule).params())[:F] for each in (labels, p.y)]
            errors.append([np.linalg.norm(real - fit) for fit in fits])
        moved, plain = np.array(errors).T
        rows = (
            exact("power of eps of the error, deformed labels", 2, slope(eps, moved), 0.05),
            exact("power of eps of the error, labels as they are", 1, slope(eps, plain), 0.05),
        )
        return Result(rows, {"eps": eps, "deformed labels": moved, "labels": plain})

    figure = Figure("eps", "distance from the trained weights", log="xy")
    figure.line("deformed labels")
    figure.line("labels", GRAY, "x--", "labels as they are")
