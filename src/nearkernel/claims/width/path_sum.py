"""A relu network as a sum over paths."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import generator
from .._drawing import Figure


class PathSum(Claim):
    """The output of a relu network is the sum over all open paths of the input times the weights on the way."""

    source = "graduate course: path counting"
    formula = "z(x) = sum over paths gamma of x_gamma prod_l W_gamma(l) [all neurons of gamma are on]"

    inputs: int = setting(20, "Inputs at which both are compared.", low=2, high=200)

    def run(self, seed: int) -> Result:
        import jax

        net = nk.MLP(3, (4, 5, 3), 1, "relu", weight_var=2.0)
        params = net.init(jax.random.key(seed))
        x = generator(seed, "inputs").normal(size=(self.inputs, 3))
        with jax.enable_x64(True):
            outputs = np.asarray(net(params, x))[:, 0]
        paths = nk.theory.path_sum(net, params, x)[:, 0]
        worst = np.argmax(np.abs(paths - outputs))
        rows = (
            exact("output where both differ most", paths[worst], outputs[worst], 1e-9),
            exact("sum of squares over inputs", np.sum(paths**2), np.sum(outputs**2), 1e-10),
        )
        return Result(rows, {"theory": paths, "measured": outputs})

    figure = Figure("theory", "output of the network", xlabel="sum over 180 paths")
    figure.pair()
