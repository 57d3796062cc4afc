"""From a small start, sparse weights, slowly."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, at_most, exact, refuted, setting
from .._claim import generator
from .._drawing import BLUE, GREEN, Figure


class SparseLimit(Claim):
    """The potential of a diagonal network over ln(1/alpha^2) tends to the L1 norm as alpha falls, but slowly."""

    source = "graduate course: implicit bias, diagonal networks"
    formula = "Q(beta)/ln(1/alpha^2) -> |beta|_1 as alpha -> 0;   alpha^2 Q -> |beta|^2/4 as alpha -> inf"
    erratum = Erratum(
        "graduate course, line 1538",
        "Q itself tends to the L1 norm",
        "it tends to some multiple of the L1 norm, as line 1540 prints a factor for the other limit",
        "growth of Q over the L1 norm from 1e-8 to 1e-16, if it had a limit",
    )

    dim: int = setting(16, "Weights, twice as many as points.", low=8, high=40)

    def run(self, seed: int) -> Result:
        from scipy.optimize import linprog

        rng = generator(seed, "data")
        x = rng.normal(size=(self.dim // 2, self.dim))
        y = rng.normal(size=self.dim // 2)
        split = linprog(np.ones(2 * self.dim), A_eq=np.hstack([x, -x]), b_eq=y, bounds=(0, None)).x
        sparse = split[: self.dim] - split[self.dim :]
        alphas = np.array([1e-2, 1e-4, 1e-8, 1e-16])
        away, ratio, plain = [], [], []
        for alpha in alphas:
            beta = nk.theory.implicit_minimizer(x, y, alpha)
            potential, size = nk.theory.implicit_potential(beta, alpha), np.abs(beta).sum()
            away.append(np.abs(beta - sparse).max())
            ratio.append(potential / np.log(alpha**-2) / size)
            plain.append(potential / size)
        missing = (1 - np.array(ratio)) * np.log(1 / alphas)
        least, large = np.linalg.lstsq(x, y, rcond=None)[0], 1e3
        wide = nk.theory.implicit_minimizer(x, y, large)
        share = 4 * large**2 * nk.theory.implicit_potential(wide, large) / (wide @ wide)
        rows = (
            at_most("distance from the sparsest weights, alpha = 1e-16", 0.01, away[-1]),
            exact(
                "missing share times ln(1/alpha), last over last but one",
                1.0,
                missing[-1] / missing[-2],
                0.05,
            ),
            refuted("Q over the L1 norm at 1e-16, as in line 1538", 1.0, plain[-1], tolerance=0.5),
            refuted(
                "growth of Q over the L1 norm from 1e-8 to 1e-16, if it had a limit",
                1.0,
                plain[-1] / plain[-2],
                tolerance=0.5,
            ),
            exact("4 alpha^2 Q over the squared L2 norm, alpha = 1000", 1.0, share, 1e-6),
            at_most("distance from least squares, alpha = 1000", 1e-5, np.abs(wide - least).max()),
        )
        return Result(rows, {"alpha": alphas, "Q/ln/L1": np.array(ratio), "distance": np.array(away)})

    figure = Figure("alpha", xlabel="scale α of the initialization", log="x", ylim=(0, None))
    figure.line("Q/ln/L1", BLUE, label="Q / (ln(1/α²) |β|₁)")
    figure.line("distance", GREEN, "s-", "distance from the sparsest weights")
    figure.level(1)
