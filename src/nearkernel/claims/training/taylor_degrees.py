"""A trained network as a Taylor series around its start."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._drawing import ORANGE, Figure


class TaylorDegrees(Claim):
    """A trained network is its Taylor series in the parameters: each degree is closer, and the next term tells
    how far."""

    source = "talk on the principles of deep learning theory: trained networks as a distribution"
    formula = "z(theta*) = sum_k 1/k! d^k z (theta* - theta_0)^k; degree k leaves about the term k + 1"

    width: int = setting(400, "Neurons of the hidden layer.", low=100, high=2000)
    steps: int = setting(400, "Steps of gradient descent.", low=50, high=5000, quick=200)

    def run(self, seed: int) -> Result:
        import jax

        rng = generator(seed, "data")
        x, new = rng.normal(size=(12, 3)), rng.normal(size=(40, 3))
        net = nk.MLP(3, (self.width,), 1, "tanh", weight_var=1.5)
        start = net.init(jax.random.key(seed))
        y = np.asarray(net(start, x))[:, 0] + 0.3 * np.sin(2 * x[:, 0])  # a change that the series can follow
        lr = 1.0 / np.linalg.eigvalsh(np.asarray(nk.kernels.NTK(net)(x)))[-1]
        end = nk.simulate(
            net, start, x, y, nk.GradientDescent(lr, self.steps), nk.Record(every=self.steps)
        ).params
        series = nk.expand(net, start, 5)
        terms = np.array([np.asarray(term)[:, 0] for term in series.terms(end, new)])
        truth = np.asarray(net(end, new))[:, 0]
        left = np.sqrt(np.mean((np.cumsum(terms, axis=0) - truth) ** 2, axis=1))[:5]
        following = np.sqrt(np.mean(terms**2, axis=1))[1:]
        ratio = following / left
        rows = (
            at_most(
                "error of one degree more over that of a degree, at the most",
                0.7,
                np.max(left[1:] / left[:-1]),
            ),
            at_least("next term over the error, at the least", 0.6, ratio.min()),
            at_most("next term over the error, at the most", 1.6, ratio.max()),
            at_most("error of degree 4 over the size of the outputs", 1e-3, left[4] / truth.std()),
        )
        return Result(rows, {"degree": np.arange(5), "error": left, "next term": following})

    figure = Figure("degree", "root mean square", log="y")
    figure.line("error")
    figure.line("next term", ORANGE, "x--")
