"""One point, two numbers: the learning rates at which a quadratic model changes what it does."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, exact, setting
from .._drawing import GRAY, ORANGE, PURPLE, SKY


class CatapultPhases(Claim):
    """A wide quadratic model on one point learns lazily below lr = 2/kernel and by a catapult up to
    4/kernel."""

    source = "graduate course: catapults"
    formula = "lazy: lr ntk < 2;   catapult: 2 < lr ntk < 4, ends with lr ntk < 2;   divergent: lr ntk > 4"

    width: float = setting(1e6, "Width of the network whose quadratic model is trained.", low=1e3, high=1e8)
    output: float = setting(0.8, "Output at initialization; the target is 0.", low=0.1, high=2.0)
    steps: int = setting(4000, "Steps of gradient descent.", low=200, high=20_000, quick=1500)

    def run(self, seed: int) -> Result:
        def losses(lr: float) -> np.ndarray:
            z = nk.theory.catapult(self.output, 1.0, 0.0, 1 / self.width, lr, self.steps).z
            return 0.5 * np.clip(z, -1e150, 1e150) ** 2

        lazy, divergent = nk.theory.phase_boundaries(losses, 1.0)
        ratios = np.linspace(0.1, 4.4, 44)
        path = nk.theory.catapult(self.output, 1.0, 0.0, 1 / self.width, ratios, self.steps)
        peak, end = 0.5 * np.clip(np.abs(path.z).max(axis=0), 0, 1e150) ** 2, ratios * path.ntk[-1]
        flown = (ratios > 2.2) & (ratios < 3.9)
        rows = (
            exact("lr at which the loss starts to rise", 2.0, lazy, 0.02),
            exact("lr at which training diverges", 4.0, divergent, 0.02),
            at_most("lr times the kernel, after a catapult", 2.0, end[flown].max()),
        )
        return Result(rows, {"lr": ratios, "highest loss": peak, "lr kernel at the end": end})

    def draw(self, axes, result):
        data = result.data
        fine = data["lr"] < 4
        axes.plot(
            data["lr"][fine],
            data["lr kernel at the end"][fine],
            "o-",
            ms=3.5,
            color=PURPLE,
            label="lr · kernel at the end",
        )
        growth = np.log10(data["highest loss"][fine] / data["highest loss"][0])
        axes.plot(
            data["lr"][fine],
            growth,
            "s-",
            ms=3.5,
            color=ORANGE,
            label="log10 of the highest loss / the first",
        )
        axes.axvspan(2, 4, color=SKY, alpha=0.15, lw=0)
        axes.axhline(2, color=GRAY, ls="--", lw=1)
        axes.set(xlabel="lr · kernel at initialization", ylim=(0, None))
