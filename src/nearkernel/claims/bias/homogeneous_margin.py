"""Networks that go on training after they separate their data."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE, Figure


class HomogeneousMargin(Claim):
    """Once a relu network separates its data, training on the exponential loss makes its normalized margin grow."""

    source = "graduate course: implicit bias, margins"
    formula = "min_i y_i z(x_i) / |theta|^k grows;   log(1/L) / |theta|^k never falls under gradient flow once L < 1"

    width: int = setting(20, "Neurons in each of two hidden layers.", low=5, high=100)
    steps: int = setting(4000, "Steps of gradient descent.", low=1000, high=40_000, quick=2000)

    def run(self, seed: int) -> Result:
        import jax
        import jax.numpy as jnp

        x = generator(seed, "data").normal(size=(16, 3))
        labels = np.where(x[:, 0] * x[:, 1] > 0, 1.0, -1.0)
        net = nk.MLP(3, (self.width, self.width), 1, "relu", weight_var=2.0)
        params = net.init(jax.random.key(seed))
        lr, every, keep = 0.01, self.steps // 40, {"params": lambda p: p}
        descent = nk.GradientDescent(lr, self.steps)
        run = nk.simulate(
            net,
            params,
            x,
            labels,
            descent,
            nk.Record(keep, every),
            loss=lambda z, y: jnp.sum(jnp.exp(-y * z)),
        )
        loss, states = run.history["loss"], run.history["params"]
        each = [jax.tree.map(lambda leaf, t=t: leaf[t], states) for t in range(len(loss))]
        margin = np.array([nk.theory.normalized_margin(net, p, x, labels) for p in each])
        size = np.array([np.sqrt(sum(np.sum(entry["weight"] ** 2) for entry in p)) for p in each])
        late = loss < 1
        smooth = -np.log(loss[late]) / size[late] ** 3
        rows = (
            at_least("share of times with the data separated", 0.5, np.mean(late)),
            at_least(
                "normalized margin at the end over that at separation", 1.2, margin[-1] / margin[late][0]
            ),
            at_least(
                "least step of log(1/L)/|theta|^k, over its size", -1e-3, np.diff(smooth).min() / smooth[-1]
            ),
            at_least("length of the weights at the end over the start", 1.05, size[-1] / size[0]),
        )
        return Result(rows, {"step": run.history["time"], "margin": margin, "loss": loss})

    figure = Figure("step", ylim=(-0.2, 1.1))
    figure.line(lambda data: data["margin"] / data["margin"][-1], BLUE, "-", "normalized margin / last")
    figure.line(lambda data: data["loss"] / data["loss"][0], ORANGE, "-", "loss / first")
