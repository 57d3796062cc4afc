"""How many regions n neurons make of a plane."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting
from .._claim import generator
from .._drawing import Figure


class LinesInThePlane(Claim):
    """One layer of n relu neurons cuts the plane into 1 + n + n (n - 1)/2 linear regions, and 2 n without biases."""

    source = "graduate course: linear regions"
    formula = "hyperplanes in general position: sum_{k <= d} C(n, k);  through the origin in the plane: 2 n"

    neurons: int = setting(30, "Neurons, at most.", low=3, high=60, quick=20)

    def run(self, seed: int) -> Result:
        numbers = np.unique(np.linspace(2, self.neurons, 5).astype(int))
        counts = [_regions(int(n), generator(seed, str(n)))[0] for n in numbers]
        theory = np.array([nk.theory.zaslavsky(int(n), 2) for n in numbers])
        rows = [
            exact(f"regions of {n} neurons", t, c, 0.0)
            for n, t, c in zip(numbers, theory, counts, strict=True)
        ]
        central = _regions(self.neurons, generator(seed, "central"))[1]
        rows.append(
            exact(f"regions of {self.neurons} neurons without biases", 2 * self.neurons, central, 0.0)
        )
        return Result(tuple(rows), {"neurons": numbers, "theory": theory, "measured": np.array(counts)})

    figure = Figure("neurons", "linear regions of the plane")
    figure.pair()


def _regions(n: int, rng: np.random.Generator) -> tuple[int, int]:
    """Counted polygon by polygon in a square that holds every crossing, with biases and without."""
    net = nk.MLP(2, (n,), 1, "relu", parametrization="standard")
    w, b, readout = rng.normal(size=(2, n)), rng.normal(size=n), rng.normal(size=(n, 1))
    corners = [np.linalg.solve(w[:, [i, j]].T, -b[[i, j]]) for i in range(n) for j in range(i)]
    reach = 1.5 * np.abs(corners).max(initial=1.0) + 2 * np.max(np.abs(b) / np.linalg.norm(w, axis=0))
    square, found = ((-reach, reach),) * 2, []
    for bias in (b, np.zeros(n)):
        params = [{"weight": w, "bias": bias}, {"weight": readout, "bias": np.zeros(1)}]
        found.append(nk.geometry.regions(net, params, square).count)
    return found[0], found[1]
