"""How high and how long a catapult flies."""

import math

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, exact, setting
from .._claim import slope
from .._drawing import BLUE, ORANGE


class CatapultTime(Claim):
    """In a catapult the loss peaks at a height of order width, after a number of steps of order log(width)."""

    source = "graduate course: catapults"
    formula = (
        "steps to the peak = ln(m) / (2 ln(lr ntk - 1)) + const;   peak of the loss ~ m;   |z| ~ sqrt(m)"
    )

    ratio: float = setting(2.5, "Learning rate times the kernel at initialization.", low=2.2, high=3.2)
    largest: float = setting(1e12, "Largest width m.", low=1e8, high=1e20)
    count: int = setting(200, "Widths, from 1e3 on.", low=20, high=1000)

    def run(self, seed: int) -> Result:
        m = np.geomspace(1e3, self.largest, self.count)
        path = nk.theory.catapult(1.0, 1.0, 0.0, 1 / m, self.ratio, 400)
        loss = 0.5 * path.z**2
        peak, time = loss.max(axis=0), loss.argmax(axis=0)
        early = loss.argmax(axis=0) // 2
        moved = np.abs(path.ntk[early, np.arange(len(m))] - 1)
        rate = 1 / (2 * math.log(self.ratio - 1))
        rows = (
            exact(
                "steps to the peak for each factor e of width", rate, np.polyfit(np.log(m), time, 1)[0], 0.02
            ),
            exact("power of the width that the highest loss follows", 1.0, slope(m, peak), 0.02),
            at_most("share by which the kernel moved, half-way to the peak of the widest", 1e-3, moved[-1]),
            at_most("lr times the kernel at the end", 2.0, self.ratio * path.ntk[-1].max()),
        )
        return Result(
            rows, {"width": m, "steps to the peak": time.astype(float), "peak over width": peak / m}
        )

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["width"], data["steps to the peak"], ".", color=BLUE, label="steps to the peak")
        line = np.log(data["width"]) / (2 * math.log(self.ratio - 1))
        axes.plot(
            data["width"], line - line[-1] + data["steps to the peak"][-1], color=ORANGE, label="theory"
        )
        axes.set(xscale="log", xlabel="width", ylabel="steps")
