"""Catapults of models of third degree."""

import math

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting, statistical
from .._claim import generator, sem
from .._drawing import BLUE, GREEN, ORANGE

_RATIOS = np.arange(1.8, 6.6, 0.2)


class CatapultCubic(Claim):
    """The third degree adds no new phase: cubic models diverge for good at about the rate of quadratic ones."""

    source = "graduate course: catapults, open problems"
    formula = "phases in order of lr: lazy, catapult, divergent, once each, for degrees 2 and 3 and the network itself"

    width: int = setting(400, "Neurons of a two-layer tanh network.", low=100, high=3000, quick=200)
    trials: int = setting(16, "Networks.", low=5, high=100, quick=6)

    def run(self, seed: int) -> Result:
        degrees = {"degree 2": 2, "degree 3": 3, "network": 9}
        limits = {name: np.empty(self.trials) for name in degrees}
        onset, back = np.empty(self.trials), 0
        for t in range(self.trials):
            u, v = generator(seed, f"network {t}").normal(size=(2, self.width))
            for name, degree in degrees.items():
                phases = [nk.theory.phase_of(self._losses(u, v, degree, ratio)) for ratio in _RATIOS]
                fails = phases.index("divergent") if "divergent" in phases else len(phases) - 1
                limits[name][t] = _RATIOS[fails] - 0.1
                if degree == 3:
                    back += any(each != "divergent" for each in phases[fails:])
                    onset[t] = _RATIOS[next(i for i, each in enumerate(phases) if each != "lazy")] - 0.1
        away = limits["degree 3"] - limits["degree 2"]
        more = limits["network"] - limits["degree 3"]
        rows = (
            statistical(
                "lr ntk at which the loss of a cubic model rises", 2.0, onset.mean(), sem(onset), 0.1
            ),
            at_most(
                "cubic models that train again beyond the first divergence, share", 0.35, back / self.trials
            ),
            at_most("limit of degree 3 minus that of degree 2, size", 0.5, abs(away.mean()), sem(away)),
            at_least("limit of the network minus that of degree 3", 0.0, more.mean(), sem(more)),
        )
        numbers = {"kind": np.arange(3)} | {"limit": np.array([limits[name].mean() for name in degrees])}
        return Result(rows, numbers | {"sem": np.array([sem(limits[name]) for name in degrees])})

    def _losses(self, u: np.ndarray, v: np.ndarray, degree: int, ratio: float) -> np.ndarray:
        """Of gradient descent on y = 0 at x = 1, with z = v.tanh(u)/sqrt(m) to some degree in the moves of u and v."""
        s, root = np.tanh(u), math.sqrt(len(u))
        first = 1 - s**2
        second, third = -2 * s * first, -2 * first**2 + 4 * s**2 * first
        lr = ratio * len(u) / (v**2 @ first**2 + s @ s)
        a, b, found = 0 * u, 0 * v, []
        for _ in range(200):
            if degree > 3:
                now = np.tanh(u + a)
                z, by_a, by_b = (v + b) @ now, (v + b) * (1 - now**2), now
            else:
                cube = degree == 3
                by_b = s + first * a + cube * second * a**2 / 2
                by_a = (v + b) * first + v * second * a + cube * (b * second * a + v * third * a**2 / 2)
                z = (v + b) @ (s + first * a) + (v * second) @ a**2 / 2
                z = z + cube * ((b * second) @ a**2 / 2 + (v * third) @ a**3 / 6)
            r = z / root
            found.append(0.5 * r**2)
            if not found[-1] < 1e12:
                return np.array([*found, np.inf])
            a, b = a - lr * r * by_a / root, b - lr * r * by_b / root
        return np.array(found)

    def draw(self, axes, result):
        data = result.data
        for at, (name, color) in enumerate((("degree 2", BLUE), ("degree 3", ORANGE), ("network", GREEN))):
            axes.errorbar(
                [at], data["limit"][at : at + 1], data["sem"][at : at + 1], fmt="o", color=color, label=name
            )
        axes.axhline(2, ls="--", lw=1, color="black")
        axes.set(ylabel="lr · kernel at which training diverges", xticks=[], ylim=(0, None))
