"""How many points one gradient step needs, and how many a kernel, as the dimension grows."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, Row, at_least, at_most, setting, statistical
from .._claim import generator, sem
from .._drawing import BLUE, GREEN, ORANGE, loglog

_SCALE = {2: 2.0, 4: 0.8}  # points at which half is learned, over d^k, roughly


class SampleExponents(Claim):
    """One gradient step isolates the derivative of degree k of its target with d^k points; kernels need d^p to fit."""

    source = "feature learning against kernels: one gradient step"
    formula = "n ~ d^k for the term C_k(w, ..., w) of the first gradient, k even;   n ~ d^p for kernels"

    trials: int = setting(24, "Data sets for each number of points.", low=6, high=200, quick=8)
    largest: int = setting(
        48, "Largest number of inputs d for k = 2; 14 for k = 4.", low=24, high=96, quick=32
    )

    def run(self, seed: int) -> Result:
        columns: dict[str, np.ndarray] = {}
        rows: list[Row] = []
        for k, dims in ((2, np.geomspace(8, self.largest, 4).astype(int)), (4, np.array([6, 8, 11, 14]))):
            points = np.array([self._half(seed, k, int(d)) for d in dims])  # (dims, trials)
            power, error = _power(dims, points)
            rows.append(statistical(f"power of d of the points, degree {k}", k, power, error, 0.1))
            rows.append(at_least(f"the same, beside d^(p/2) of queries, p = {k}", k / 2, power, error))
            columns |= {
                f"d, k = {k}": dims.astype(float),
                f"points, k = {k}": np.exp(np.log(points).mean(axis=1)),
            }
        rng = generator(seed, "odd")
        shares = np.array([[self._share(rng, 3, 8, n) for n in (1000, 16_000)] for _ in range(self.trials)])
        growth = (
            shares[:, 1] / shares[:, 0]
        )  # odd degrees do not reach a neuron without bias: only noise is left
        rows.append(
            at_most(
                "growth of the share of degree 3 by 16 times the points", 1.25, growth.mean(), sem(growth)
            )
        )
        dims = np.array([8, 12, 18, 26])
        points = np.array([self._kernel(seed, int(d)) for d in dims])
        power, error = _power(dims, points)
        size = np.polyfit(np.log(dims), np.log(dims * (dims + 3) / 2), 1)[0]
        rows.append(
            statistical(
                "power of d of a kernel's points, p = 2, and of quadratic forms", size, power, error, 0.15
            )
        )
        columns |= {"d, kernel": dims.astype(float), "points, kernel": np.exp(np.log(points).mean(axis=1))}
        return Result(tuple(rows), columns)

    def _share(self, rng: np.random.Generator, k: int, d: int, n: int) -> float:
        """Of |W|^2 in the one direction that matters."""
        target = nk.theory.MultiIndexPolynomial(np.eye(1, d), {(k,): 1.0})
        x = rng.normal(size=(n, d))
        return nk.theory.one_step_features(x, target(x), 60, int(rng.integers(2**31))).share_in(np.eye(1, d))

    def _half(self, seed: int, k: int, d: int) -> list[float]:
        """Points at which the share crosses 1/2, by interpolation, for every trial."""
        rng, sizes = generator(seed, f"degree {k}, {d}"), _SCALE[k] * d**k * np.geomspace(0.25, 4, 5)
        return [
            _crossing(sizes, [self._share(rng, k, d, int(n)) for n in sizes], 0.5) for _ in range(self.trials)
        ]

    def _kernel(self, seed: int, d: int) -> list[float]:
        """Points at which kernel regression explains half of a quadratic form."""
        rng, found = generator(seed, f"kernel {d}"), []
        target = nk.theory.MultiIndexPolynomial(np.eye(1, d), {(2,): 1.0})
        kernel = nk.kernels.Polynomial(degree=2)
        sizes, new = d * d * np.geomspace(0.1, 1.0, 5), rng.normal(size=(400, d))
        truth = target(new)
        for _ in range(max(4, self.trials // 4)):
            x = rng.normal(size=(int(sizes[-1]), d))
            y, gram, cross = target(x), kernel(x, x), kernel(new, x)
            explained = []
            for n in sizes.astype(int):
                fit = np.linalg.solve(gram[:n, :n] + 1e-6 * np.trace(gram) / len(x) * np.eye(n), y[:n])
                explained.append(1 - np.mean((cross[:, :n] @ fit - truth) ** 2) / np.mean(truth**2))
            found.append(_crossing(sizes, explained, 0.5))
        return found

    def draw(self, axes, result):
        data = result.data
        for name, color in (("k = 2", BLUE), ("k = 4", ORANGE), ("kernel", GREEN)):
            axes.plot(data[f"d, {name}"], data[f"points, {name}"], "o-", color=color, label=name)
        loglog(axes)
        axes.set(xlabel="inputs d", ylabel="points until half is found")


def _crossing(sizes: np.ndarray, values: list[float], level: float) -> float:
    """Where values, made monotone, cross the level; at an end if they do not."""
    rising = np.maximum.accumulate(values) + 1e-12 * np.arange(len(values))
    return float(np.exp(np.interp(level, rising, np.log(sizes))))


def _power(dims: np.ndarray, points: np.ndarray) -> tuple[float, float]:
    """The power of d, with its standard error over trials, each of which is fitted by itself."""
    fits = np.polyfit(np.log(dims), np.log(points), 1)[0]
    return float(fits.mean()), float(fits.std(ddof=1) / np.sqrt(len(fits)))
