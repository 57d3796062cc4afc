"""Which schedules end at the minimum in spite of noise."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, exact, setting, statistical
from .._claim import generator, sem, slope
from .._drawing import BLUE, GREEN, ORANGE, Figure


class FallingRates(Claim):
    """With noisy gradients the error vanishes if rates fall like 1/t, and not if they stay or fall like 1/t^2."""

    source = "graduate course: learning rates"
    formula = "sum of rates infinite, sum of their squares finite;   E|theta - theta*|^2 ~ 1/t for rates c/t, c lam > 1"

    steps: int = setting(4000, "Steps, at most.", low=400, high=20_000, quick=1000)
    runs: int = setting(400, "Runs of each schedule.", low=50, high=4000, quick=200)

    def run(self, seed: int) -> Result:
        # One parameter, loss (theta - 1)^2/2: z = theta at x = 1 starts at 0, the noise has deviation 1.
        x, y, times = np.ones((1, 1)), np.ones(1), np.unique(np.geomspace(10, self.steps, 8).astype(int))
        rates = {"constant": 0.0, "1/t": 1.0, "1/t^2": 2.0}
        model = nk.FeatureModel(lambda x: x)
        data, rows = {"step": times.astype(float)}, []
        for name, power in rates.items():
            factors = (5 / (5 + np.arange(self.steps))) ** power
            theory = []
            for t in times:
                sgd = nk.SGD(0.4, None, int(t), schedule=factors[:t], noise=1.0)
                found = nk.solve(model, x, y, sgd).predict(x)
                theory.append(float((found.mean[0] - 1) ** 2 + np.asarray(found.cov)[0, 0]))
            theta, rng = np.zeros(self.runs), generator(seed, name)
            for factor in factors:
                theta = theta - 0.4 * factor * (theta - 1 + rng.normal(size=self.runs))
            squares = (theta - 1) ** 2
            rows.append(
                statistical(f"squared error in the end, {name}", theory[-1], squares.mean(), sem(squares))
            )
            data[name] = np.array(theory)
        late = times > self.steps // 30
        rows.append(exact("power of the step, rates 1/t", -1.0, slope(times[late], data["1/t"][late]), 0.1))
        rows.append(
            at_least("error of constant rates over that of 1/t", 20.0, data["constant"][-1] / data["1/t"][-1])
        )
        rows.append(
            at_least("error of rates 1/t^2 over that of 1/t", 3.0, data["1/t^2"][-1] / data["1/t"][-1])
        )
        return Result(tuple(rows), data)

    figure = Figure("step", "mean squared error", log="xy")
    figure.line("constant", ORANGE, label="rates constant")
    figure.line("1/t", BLUE, label="rates 1/t")
    figure.line("1/t^2", GREEN, label="rates 1/t^2")
