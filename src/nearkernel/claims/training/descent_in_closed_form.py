"""Gradient descent on a linear model, solved."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import generator
from .._drawing import Figure


class DescentInClosedForm(Claim):
    """After t steps a linear model predicts z(0) - k g(K) (z(0) - y) with g(lam) = (1 - (1 - lr lam)^t)/lam."""

    source = "notes on gradient descent as difference equations: linear models"
    formula = "z_B(t) = z_B(0) - k_BA g_t(K) (z_A(0) - y),   g_t(lam) = (1 - (1 - lr lam)^t) / lam"

    points: int = setting(12, "Training points.", low=2, high=60)
    features: int = setting(20, "Features, more than points or fewer.", low=2, high=60)
    ratio: float = setting(1.7, "Learning rate times the largest eigenvalue.", low=0.05, high=1.98)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        phi, phi_new = rng.normal(size=(self.points, self.features)), rng.normal(size=(1, self.features))
        y, w = rng.normal(size=self.points), rng.normal(size=self.features)
        kernel = nk.kernels.Linear()
        lam, v = np.linalg.eigh(kernel(phi))
        descent = nk.GradientDescent(self.ratio / lam[-1])
        times = np.unique(np.geomspace(1, 300, 14).astype(int))
        start, e = phi_new @ w, phi @ w - y
        theory = [
            (
                start
                - kernel(phi_new, phi) @ (v @ (descent.at(int(t)).filter(np.maximum(lam, 1e-12)) * (v.T @ e)))
            )[0]
            for t in times
        ]
        run = nk.simulate(
            nk.from_function(lambda p, x: x @ p),
            w,
            phi,
            y,
            descent.at(300),
            nk.Record({"w": lambda p: p}, every=1),
        )
        measured = run.history["w"][times] @ phi_new[0]
        rows = [exact(f"prediction after {times[i]} steps", theory[i], measured[i], 1e-8) for i in (0, 5, -1)]
        return Result(tuple(rows), {"step": times, "theory": np.array(theory), "measured": measured})

    figure = Figure("step", "prediction at a new input", log="x")
    figure.pair()
