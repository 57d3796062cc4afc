"""Which learning rate generalizes."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import sem
from .._drawing import BLUE, ORANGE, SKY


class BestRate(Claim):
    """After the same number of steps networks that were catapulted have a smaller test loss than lazy ones."""

    source = "graduate course: catapults"
    formula = "min over 2 < lr ntk < 4 of the test loss < min over lr ntk < 2"

    networks: int = setting(8, "Networks, each at every learning rate.", low=3, high=40, quick=4)
    steps: int = setting(600, "Steps of gradient descent.", low=200, high=4000, quick=400)
    width: int = setting(128, "Neurons in the hidden layer.", low=32, high=512)

    def run(self, seed: int) -> Result:
        import jax
        from sklearn.datasets import load_digits

        pixels, digits = load_digits(return_X_y=True)
        chosen = np.flatnonzero(np.isin(digits, (3, 5, 8)))[:460]
        x, y = pixels[chosen], np.where(digits[chosen] == 8, 1.0, -1.0)
        x = (x - x.mean()) / x.std()
        train, test = slice(0, 60), slice(60, 460)
        net = nk.MLP(64, (self.width,), 1, "relu", weight_var=2.0)
        ratios = np.array([0.5, 1.0, 1.5, 2.5, 3.0, 3.5])
        losses, kernels = np.empty((2, self.networks, len(ratios)))
        for i in range(self.networks):
            params = net.init(jax.random.key(1000 * seed + i))
            top = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, params)(x[train]))[-1]
            for j, ratio in enumerate(ratios):
                descent = nk.GradientDescent(ratio / top, self.steps)
                run = nk.simulate(net, params, x[train], y[train], descent, nk.Record(every=self.steps))
                losses[i, j] = np.mean((np.asarray(net(run.params, x[test]))[:, 0] - y[test]) ** 2)
                after = nk.kernels.EmpiricalNTK(net, run.params)(x[train])
                kernels[i, j] = np.linalg.eigvalsh(after)[-1] / top
        lazy = ratios < 2
        gain = 1 - losses[:, ~lazy].min(axis=1) / losses[:, lazy].min(axis=1)
        rows = (
            at_least(
                "share of the test loss that a catapult saves, less 4 standard errors",
                0.0,
                gain.mean() - 4 * sem(gain),
            ),
            at_least("the same, of the network that gains least", 0.0, gain.min()),
            at_least(
                "largest eigenvalue of lazy kernels after training, over before", 0.8, kernels[:, lazy].min()
            ),
            at_most("the same at 3.5, after a catapult", 2 / 3.5, kernels[:, -1].max()),
        )
        data = {"lr kernel": ratios, "test loss": losses.mean(axis=0), "kernel": kernels.mean(axis=0)}
        return Result(rows, data)

    def draw(self, axes, result):
        data = result.data
        axes.plot(
            data["lr kernel"],
            data["test loss"] / data["test loss"][0],
            "o-",
            color=BLUE,
            label="test loss / first",
        )
        axes.plot(data["lr kernel"], data["kernel"], "v-", color=ORANGE, label="kernel, after / before")
        axes.axvspan(2, 4, color=SKY, alpha=0.15, lw=0)
        axes.set(xlabel="lr · kernel at initialization", ylim=(0, 1.1))
