"""Few directions of a classifier's loss are steep."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, exact, setting
from .._drawing import BLUE, ORANGE


class Outliers(Claim):
    """Early in training the Hessian of a classifier of C classes has C - 1 eigenvalues far above all others."""

    source = "graduate course: Hessians of classifiers"
    formula = "largest gap of the spectrum, as a ratio, after eigenvalue number C - 1"

    classes: int = setting(4, "Classes C: digits 0 to C - 1.", low=3, high=6)
    points: int = setting(200, "Images.", low=60, high=400, quick=120)
    width: int = setting(64, "Neurons in each of two hidden layers.", low=16, high=128, quick=32)

    def run(self, seed: int) -> Result:
        import jax
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        chosen = np.flatnonzero(labels < self.classes)[: self.points]
        x, own = pixels[chosen], labels[chosen]
        x, y = (x - x.mean()) / x.std(), np.eye(self.classes)[own]
        net = nk.MLP(64, (self.width,) * 2, self.classes, "relu", weight_var=2.0, parametrization="standard")
        theta = net.init(jax.random.key(seed))
        lr = 0.5 / nk.geometry.sharpness(net, theta, x, y, "cross_entropy")
        descent = nk.GradientDescent(lr, 60)
        params = nk.simulate(
            net, theta, x, y, descent, nk.Record(every=60), loss="cross_entropy", lr_factors=1.0
        ).params
        values = nk.geometry.top_eigenpairs(
            nk.geometry.Hessian(net, params, x, y, "cross_entropy"), 10
        ).values
        gaps = values[:-1] / values[1:]
        outliers = int(np.argmax(gaps)) + 1
        rows = (
            exact("eigenvalues above the largest gap", self.classes - 1, outliers, 0.0),
            at_least("that gap, as a ratio", 1.2, gaps.max()),
        )
        return Result(rows, {"number": np.arange(1, 11), "eigenvalue": values})

    def draw(self, axes, result):
        number, value = result.data["number"], result.data["eigenvalue"]
        top = number < self.classes
        axes.plot(number[top], value[top], "v", ms=7, color=ORANGE, label="the first C - 1")
        axes.plot(number[~top], value[~top], "o", color=BLUE, label="others")
        axes.set(yscale="log", xlabel="number", ylabel="eigenvalue of the Hessian")
