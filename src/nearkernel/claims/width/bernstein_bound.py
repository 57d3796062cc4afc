"""Concentration of the kernel of many neurons."""

import dataclasses

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator, sem
from .._drawing import BLUE, GREEN, loglog
from .._drawn import drawn


@dataclasses.dataclass(frozen=True)
class BernsteinBound(Claim):
    """The kernel of n neurons is within the matrix Bernstein bound of its mean, which falls like n^(-1/2)."""

    source = "graduate course: concentration of the tangent kernel"
    formula = "P(|G - E G| > t) < 2 m exp(-t^2 / (2 U + 2 L t/3)) for m inputs"

    points: int = setting(10, "Inputs, the dimension of the matrices.", low=2, high=40)
    networks: int = setting(1000, "Networks drawn at each width.", low=100, high=10_000, quick=200)

    def run(self, seed: int) -> Result:
        widths, x = np.array([64, 256, 1024]), generator(seed, "inputs").normal(size=(self.points, 4))
        rows, found = [], []
        for n in widths:
            net = nk.MLP(4, (int(n),), 1, "tanh", weight_var=1.5, bias_var=0.1)
            law = nk.statistics.concentration(net, x, probability=0.05)

            def away(nets, mean=law.mean, n=n):
                s = np.tanh(nets.z[0])
                return np.abs(np.linalg.eigvalsh(1.5 * s @ s.swapaxes(1, 2) / n - mean)).max(axis=1)

            distance = drawn(net, x, self.networks, [seed, n], away)
            rows.append(
                at_most(f"chance to leave the bound, width {n}", 0.05, np.mean(distance > law.deviation))
            )
            rows.append(at_most(f"mean distance, width {n}", law.expected, distance.mean(), sem(distance)))
            found.append((law.expected, distance.mean(), sem(distance)))
        bound, measured, error = np.array(found).T
        rows.append(at_least("share of the bound that is reached", 0.1, np.min(measured / bound)))
        return Result(tuple(rows), {"width": widths, "bound": bound, "measured": measured, "sem": error})

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["width"], data["bound"], "--", color=GREEN, label="bound on the mean distance")
        axes.errorbar(data["width"], data["measured"], data["sem"], fmt="o-", color=BLUE, label="measured")
        loglog(axes)
        axes.set(xlabel="width", ylabel="distance of the kernel from its mean")
