"""How the signal of one network differs from that of another: the four-point vertex."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._claim import generator
from .._drawing import Figure
from .._drawn import drawn


class FourPoint(Claim):
    """The variance of a neuron's variance is V/n, with V from one Gaussian integral at any width n."""

    source = "talk on the principles of deep learning theory: networks of finite width"
    formula = "V = C_W^2 Var(s(z)^2), z ~ N(0, K);   E z^4 - 3 (E z^2)^2 = 3 V/n after one hidden layer"

    weight_var: float = setting(1.5, "Variance of the weights, C_W.", low=0.2, high=4.0)
    networks: int = setting(40_000, "Networks drawn at each width.", low=1000, high=400_000, quick=8000)

    def run(self, seed: int) -> Result:
        widths, x = np.array([2, 8, 32]), generator(seed, "inputs").normal(size=(1, 3))
        found = []
        for n in widths:
            net = nk.MLP(3, (int(n),), 1, "tanh", weight_var=self.weight_var, bias_var=0.1)
            theory = nk.propagate(net, x, order=1)[2].four_point[0, 0, 0, 0] / n
            variance = drawn(
                net,
                x,
                self.networks,
                [seed, n],
                lambda nets: self.weight_var * np.mean(np.tanh(nets.z[0][:, 0]) ** 2, axis=1),
            )
            squares = (variance - variance.mean()) ** 2
            found.append((theory, squares.mean(), squares.std() / np.sqrt(len(squares))))
        theory, measured, error = np.array(found).T
        rows = [
            statistical(f"variance of the variance, width {n}", *row)
            for n, *row in zip(widths, theory, measured, error, strict=True)
        ]
        return Result(tuple(rows), {"width": widths, "theory": theory, "measured": measured, "sem": error})

    figure = Figure("width", "variance of a neuron's variance", log="xy")
    figure.pair()
