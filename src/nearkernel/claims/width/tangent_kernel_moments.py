"""How much the tangent kernel of a relu network varies from draw to draw."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting, statistical, unlike
from .._drawing import ORANGE, Figure
from .._drawn import drawn


class TangentKernelMoments(Claim):
    """The second moment of a relu network's tangent kernel is known at any width, and exp(5 beta) up to constants."""

    source = "graduate course: path counting and the tangent kernel"
    formula = (
        "E[Theta^2] by a recursion over layers;  for L/n = tau: 1 + 11/3 tau + ..., e^(5 tau)/3 for large tau"
    )

    depth: int = setting(3, "Hidden layers.", low=1, high=6)
    networks: int = setting(100_000, "Networks drawn at each width.", low=2000, high=1_000_000, quick=20_000)

    def run(self, seed: int) -> Result:
        widths, x = np.array([6, 12, 24]), np.ones((1, 2))
        found = []
        for n in widths:
            net = nk.MLP(2, (int(n),) * self.depth, 1, "relu", weight_var=2.0)
            law = nk.theory.relu_ntk(net, x)
            theta = drawn(net, x, self.networks, [seed, n], lambda nets: nets.kernel[:, 0, 0, 0, 0])
            ratio = theta**2 / law.mean[0, 0] ** 2
            found.append(
                (law.ratio, ratio.mean(), ratio.std() / np.sqrt(len(ratio)), np.exp(5 * self.depth / n))
            )
        theory, measured, error, grown = np.array(found).T
        rows = [
            statistical(f"E[Theta^2] / E[Theta]^2, width {n}", *row)
            for n, *row in zip(widths, theory, measured, error, strict=True)
        ]
        share = measured / grown
        rows += [
            at_most("largest share of exp(5 beta)", 1.0, share.max()),
            at_least("smallest share of exp(5 beta)", 0.25, share.min()),
            unlike("the same at width 12, if it were exp(5 beta)", grown[1], measured[1], sem=error[1]),
        ]
        data = {"width": widths, "theory": theory, "measured": measured, "sem": error, "exp(5 beta)": grown}
        return Result(tuple(rows), data)

    figure = Figure("width", "E[Theta²] / E[Theta]²", log="y")
    figure.pair()
    figure.line("exp(5 beta)", ORANGE, "x--")
