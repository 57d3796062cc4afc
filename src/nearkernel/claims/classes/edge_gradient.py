"""In which directions the whole gradient lies, by the learning rate."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._digits import digits, trained
from .._drawing import BLUE, Figure


class EdgeGradient(Claim):
    """The whole gradient lies in the span of the top eigenvectors only where the learning rate exceeds 2/sharpness."""

    source = "graduate course: Hessians of classifiers"
    formula = (
        "|V^T g|^2/|g|^2 for the C steepest directions V: near 1 once lr sharpness is 2, small for small lr"
    )

    points: int = setting(96, "Images of three digits.", low=48, high=300, quick=60)
    time: float = setting(
        10.0, "Training time: steps times lr times the sharpness at initialization.", low=5.0, high=100.0
    )

    def run(self, seed: int) -> Result:
        import jax

        x, own = digits(3, self.points)
        y = np.eye(3)[own]
        net = nk.MLP(64, (24,), 3, "tanh", weight_var=1.0, parametrization="standard")
        start = net.init(jax.random.key(seed))
        top = nk.geometry.sharpness(net, start, x, y)
        ratios = np.array([0.05, 0.3, 1.0, 1.6, 2.5])
        found, ends = [], []
        for ratio in ratios:
            descent = nk.GradientDescent(float(ratio / top), round(self.time / float(ratio)))
            hessian = nk.geometry.Hessian(net, trained(net, start, x, y, descent, "squared"), x, y)
            pairs = nk.geometry.top_eigenpairs(hessian, 3)
            found.append(nk.theory.gradient_share(hessian, pairs.vectors))
            ends.append(ratio / top * pairs.values[0])
        shares, edges = np.array(found), np.array(ends)
        rows = (
            at_most("share of the gradient in 3 directions, lr sharpness = 0.05", 0.2, shares[0]),
            at_least("share of the gradient in 3 directions, lr sharpness = 2.5", 0.7, shares[-1]),
            at_least("share at 2.5 over that at 1", 2.0, shares[-1] / shares[2]),
        )
        return Result(rows, {"lr sharpness": ratios, "share": shares, "lr sharpness at the end": edges})

    figure = Figure(
        "lr sharpness at the end",
        "share of the gradient",
        xlabel="lr · sharpness at initialization",
        ylim=(0, 1.05),
    )
    figure.line("share", BLUE, label="share in 3 directions")
    figure.mark(2)
