"""Which way features move."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, exact, refuted, setting
from .._claim import slope
from .._drawing import BLUE, ORANGE, Figure
from ._problems import F, Known, problem, psi_array, trained


class FeatureDrift(Claim):
    """Under gradient flow the features drift by eps psi (1 - exp(-f^T f t)) (theta* - theta_0)."""

    source = "graduate course: quadratic models"
    formula = "f^E(t) - f^E(0) = eps psi (1 - exp(-f^T f t)) (theta* - theta_0) + O(eps^2)"
    erratum = Erratum(
        "graduate course, lines 1298 and 1302",
        "the drift goes along theta_0 - theta*",
        "features at the end minus initial ones, as line 1302 has them; the rate in line 1296 has the right sign",
        "the same with the sign of line 1298",
    )

    time: float = setting(3.0, "How long the flow lasts.", low=0.1, high=20.0)

    def run(self, seed: int) -> Result:
        p, eps = problem(6, seed), np.geomspace(8e-3, 1e-3, 4)
        f = p.x[:, :F]
        lam, v = np.linalg.eigh(f.T @ f)
        moved = v @ ((1 - np.exp(-lam * self.time)) * (v.T @ (np.linalg.pinv(f) @ p.y)))
        errors, angles = [], []
        for e in eps:
            drift = Known(p.x, e).features(trained(nk.GradientFlow(self.time), p, e)[0]) - f
            theory = e * psi_array(p.x) @ moved
            errors.append([np.linalg.norm(drift - sign * theory) for sign in (1, -1)])
            angles.append(np.sum(drift * theory) / np.linalg.norm(drift) / np.linalg.norm(theory))
        right, wrong = np.array(errors).T
        rows = (
            exact("cosine of drift and theory, smallest eps", 1, angles[-1], 0.01),
            exact("power of eps of the error", 2, slope(eps, right), 0.05),
            refuted("the same with the sign of line 1298", 2, slope(eps, wrong), tolerance=0.2),
        )
        return Result(rows, {"eps": eps, "error": right, "error, opposite sign": wrong})

    figure = Figure("eps", "distance from the real drift", log="xy")
    figure.line("error", BLUE, label="theta* - theta_0")
    figure.line("error, opposite sign", ORANGE, "x--", "theta_0 - theta*")
