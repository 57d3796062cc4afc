"""How far wide networks move when they are trained."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._claim import generator, sem
from .._drawing import BLUE, GREEN, ORANGE, loglog


class LazyWidth(Claim):
    """In NTK scaling training moves weights and features by width^(-1/2), and the tangent kernel by 1/width."""

    source = "graduate course: lazy training"
    formula = "|dW|/|W| ~ n^(-1/2),   |d features|/|features| ~ n^(-1/2),   |d Theta|/|Theta| ~ 1/n"

    width: int = setting(256, "The smaller of two widths; the other is 16 times larger.", low=32, high=512)
    networks: int = setting(10, "Networks trained at each width.", low=3, high=100, quick=5)
    steps: int = setting(1000, "Steps of gradient descent.", low=100, high=5000, quick=400)

    def run(self, seed: int) -> Result:
        import jax

        x = generator(seed, "inputs").normal(size=(8, 4))
        x *= 2 / np.linalg.norm(x, axis=1, keepdims=True)
        y, widths = np.sin(2 * x[:, 0]) + x[:, 1], self.width * np.array([1, 16])
        found = np.zeros((2, self.networks, 3))
        for i, n in enumerate(widths):
            net = nk.MLP(4, (int(n),), 1, "tanh", weight_var=1.5, bias_var=0.1)
            lr = 0.7 / np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1]
            for k in range(self.networks):
                theta = net.init(jax.random.fold_in(jax.random.key(seed), k))
                descent = nk.GradientDescent(lr, self.steps)
                end = nk.simulate(net, theta, x, y, descent, nk.Record(every=self.steps)).params
                moved = nk.theory.movement(net, theta, end, x)
                found[i, k] = moved.weights, moved.features, moved.kernel
        powers = np.diff(np.log(found), axis=0)[0] / np.log(widths[1] / widths[0])
        rows = [
            # From width 64 on the kernel's power is still -0.83: the limit needs the wider ones.
            statistical(f"power of the width, {name}", power, values.mean(), sem(values))
            for name, power, values in zip(
                ("weights", "features", "kernel"), (-0.5, -0.5, -1.0), powers.T, strict=True
            )
        ]
        typical = np.exp(np.log(found).mean(axis=1))
        data = {"width": widths, "weights": typical[:, 0], "features": typical[:, 1], "kernel": typical[:, 2]}
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        data = result.data
        for name, color, power in (
            ("weights", BLUE, -0.5),
            ("features", GREEN, -0.5),
            ("kernel", ORANGE, -1),
        ):
            axes.plot(data["width"], data[name], "o", color=color, label=name)
            axes.plot(data["width"], data[name][0] * (data["width"] / data["width"][0]) ** power, color=color)
        loglog(axes)
        axes.set(xlabel="width", ylabel="relative movement by training")
