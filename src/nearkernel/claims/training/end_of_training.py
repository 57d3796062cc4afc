"""What the end of training of a linear model depends on."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, at_most, exact, setting, unlike
from .._claim import generator
from .._drawing import BLUE, ORANGE, Figure


class EndOfTraining(Claim):
    """A linear model trained to the end depends on its start through z(0) alone, and not on the learning rate."""

    source = "notes on gradient descent as difference equations: linear models"
    formula = "z_B = z_B(0) - k K^-1 (z_A(0) - y)"
    erratum = Erratum(
        "notes on gradient descent as difference equations, line 222",
        "in brackets, different learning rates yield different predictions if z(0) is not 0",
        "a slip beside the words algorithm independence, which are right, as is the end that line 216 gives",
        "largest difference of two ends, as a share",
    )

    points: int = setting(8, "Training points; there are 20 features.", low=2, high=15)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        phi, phi_new, w = rng.normal(size=(self.points, 20)), rng.normal(size=(1, 20)), rng.normal(size=20)
        y, kernel = rng.normal(size=self.points), nk.kernels.Linear()
        solved = lambda target: float((kernel(phi_new, phi) @ np.linalg.solve(kernel(phi), target))[0])
        theory, at_rest = float(phi_new[0] @ w) - solved(phi @ w - y), solved(y)
        top, ends = np.linalg.eigvalsh(kernel(phi))[-1], []
        ratios, model = np.array([0.1, 0.5, 1.0, 1.5, 1.9]), nk.from_function(lambda p, x: x @ p)
        for ratio in ratios:
            run = nk.simulate(model, w, phi, y, nk.GradientDescent(ratio / top, 4000), nk.Record(every=4000))
            ends.append(float(run.params @ phi_new[0]))
        rows = [
            exact(f"end at lr = {ratio:g}/lam_max", theory, end, 1e-6)
            for ratio, end in zip(ratios, ends, strict=True)
        ]
        rows.append(at_most("largest difference of two ends, as a share", 1e-6, np.ptp(ends) / abs(theory)))
        rows.append(unlike("end, if the start were z(0) = 0", at_rest, ends[2], tolerance=1e-3))
        marks = {"theory": np.full(5, theory), "from z(0) = 0": np.full(5, at_rest)}
        return Result(tuple(rows), {"lr lam_max": ratios, "measured": np.array(ends), **marks})

    figure = Figure(
        "lr lam_max", "prediction at a new input", xlabel="learning rate times the largest eigenvalue"
    )
    figure.line("theory", BLUE, "-")
    figure.line("measured", BLUE, "o", "trained", mfc="white")
    figure.line("from z(0) = 0", ORANGE, "--", "k K⁻¹ y, from z(0) = 0")
