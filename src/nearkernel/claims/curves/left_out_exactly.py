"""n trainings for the price of one factorization."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import generator
from .._drawing import BLUE, GRAY


class LeftOutExactly(Claim):
    """Gradient flow and descent, stopped at any time, have leave-one-out residuals in closed form, as ridges have."""

    source = "theory of learning curves: leave-one-out of any filter"
    formula = "e_i = -Re sum_j w_j [(K + s_j)^-1 y]_i / [(K + s_j)^-1]_ii, where the decay is sum_j w_j s_j/(lam + s_j)"

    points: int = setting(24, "Training points, each left out once.", low=4, high=200)
    time: float = setting(0.5, "Time of gradient flow.", low=1e-3, high=1e4, log=True)
    steps: int = setting(40, "Steps of gradient descent.", low=1, high=1000)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        x, y = rng.normal(size=(self.points, 5)), rng.normal(size=self.points)
        kernel = nk.kernels.NTK(nk.MLP(5, (8, 8), activation="relu", weight_var=2.0, bias_var=0.1))
        rate = 1.5 / float(np.linalg.eigvalsh(kernel(x))[-1])
        algorithms = {
            "ridge": nk.Ridge(0.3),
            "flow": nk.GradientFlow(self.time),
            "descent": nk.GradientDescent(rate, self.steps),
            "descent with momentum": nk.GradientDescent(rate, min(self.steps, 60), 0.5),
        }
        rows, data = [], {}
        for name, algorithm in algorithms.items():
            found = nk.solve(kernel, x, y, algorithm, solver="direct").leave_one_out().residuals
            again = np.empty_like(y)
            for i in range(self.points):
                rest = np.delete(np.arange(self.points), i)
                again[i] = nk.solve(kernel, x[rest], y[rest], algorithm).predict(x[i : i + 1]).mean[0] - y[i]
            worst = int(np.abs(found - again).argmax())
            rows.append(exact(f"residual that differs most, {name}", found[worst], again[worst], 1e-9))
            data[name], data[f"{name}, trained again"] = found, again
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        for name in ("flow", "descent"):
            axes.plot(result.data[name], result.data[f"{name}, trained again"], "o", mfc="none", label=name)
        ends = [float(result.data["flow"].min()), float(result.data["flow"].max())]
        axes.plot(ends, ends, color=GRAY, lw=0.8)
        axes.lines[0].set_color(BLUE)
        axes.set(xlabel="residual, closed form", ylabel="residual, trained again")
