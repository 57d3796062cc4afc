"""Sharpness rises until the step is just too large."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, exact, setting
from .._drawing import BLUE, GRAY, Figure


class EdgeOfStability(Claim):
    """Gradient descent on a network sharpens the loss up to 2/lr and stays there while the loss goes on falling."""

    source = "graduate course: sharpness"
    formula = "lr lam_max(Hessian) rises from below 2 and then hovers at 2"

    start: float = setting(0.5, "Learning rate times the sharpness at initialization.", low=0.3, high=1.0)
    steps: int = setting(1600, "Steps of gradient descent.", low=1200, high=5000)

    def run(self, seed: int) -> Result:
        import jax

        x = np.linspace(-1, 1, 12)[:, None]
        y = np.cos(4 * np.arccos(x[:, 0]))
        net = nk.MLP(1, (20, 20), 1, "tanh", weight_var=1.0, bias_var=0.1)
        theta = net.init(jax.random.key(1 + seed))
        lr = self.start / nk.geometry.sharpness(net, theta, x, y)
        keep = {"sharpness": lambda p: nk.geometry.sharpness(net, p, x, y, steps=15)}
        every = self.steps // 16
        history = nk.simulate(
            net, theta, x, y, nk.GradientDescent(lr, self.steps), nk.Record(keep, every)
        ).history
        sharp, loss = lr * history["sharpness"], history["loss"]
        rows = (
            exact("lr times the sharpness, over the last quarter", 2.0, sharp[-4:].mean(), 0.05),
            at_least("rise of the sharpness", 2.0, sharp[-1] / sharp[0]),
            at_least("loss half-way over loss at the end", 1.0, loss[len(loss) // 2] / loss[-1]),
        )
        return Result(rows, {"step": history["time"], "lr sharpness": sharp, "loss": loss})

    figure = Figure("step", ylim=(0, None))
    figure.line("lr sharpness", BLUE, label="lr · sharpness")
    figure.line(lambda data: data["loss"] / data["loss"][0], GRAY, "-", "loss / first loss")
    figure.level(2)
