"""The Hilbert space of Brownian motion."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, exact, setting
from .._claim import generator
from .._drawing import BLUE, GRAY, ORANGE


class BrownianNorm(Claim):
    """In the space of the kernel min(s, t) the squared norm is the energy of the derivative."""

    source = "graduate course: kernels and RKHS, representer theorem"
    formula = (
        "|f|^2 = int f'(t)^2 dt,   minimizer of the norm through the data: sum_i a_i k(x_i, .), a = K^-1 y"
    )

    points: int = setting(5, "Points in (0, 1).", low=2, high=20)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        t, y = np.sort(rng.uniform(0.05, 0.95, self.points)), rng.normal(size=self.points)
        wiener = lambda x1, x2: np.minimum(x1, x2.T)
        f = nk.theory.representer(wiener, t[:, None], y)
        energy = np.sum(np.diff(y, prepend=0.0) ** 2 / np.diff(t, prepend=0.0))
        grid = np.linspace(0, 1, 101)
        # Another function through the same points: the polygon through one more, off the line.
        extra = np.append(t, 0.99)
        other = nk.theory.representer(wiener, extra[:, None], np.append(y, y[-1] + 1.0))
        polygon = np.interp(grid, np.append(0.0, t), np.append(0.0, y))
        found = np.asarray(f(grid[:, None]))
        worst = np.argmax(np.abs(found - polygon))
        rows = (
            exact("squared norm", energy, f.norm() ** 2, 1e-8),
            exact(
                "1 + value where polygon and minimizer differ most",
                1 + polygon[worst],
                1 + found[worst],
                1e-8,
            ),
            at_most("its norm, against another function's", other.norm(), f.norm()),
        )
        curves = {"theory": polygon, "measured": found, "other": np.asarray(other(grid[:, None]))}
        return Result(rows, {"t": grid, **curves})

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["t"], data["theory"], color=BLUE, label="polygon")
        axes.plot(
            data["t"][::4], data["measured"][::4], "o", mfc="white", color=BLUE, label="minimizer of the norm"
        )
        axes.plot(data["t"], data["other"], ":", color=ORANGE, label="another through the data")
        axes.axhline(0, color=GRAY, lw=0.8)
        axes.set(xlabel="t", ylabel="f(t)")
