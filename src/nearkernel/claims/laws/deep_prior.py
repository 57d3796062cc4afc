"""Depth in place of a prior that was fitted to the data."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, exact, setting
from .._claim import generator
from .._drawing import Figure


class DeepPrior(Claim):
    """A Bayesian linear network of infinite effective depth with the plain prior predicts as one whose prior
    variance was fitted to the data."""

    source = "graduate course: Bayesian deep linear networks"
    formula = "scale nu = exp(lambda (nu0/nu - 1)), lambda = P sum 1/N_l: 1 at lambda = 0, nu0 at infinity"

    points: int = setting(200, "Training points P.", low=5, high=500)
    nu: float = setting(2.5, "Scale of the data in units of the prior's.", low=0.1, high=10.0)
    width: int = setting(400, "Width of the hidden layers.", low=50, high=1000)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        inputs = 2 * self.points
        x = rng.normal(size=(self.points, inputs))
        y = rng.normal(size=self.points)
        shortest = np.linalg.lstsq(x, y, rcond=None)[0]
        y *= np.sqrt(self.nu * self.points / inputs / (shortest @ shortest))  # so that n_0 t / P is nu
        depths = np.array([0, 1, 2, 5, 10, 20, 60, 200])
        scale, limit = [], []
        for depth in depths:
            widths = (self.width,) * int(depth)
            scale.append(inputs * nk.theory.deep_linear_posterior(x, y, widths).scale)
            limit.append(nk.theory.limiting_scale(self.nu, self.points, widths))
        lam = depths * self.points / self.width
        fitted = nk.theory.best_prior_var(x, y, ())
        rows = (
            exact("scale of predictions without depth", 1.0, scale[0], 1e-9),
            exact(f"scale at lambda = {lam[3]:g}, many points", limit[3], scale[3], 0.05),
            exact("scale at the largest depth, prior variance fitted", fitted, scale[-1], 0.05),
            at_most(
                "distance to the fitted one, of that without depth",
                0.05,
                abs(scale[-1] - fitted) / abs(1 - fitted),
            ),
        )
        return Result(rows, {"lambda": lam, "theory": np.array(limit), "measured": np.array(scale)})

    figure = Figure(
        lambda data: 1 + data["lambda"], "scale of predictions", xlabel="1 + effective depth", log="x"
    )
    figure.pair()
