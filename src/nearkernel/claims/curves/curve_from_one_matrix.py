"""The whole learning curve is in one kernel matrix."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._claim import generator, sem
from .._drawing import Figure


class CurveFromOneMatrix(Claim):
    """One kernel matrix of n points tells the expected test error of training on any m <= n of them."""

    source = "theory of learning curves: one kernel matrix, the whole curve"
    formula = "E(m) = mean_i e_i(g)^2 (1 - df2/n)/(1 - df2/m),   g = s + (n - m)/tr (K + g)^-1"

    points: int = setting(300, "Points of the matrix.", low=60, high=2000, quick=200)
    fits: int = setting(30, "Independent fits at each size.", low=4, high=500, quick=12)
    noise: float = setting(0.3, "Standard deviation of the noise.", low=0.0, high=2.0)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        net = nk.MLP(8, (8, 8), activation="relu", weight_var=2.0, bias_var=0.1)
        kernel = nk.kernels.NTK(net)

        def draw(n):
            x = rng.normal(size=(n, 8))
            x *= 8**0.5 / np.linalg.norm(x, axis=1)[:, None]
            return x, x[:, 0] * x[:, 1] + 0.7 * x[:, 2] + self.noise * rng.normal(size=n)

        x, y = draw(self.points)
        size = float(kernel.diag(x[:1])[0])
        sizes = [self.points // 6, self.points // 3, self.points]
        rows, data = [], {"examples": np.array(sizes)}
        for name, algorithm in {"ridge": nk.Ridge(0.1 * size), "flow": nk.GradientFlow(5 / size)}.items():
            curve = nk.learning_curve(net, x, y, algorithm, sizes=sizes)
            means, errors = [], []
            for i, m in enumerate(sizes):
                found = []
                for _ in range(self.fits):
                    new, target = draw(m + 500)
                    fitted = (
                        nk.solve(kernel, new[:m], target[:m], algorithm, solver="direct")
                        .predict(new[m:])
                        .mean
                    )
                    found.append(((fitted - target[m:]) ** 2).mean())
                means.append(np.mean(found))
                errors.append(np.hypot(sem(found), curve.sem[i]))
                rows.append(
                    statistical(f"test error, {name}, {m} examples", curve.error[i], means[-1], errors[-1])
                )
            data |= {
                f"{name}, theory": curve.error,
                name: np.array(means),
                f"{name}, error": np.array(errors),
            }
        return Result(tuple(rows), data)

    figure = Figure("examples", "test error", log="xy")
    figure.pair("ridge, theory", "ridge", "ridge, error", label="ridge", color="#0072b2")
    figure.pair("flow, theory", "flow", "flow, error", label="flow", color="#d55e00")
