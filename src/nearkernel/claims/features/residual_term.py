"""First-order weights where the data cannot be fitted."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, unlike
from .._claim import slope
from .._drawing import BLUE, ORANGE, Figure
from ._problems import F, problem, psi_array, trained


class ResidualTerm(Claim):
    """With more points than parameters the first correction of the weights has a term with the residual."""

    source = "graduate course: quadratic models"
    formula = "W^I = -(f^T f)^-1 [f^T psi(W^F, W^F)/2 + sum_a r_a psi_a W^F],   r = f W^F - y"

    points: int = setting(15, "Training points; there are 11 features.", low=12, high=17)

    def run(self, seed: int) -> Result:
        p, eps = problem(self.points, seed), np.geomspace(4e-3, 5e-4, 4)
        f, psi = p.x[:, :F], psi_array(p.x)
        gram = f.T @ f
        w = np.linalg.solve(gram, f.T @ p.y)
        bent, pushed = f.T @ (0.5 * psi @ w @ w), np.einsum("n,njk,k->j", f @ w - p.y, psi, w)
        errors = []
        for e in eps:
            real = trained(nk.Ridge(0.0), p, e)[0]
            first = [-np.linalg.solve(gram, term) for term in (bent + pushed, bent)]
            errors.append([np.linalg.norm(w + e * each - real) for each in first])
        right, wrong = np.array(errors).T
        rows = (
            exact("power of eps of the error", 2, slope(eps, right), 0.05),
            unlike("the same, as if the data were fitted", 2, slope(eps, wrong), tolerance=0.2),
        )
        return Result(rows, {"eps": eps, "error": right, "error, without": wrong})

    figure = Figure("eps", "distance from the trained weights", log="xy")
    figure.line("error", BLUE, label="with the residual")
    figure.line("error, without", ORANGE, "x--", "without")
