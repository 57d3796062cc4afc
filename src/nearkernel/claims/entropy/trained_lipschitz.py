"""How regular trained networks are."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, setting
from .._claim import generator, sem
from .._drawing import GRAY, ORANGE, Figure


class TrainedLipschitz(Claim):
    """The Lipschitz constant of a network is that of its data: it grows with label noise, far below its norm bound."""

    source = "graduate course: entropy and widths, open question"
    formula = "max |grad z| <= Lip <= product of spectral norms; both at initialization and after fitting noisy labels"

    steps: int = setting(4000, "Steps of gradient descent.", low=500, high=50_000, quick=1500)
    runs: int = setting(4, "Networks for each noise.", low=3, high=30, quick=3)

    def run(self, seed: int) -> Result:
        import jax

        rng = generator(seed, "data")
        x = rng.uniform(-1, 1, size=(30, 2))
        grid = rng.uniform(-1, 1, size=(600, 2))
        net = nk.MLP(2, (64, 64), 1, "tanh", weight_var=1.5, bias_var=0.1)
        noises = np.array([0.0, 0.3, 1.0])
        lower, upper = np.empty((self.runs, 4)), np.empty((self.runs, 4))
        for run in range(self.runs):
            start = net.init(jax.random.key(seed * 100 + run))
            noise = rng.normal(size=30)
            states = [start]
            lr = 1.0 / np.linalg.eigvalsh(np.asarray(nk.kernels.NTK(net)(x)))[-1]
            for size in noises:
                y = np.sin(2 * x[:, 0]) + size * noise
                descent = nk.GradientDescent(lr, self.steps)
                states.append(nk.simulate(net, start, x, y, descent, nk.Record(every=self.steps)).params)
            bounds = [nk.theory.lipschitz_bounds(net, params, grid) for params in states]
            lower[run], upper[run] = np.array(bounds).T
        rows = (
            at_least(
                "largest gradient after fitting noise 1 over noise 0", 1.5, np.mean(lower[:, 3] / lower[:, 1])
            ),
            at_least(
                "largest gradient after fitting noise 0.3 over noise 0",
                1.0,
                np.mean(lower[:, 2] / lower[:, 1]),
                sem(lower[:, 2] / lower[:, 1]),
            ),
            at_least("norm bound over the largest gradient, at the least", 2.0, np.min(upper / lower)),
            at_least(
                "largest gradient of a smooth target, over that of the target, 2", 0.8, lower[:, 1].mean() / 2
            ),
        )
        return Result(
            rows,
            {
                "noise": noises,
                "gradient": lower.mean(axis=0)[1:],
                "bound": upper.mean(axis=0)[1:],
                "start": np.full(3, lower[:, 0].mean()),
            },
        )

    figure = Figure("noise", "Lipschitz constant", xlabel="noise of the labels", log="y")
    figure.line("gradient")
    figure.line("bound", ORANGE)
    figure.line("start", GRAY)
