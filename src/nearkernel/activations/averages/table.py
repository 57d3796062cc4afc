r"""E[f(u) f(v)] of any functions at any variances and correlation, from a table that is made once.

A function that bends within a few units, seen by a Gaussian that is much wider, has a Hermite series of as many terms
as its variance, and integrals pair by pair take milliseconds each. But the average is analytic in both variances and in
the angle, on logarithmic scales: few Chebyshev polynomials hold all of it. With $f_q(z) = f(\sqrt q z)$ and the average
$T_c$ over $\mathcal{N}(c z, 1 - c^2)$,

$$\mathbb{E}[f(u) f(v)] = \int f_{q_1}(z)\, (T_c f_{q_2})(z)\, \phi(z)\, dz :$$

at a node of the angle, $T_c$ is one matrix, whatever the function and its variances. Kinks move with the variance, and
are not smooth in it: their part is known in closed form, and the table holds the rest.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .grid import Grid
from .jumps import Jumps, averages
from .panels import resolved

_BEND = 0.3  # deviations below which a function is nearly its Taylor series
_RESOLVED = 1e-10  # error of polynomials on a panel; that of integrals is its square
_TAIL = 1e-12  # of the last coefficients, relative to the largest possible average
_MOST_VARIANCES, _MOST_ANGLES = 256, 200
_KINKED = 3e3  # by which all of these are larger where there are kinks


class Span:
    """A range of variances. All are equal to each other: compiled programs do not depend on it."""

    def __init__(self, low: float, high: float):
        self.low, self.high = low, high

    @classmethod
    def around(cls, low: float, high: float) -> "Span":
        """To the next powers of 2, so that few tables serve many data."""
        return cls(float(2.0 ** np.floor(np.log2(0.95 * low))), float(2.0 ** np.ceil(np.log2(1.05 * high))))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span)

    def __hash__(self) -> int:
        return 0


class Scale(NamedTuple):
    """x = bend sinh(t), t in [low, high], and Chebyshev polynomials of t: x is logarithmic beyond `bend`."""

    bend: float
    low: float
    high: float

    @classmethod
    def between(cls, bend: float, low: float, high: float) -> "Scale":
        ends = np.arcsinh(np.array([low, high]) / bend)
        return cls(bend, float(ends[0]), float(max(ends[1], ends[0] + 1e-6)))

    def terms(self) -> int:
        """Polynomials that functions with singularities at imaginary x need for all digits."""
        return int(np.ceil(25.0 / np.arcsinh(np.pi / (self.high - self.low)))) + 4

    def nodes(self, count: int) -> np.ndarray:
        return self.bend * np.sinh(self._middle() + self._half() * np.cos(_angles(count)))

    def place(self, x: np.ndarray) -> np.ndarray:
        """x as an argument of polynomials, in [-1, 1]."""
        return np.clip((np.arcsinh(x / self.bend) - self._middle()) / self._half(), -1.0, 1.0)

    def _middle(self) -> float:
        return 0.5 * (self.low + self.high)

    def _half(self) -> float:
        return 0.5 * (self.high - self.low)


def _angles(count: int) -> np.ndarray:
    return np.pi * (np.arange(count) + 0.5) / count


def _to_series(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Coefficients of Chebyshev polynomials from values at their nodes."""
    count = values.shape[axis]
    matrix = np.cos(np.outer(np.arange(count), _angles(count))) * (2.0 / count)
    matrix[0] *= 0.5
    return np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)


class _Part(NamedTuple):
    """The even or the odd part of a function: `basis` (variances, rank) and `cores` (angles, rank, rank)."""

    basis: np.ndarray
    cores: np.ndarray


class _Sampled:
    """A function at nodes and variances, relative to its root mean square, even and odd part (2, variances, nodes)."""

    def __init__(self, function: Callable, jumps: Jumps, grid: Grid, root: np.ndarray):
        self.smooth = _parts(lambda x: function(x) - jumps(x), root[:, None] * grid.nodes)
        self.weighted, self.kinked = self.smooth * grid.weights, np.zeros_like(self.smooth)
        own = np.zeros(len(root))
        if len(jumps.kinks):
            self.kinked = _projected(jumps, grid, root)
            (own,) = averages([jumps], root**2, root**2, np.zeros(len(root)))
        square = (self.smooth * (self.weighted + 2 * self.kinked)).sum(axis=(0, 2)) + own
        for part in (self.smooth, self.weighted, self.kinked):
            part /= np.sqrt(square)[:, None]

    def core(self, part: int, averaging: np.ndarray | None) -> np.ndarray:
        """Averages of every two variances, less those of two jumps; without a matrix at correlation 1."""
        smooth, kinked = self.smooth[part], self.kinked[part]
        smoothed = smooth if averaging is None else smooth @ averaging.T
        return (self.weighted[part] + kinked) @ smoothed.T + smoothed @ kinked.T


def _parts(function: Callable, at: np.ndarray) -> np.ndarray:
    right, left = function(at), function(-at)
    return 0.5 * np.stack([right + left, right - left])


def _projected(jumps: Jumps, grid: Grid, root: np.ndarray) -> np.ndarray:
    """Weights of values of smooth functions at nodes, that integrate them times the jumps: panels end at kinks, too."""
    parts = lambda r: lambda z: _parts(jumps.__call__, r * z)
    return np.stack([grid.projected(parts(r), np.abs(jumps.kinks) / r) for r in root], 1)


class Table:
    """Averages of some `functions` with the same `kinks`, for variances in [low, high].

    `converged`: whether it reaches its accuracy, about 1e-12 of the mean squares, and 1e-8 where there are kinks.
    """

    def __init__(self, functions: Sequence[Callable], kinks: np.ndarray, low: float, high: float):
        self.converged = False
        self.jumps = [Jumps.of(function, kinks) for function in functions]
        self.slack = _KINKED if len(kinks) else 1.0
        root = float(np.sqrt(high))
        self.scale = Scale.between(_BEND, float(np.sqrt(low)), root)
        self.angles = Scale.between(1.0 / np.hypot(1.0, root), 0.0, 0.5 * np.pi)
        smooth = [lambda x, f=f, j=j: f(x) - j(x) for f, j in zip(functions, self.jumps, strict=True)]
        panels = _sufficient(smooth, 14.0 * root, _RESOLVED * self.slack)
        if panels is not None:
            self._build(functions, Grid.of(min(panels[0] / root, 1.0), panels[1]))

    def _build(self, functions: Sequence[Callable], grid: Grid) -> None:
        count = self.scale.terms()
        while True:
            made = zip(functions, self.jumps, strict=True)
            sampled = [_Sampled(*each, grid, self.scale.nodes(count)) for each in made]
            if all(self._ends(_to_series(each.core(k, None))) for each in sampled for k in range(2)):
                break
            count = count * 3 // 2
            if count > _MOST_VARIANCES:
                return
        count = self.angles.terms()
        while count <= _MOST_ANGLES:
            matrices = map(grid.averaging, self.angles.nodes(count))
            cores = np.array(
                [[[s.core(k, m) for k, m in enumerate(both)] for s in sampled] for both in matrices]
            )
            cores = _to_series(cores)
            if self._ends(cores):
                cores = _to_series(_to_series(cores, -1), -2)
                self.parts = [[_compressed(cores[:, i, k]) for k in range(2)] for i in range(len(functions))]
                self.converged = True
                return
            count = count * 3 // 2

    def _ends(self, series: np.ndarray) -> bool:
        return bool(np.isfinite(series).all()) and np.abs(series[-3:]).max() <= _TAIL * self.slack

    def averages(
        self, q1: np.ndarray, q2: np.ndarray, gap: np.ndarray, norms: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """E[f(u) f(v)] of each function over `norms`, the roots of E[f(u)^2] E[f(v)^2].

        For `gap` (n1, n2), `q1` (n1, 1) and `q2` (1, n2), or for flat arrays, elementwise.
        """
        folded = np.maximum(np.minimum(gap, 2.0 - gap), 0.0)
        place = self.angles.place(2.0 * np.arcsin(np.sqrt(0.5 * folded)))
        known = averages(self.jumps, q1, q2, gap) if len(self.jumps[0].kinks) else [0.0] * len(norms)
        at1, at2 = (np.arccos(self.scale.place(np.sqrt(q.ravel())))[:, None] for q in (q1, q2))
        rows = []
        for parts, closed, norm in zip(self.parts, known, norms, strict=True):
            even, odd = (_sum(part, at1, at2, place) for part in parts)
            rows.append(even + np.where(gap <= 1.0, odd, -odd) + closed / norm)
        return rows


def _compressed(cores: np.ndarray) -> _Part:
    """Of series (angles, variances, variances), in as few combinations of variances as hold them."""
    left, size, _ = np.linalg.svd(np.moveaxis(cores, 0, 1).reshape(cores.shape[1], -1), full_matrices=False)
    basis = left[:, size > 0.1 * _TAIL]
    return _Part(basis, basis.T @ cores @ basis)


def _sum(part: _Part, at1: np.ndarray, at2: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Clenshaw's summation over polynomials of the angle, each with a separate matrix."""
    if not part.basis.shape[1]:
        return np.zeros_like(place)
    side1, side2 = (np.cos(at * np.arange(len(part.basis))) @ part.basis for at in (at1, at2))

    def of_pairs(core: np.ndarray) -> np.ndarray:
        left = side1 @ core
        return left @ side2.T if place.ndim == 2 else np.einsum("ij,ij->i", left, side2)

    twice, later, last = 2.0 * place, np.zeros_like(place), np.zeros_like(place)
    for core in part.cores[:0:-1]:
        later, last = last, of_pairs(core) + twice * last - later
    return of_pairs(part.cores[0]) + place * last - later


def _sufficient(functions: Sequence[Callable], reach: float, error: float) -> tuple[float, float] | None:
    """End of the first panel, in units of the functions, and ratio of the others, that resolve them anywhere."""
    floors = [float(np.abs(function(np.linspace(-1.0, 1.0, 101))).max()) for function in functions]

    def fine(a: np.ndarray, b: np.ndarray) -> bool:
        sides = [(a, b), (-b, -a)]
        return all(
            resolved(f, *side, floor, error).all()
            for f, floor in zip(functions, floors, strict=True)
            for side in sides
        )

    for ratio in (2.0, 2.0**0.5, 2.0**0.25):
        starts = np.geomspace(1e-3, reach, 4 * int(np.ceil(np.log(1e3 * reach) / np.log(ratio))))
        if fine(starts, ratio * starts):
            units = [unit for unit in 0.5 ** np.arange(12) if fine(np.zeros(1), np.full(1, unit))]
            return (float(units[0]), ratio) if units else None
    return None
