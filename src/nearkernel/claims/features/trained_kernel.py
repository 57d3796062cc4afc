"""How training moves the kernel of a model that learns features."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import slope
from .._drawing import BLUE, GRAY, loglog
from ._problems import F, Known, problem, solved, trained


class TrainedKernel(Claim):
    """Training moves the kernel by -(mu_12a + mu_21a) (K^-1 e)_a at first order, whatever the algorithm."""

    source = "talk on the principles of deep learning theory: trained kernels"
    formula = "k^E_12 = k_12 - (mu_12a + mu_21a) (K^-1 e)_a + O(eps^2)"

    points: int = setting(6, "Training points; there are 11 features.", low=2, high=8)

    def run(self, seed: int) -> Result:
        p, eps = problem(self.points, seed), np.geomspace(8e-3, 1e-3, 4)
        rules = {
            "direct": nk.DirectOptimization(),
            "least norm": nk.Ridge(0.0),
            "descent": nk.GradientDescent(0.4),
        }
        rows, data = [], {"eps": eps}
        for name, rule in rules.items():
            errors = []
            for e in eps:
                w = trained(rule, p, e)[0]
                real = Known(p.x_new, e).features(w) @ Known(p.x, e).features(w).T
                errors.append(np.linalg.norm(solved(rule, p, e).effective_kernel(p.x_new, p.x) - real))
            rows.append(exact(f"power of eps of the error, {name}", 2, slope(eps, errors), 0.05))
            data[name] = np.array(errors)
        data["frozen kernel"] = np.array(
            [np.linalg.norm(p.x_new[:, :F] @ p.x[:, :F].T - Known(p.x_new, e).features(w) @ Known(p.x, e).features(w).T)
             for e, w in ((e, trained(nk.DirectOptimization(), p, e)[0]) for e in eps)]
        )  # fmt: skip
        rows.append(
            exact("power of eps of the error, frozen kernel", 1, slope(eps, data["frozen kernel"]), 0.05)
        )
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        for name, column in result.data.items():
            if name != "eps":
                color = GRAY if name == "frozen kernel" else BLUE
                axes.plot(result.data["eps"], column, "o-", ms=4, color=color, alpha=0.7, label=name)
        loglog(axes)
        axes.set(xlabel="eps", ylabel="distance from the trained kernel")
