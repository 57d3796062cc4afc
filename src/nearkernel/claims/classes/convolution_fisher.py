"""The Fisher information of a convolutional network on images."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._digits import digits, trained
from .._drawing import BLUE, ORANGE


class ConvolutionFisher(Claim):
    """The Fisher information of a convolutional network trained on images has C - 1 or C outliers over a bulk."""

    source = "graduate course: Hessians of classifiers"
    formula = "F = sum_i E_label[g g^T]: C - 1 or C eigenvalues above a gap, for C classes of digits"

    classes: int = setting(4, "Classes C: digits 0 to C - 1.", low=3, high=6)
    points: int = setting(120, "Images.", low=60, high=400, quick=80)
    steps: int = setting(150, "Steps of gradient descent.", low=20, high=2000, quick=80)

    def run(self, seed: int) -> Result:
        import jax

        x, own = digits(self.classes, self.points)
        y = np.eye(self.classes)[own]
        net = nk.CNN((8, 8, 1), (8, 8, 8), self.classes, "relu", pool=2, head="flatten")
        start = net.init(jax.random.key(seed))
        images = x.reshape(-1, 8, 8, 1)
        lr = 0.5 / nk.geometry.sharpness(net, start, images, y, "cross_entropy")
        end = trained(net, start, images, y, nk.GradientDescent(lr, self.steps))
        right = np.mean(np.argmax(np.asarray(net(end, images)), axis=1) == own)
        values = nk.geometry.top_eigenpairs(
            nk.geometry.Fisher(net, end, images, y, "cross_entropy"), 12
        ).values
        gaps = values[:-1] / values[1:]
        above = int(np.argmax(gaps)) + 1
        rows = (
            at_least("eigenvalues above the largest gap", self.classes - 1, above),
            at_most("eigenvalues above it", self.classes, above),
            at_least("that gap, as a ratio", 1.2, gaps.max()),
            at_least("share of images that are classified right", 0.9, right),
        )
        return Result(rows, {"number": np.arange(1, 13), "eigenvalue": values})

    def draw(self, axes, result):
        number, value = result.data["number"], result.data["eigenvalue"]
        top = number < self.classes
        axes.plot(number[top], value[top], "v", ms=7, color=ORANGE, label="the first C - 1")
        axes.plot(number[~top], value[~top], "o", color=BLUE, label="others")
        axes.set(yscale="log", xlabel="number", ylabel="eigenvalue of the Fisher information")
