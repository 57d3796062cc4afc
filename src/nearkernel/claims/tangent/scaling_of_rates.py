"""Two ways to write the same network, and the learning rates that make them train alike."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, unlike
from .._claim import generator
from .._drawing import BLUE, GREEN, ORANGE


class ScalingOfRates(Claim):
    """Standard scaling trains like NTK scaling if the learning rates of weights are divided by their fan-in."""

    source = "graduate course: learning rates"
    formula = (
        "W = sqrt(C_W/fan_in) w:  dW = (C_W/fan_in) (-lr dL/dW),  so lr_W = lr C_W/fan_in, lr_b = lr C_b"
    )

    width: int = setting(64, "Neurons in the hidden layer.", low=8, high=512)
    steps: int = setting(100, "Steps of gradient descent.", low=10, high=1000, quick=50)

    def run(self, seed: int) -> Result:
        import jax

        rng = generator(seed, "data")
        x, y = rng.normal(size=(6, 3)), rng.normal(size=6)
        ntk, standard = (
            nk.MLP(3, (self.width,), 1, "tanh", weight_var=1.5, bias_var=0.3, parametrization=name)
            for name in ("ntk", "standard")
        )
        with jax.enable_x64(True):
            theta = jax.tree.map(np.asarray, ntk.init(jax.random.key(seed)))
        scales = [np.sqrt(1.5 / fan) for fan in ntk.sizes[:-1]]
        start = [
            {"weight": scale * layer["weight"], "bias": np.sqrt(0.3) * layer["bias"]}
            for scale, layer in zip(scales, theta, strict=True)
        ]
        descent = nk.GradientDescent(0.05, self.steps)
        factors = standard.lr_factors()
        other = [
            {**factor, "weight": factor["weight"] * np.sqrt(fan)}
            for factor, fan in zip(factors, ntk.sizes, strict=False)
        ]
        runs = (
            nk.simulate(ntk, theta, x, y, descent, nk.Record(every=1)),
            nk.simulate(standard, start, x, y, descent, nk.Record(every=1)),
            nk.simulate(standard, start, x, y, descent, nk.Record(every=1), lr_factors=other),
        )
        losses = [run.history["loss"] for run in runs]
        rows = (
            exact("rate of the last weights, times fan-in", 1.5, factors[1]["weight"] * self.width, 1e-12),
            exact("loss after training, rates ~ 1/fan_in", losses[0][-1], losses[1][-1], 1e-8),
            unlike("the same, rates ~ 1/sqrt(fan_in)", losses[0][-1], losses[2][-1], tolerance=0.01),
        )
        data = {"step": np.arange(self.steps + 1), "NTK scaling": losses[0], "standard, 1/fan_in": losses[1]}
        return Result(rows, {**data, "standard, 1/sqrt(fan_in)": np.minimum(losses[2], 1e300)})

    def draw(self, axes, result):
        names = ("NTK scaling", "standard, 1/fan_in", "standard, 1/sqrt(fan_in)")
        for name, color, line in zip(names, (GREEN, BLUE, ORANGE), ("-", ":", "--"), strict=True):
            lw = 4 if line == "-" else 1.8
            values = result.data[name]
            axes.plot(
                result.data["step"][: len(values)], values, line, color=color, lw=lw, alpha=0.7, label=name
            )
        axes.set(yscale="log", xlabel="step", ylabel="loss", ylim=(None, 10 * result.data["NTK scaling"][0]))
