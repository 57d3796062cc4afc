"""Real networks against their prediction, order by order."""

import numpy as np

from .. import Claim, Result, exact, setting
from .._drawing import GRAY, GREEN, Figure


class LazyScale(Claim):
    """A trained network with outputs times alpha is predicted to 1/alpha, 1/alpha^2, 1/alpha^3 at orders 0, 1, 2."""

    source = "talk on the principles of deep learning theory: nearly-kernel methods"
    formula = "alpha [z(theta) - z(theta_0)] trained on y:  the expansion parameter is eps = 1/alpha"

    points: int = setting(12, "Training points.", low=4, high=60, quick=8)
    scales: int = setting(3, "How many alphas: 64, 32, 16, ...", low=2, high=4, quick=2)
    width: int = setting(64, "Neurons in the hidden layer.", low=16, high=256, quick=32)

    def run(self, seed: int) -> Result:
        from ...forecasts.theory_ladder import ORDERS, Settings, climb

        alphas = tuple(64.0 / 2**k for k in reversed(range(self.scales)))
        chosen = Settings(
            self.points, test_points=10, dim=4, depth=1, width=self.width, alphas=alphas, tol=1e-5
        )
        rungs = [climb(chosen, ("alpha", alpha, self.width, seed), lambda _: None) for alpha in alphas]
        errors = np.array([rung.errors for rung in rungs])
        powers = np.polyfit(np.log(alphas), np.log(errors), 1)[0]
        rows = [exact(f"power of alpha, order {k}", -(k + 1), powers[k], 0.1) for k in ORDERS]
        return Result(tuple(rows), {"alpha": np.array(alphas)} | {f"order {k}": errors[:, k] for k in ORDERS})

    figure = Figure("alpha", "distance from the trained network", xlabel="lazy scale alpha", log="xy")
    figure.line("order 0", GRAY)
    figure.line("order 1")
    figure.line("order 2", GREEN)
