"""What a catapult does to the weights of neurons, beside mean-field scaling."""

import math

import numpy as np

from .. import Claim, Result, at_least, exact, setting
from .._claim import generator, slope
from .._drawing import GRAY, ORANGE, Figure


class CatapultFeatures(Claim):
    """A catapult moves each neuron as far as mean-field scaling does at any width, where lazy training does not."""

    source = "graduate course: catapults, open problems"
    formula = (
        "|du_i|/|u_i| ~ m^0 after a catapult: r ~ sqrt(m) moves neurons by lr r v/sqrt(m);   m^(-1/2) if lazy"
    )

    trials: int = setting(30, "Networks of each width.", low=6, high=300, quick=12)
    largest: int = setting(6400, "Largest width m.", low=1600, high=50_000, quick=3200)

    def run(self, seed: int) -> Result:
        widths = np.geomspace(100, self.largest, 5).astype(int)
        rows, data = [], {"width": widths.astype(float)}
        for name in ("catapult", "mean field", "lazy"):
            moved = [[self._moved(seed, name, int(m), t) for t in range(self.trials)] for m in widths]
            data[name] = np.sqrt(np.mean(np.square(moved), axis=1))
            power = slope(widths, data[name])
            told = f"power of the width that neurons move by, {name}"
            rows.append(exact(told, -0.5, power, 0.2) if name == "lazy" else at_least(told, -0.15, power))
        rows.append(
            at_least(
                "movement by a catapult over a lazy one, widest", 5.0, data["catapult"][-1] / data["lazy"][-1]
            )
        )
        return Result(tuple(rows), data)

    def _moved(self, seed: int, name: str, m: int, trial: int) -> float:
        """|u - u_0|/|u_0| of a two-layer relu network that learns y = 1 at x = 1."""
        rng = generator(seed, name, str(m), str(trial))
        u, v = rng.normal(size=(2, m))
        start = u.copy()
        power = 1.0 if name == "mean field" else 0.5  # of the width that outputs are divided by
        hidden = np.maximum(u, 0)
        ntk = m ** (-2 * power) * (hidden @ hidden + v[u > 0] @ v[u > 0])
        lr = {"catapult": 2.6, "mean field": 0.5, "lazy": 0.5}[name] / ntk
        for _ in range(300):
            hidden, on = np.maximum(u, 0), u > 0
            r = v @ hidden / m**power - 1.0
            if abs(r) > 1e8:
                return math.nan
            u, v = u - lr * r * v * on / m**power, v - lr * r * hidden / m**power
        return float(np.linalg.norm(u - start) / np.linalg.norm(start))

    figure = Figure("width", "relative movement of the neurons' weights", log="xy")
    figure.line("catapult")
    figure.line("mean field", ORANGE)
    figure.line("lazy", GRAY)
