"""Concentration of the kernel of many neurons."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, Row, at_least, at_most, refuted, setting
from .._claim import generator, sem
from .._drawing import GREEN, Figure
from .._drawn import drawn

DIMENSION, TERMS, LEVEL, TRIALS = 1000, 200, 4.2, 4000


class BernsteinBound(Claim):
    """The kernel of n neurons is within the matrix Bernstein bound of its mean, which falls like n^(-1/2)."""

    source = "graduate course: concentration of the tangent kernel"
    formula = "P(|G - E G| > t) < 2 m exp(-t^2 / (2 U + 2 L t/3)) for m inputs"

    erratum = Erratum(
        "graduate course, line 767",
        "the bound exp(-t^2/(U + L t/3)) for matrices of any dimension m, without a factor m",
        "up to the constants in the exponent; with those of Bernstein's inequality, 2 U + 2 L t/3, it still fails",
        "chance that a diagonal leaves, without 2 m, constants put right",
    )

    points: int = setting(10, "Inputs, the dimension of the matrices.", low=2, high=40)
    networks: int = setting(1000, "Networks drawn at each width.", low=100, high=10_000, quick=200)

    def run(self, seed: int) -> Result:
        widths, x = np.array([64, 256, 1024]), generator(seed, "inputs").normal(size=(self.points, 4))
        rows, found = [], []
        for n in widths:
            net = nk.MLP(4, (int(n),), 1, "tanh", weight_var=1.5, bias_var=0.1)
            law = nk.theory.concentration(net, x, probability=0.05)

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
        rows += _diagonal(seed)
        return Result(tuple(rows), {"width": widths, "bound": bound, "measured": measured, "sem": error})

    figure = Figure("width", "distance of the kernel from its mean", log="xy")
    figure.line("bound", GREEN, "--", "bound on the mean distance")
    figure.bars("measured", "sem", style="o-")


def _diagonal(seed: int) -> list[Row]:
    """Sums of n diagonal matrices of random signs over sqrt(n): U = 1, L = 1/sqrt(n), and m chances to leave."""
    heads = generator(seed, "signs").binomial(TERMS, 0.5, size=(TRIALS, DIMENSION))
    left = np.abs(2 * heads - TERMS).max(axis=1) > LEVEL * np.sqrt(TERMS)
    third = LEVEL / np.sqrt(TERMS) / 3
    bernstein, printed = np.exp(-(LEVEL**2) / (2 + 2 * third)), np.exp(-(LEVEL**2) / (1 + third))
    name, chance, error = "chance that a diagonal leaves", left.mean(), sem(left)
    return [
        at_most(f"{name}, with the factor 2 m", 2 * DIMENSION * bernstein, chance),
        refuted(f"{name}, as in line 767", printed, chance, sem=error),
        refuted(
            "chance that a diagonal leaves, without 2 m, constants put right", bernstein, chance, sem=error
        ),
    ]
