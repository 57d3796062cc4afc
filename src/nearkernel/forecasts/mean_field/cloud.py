"""Clouds: the neurons of an infinitely wide layer as a rule of weighted points.

A field is one number per neuron, an average over the layer is a weighted sum. Three clouds differ in where independent
Gaussian fields come from: scrambled Sobol points in pairs (a rule for the limit), plain random numbers (a cloud of M
neurons is then a layer of width M), and unit vectors (exact, if all fields are linear in the Gaussians).
"""

import abc

import numpy as np
import scipy  # whose part `stats` takes half a second to import, and comes when it is used
import scipy.special

_ALTERNATIONS = 3  # between two spaces that a new field is made orthogonal to


class OutOfDirections(Exception):
    """A cloud has too few neurons for what it was asked."""


class AbstractCloud(abc.ABC):
    """`size` neurons with `weights` (M,); fields are rows of arrays (k, M)."""

    weights: np.ndarray
    dtype: np.dtype
    most: int  # directions that a matrix beside this cloud may have

    @property
    def size(self) -> int:
        return len(self.weights)

    def inner(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Averages of products of fields, (k1, k2); put the shorter stack first."""
        return ((one * self.weights) @ other.T).astype(np.float64)

    @abc.abstractmethod
    def fresh(self, count: int, odd: bool, known: np.ndarray | None = None) -> np.ndarray:
        """`count` new fields of unit Gaussians, orthogonal to the orthonormal fields `known`.

        `odd` ones, which come backward, change sign between the two neurons of a pair.
        """

    def without(self, fields: np.ndarray, known: np.ndarray | None) -> np.ndarray:
        """What `fields` have outside of the orthonormal `known`."""
        if known is None or not len(known):
            return fields
        for _ in range(2):  # the second time for what rounding left
            fields = fields - self.inner(fields, known).astype(self.dtype) @ known
        return fields


class PairedCloud(AbstractCloud):
    """Neurons in pairs that differ in the sign of odd fields: what vanishes in a lazy network vanishes exactly.

    **Arguments:** `even` (k, M/2) and `odd` (k, M/2), the first fields, e.g. of `sobol_normals`; `weights` (M/2,);
    `rng`, for those that are needed later.
    """

    def __init__(
        self,
        even: np.ndarray,
        odd: np.ndarray,
        weights: np.ndarray,
        rng: np.random.Generator,
        dtype: np.dtype = np.dtype(np.float64),
    ):
        self.dtype, self._rng = dtype, rng
        self.weights = np.tile(0.5 * weights / weights.sum(), 2).astype(dtype)
        self.most = self.size // 4
        self._prepared = {False: even, True: odd}
        self._drawn = Stack(self.size, dtype)

    def fresh(self, count: int, odd: bool, known: np.ndarray | None = None) -> np.ndarray:
        waiting = self._prepared[odd]
        half, self._prepared[odd] = waiting[:count], waiting[count:]
        drawn = self._rng.standard_normal((count - len(half), self.size // 2))
        half = np.concatenate([half, drawn])
        fields = np.concatenate([half, -half if odd else half], axis=1).astype(self.dtype)
        if len(drawn):  # those prepared are white as they are
            for _ in range(_ALTERNATIONS):
                fields = self.without(self.without(fields, self._drawn.array), known)
            fields = whitened(fields, self.inner(fields, fields))
        self._drawn.append(fields)
        return fields


class PlainCloud(AbstractCloud):
    """Independent neurons, as many as a layer is wide: equal in law to that layer of a drawn network."""

    def __init__(self, size: int, rng: np.random.Generator, dtype: np.dtype = np.dtype(np.float64)):
        self.dtype, self._rng, self.most = dtype, rng, size
        self.weights = np.full(size, 1.0 / size, dtype)

    def fresh(self, count: int, odd: bool, known: np.ndarray | None = None) -> np.ndarray:
        return self.without(self._rng.standard_normal((count, self.size)).astype(self.dtype), known)


class CoordinateCloud(AbstractCloud):
    """Fields are linear in independent Gaussians and held by their coefficients: averages are exact."""

    def __init__(self, size: int):
        self.dtype, self.most = np.dtype(np.float64), size
        self.weights = np.ones(size)
        self._used = 0

    def fresh(self, count: int, odd: bool, known: np.ndarray | None = None) -> np.ndarray:
        first, self._used = self._used, self._used + count
        if self._used > self.size:
            raise OutOfDirections
        fields = np.zeros((count, self.size))
        fields[np.arange(count), first + np.arange(count)] = 1.0
        return fields


def sobol_normals(
    even: int, odd: int, points: int, seed: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Scrambled Sobol points through the inverse normal: (even, points) and (odd, points), white among themselves.

    The first ones of both are the most evenly spread.
    """
    order = np.argsort(np.concatenate([np.arange(even), np.arange(odd) + 0.5]), kind="stable")
    uniform = scipy.stats.qmc.Sobol(even + odd, rng=seed).random(points)
    normal = scipy.special.ndtri(0.5 + (1.0 - 1e-10) * (uniform - 0.5))
    fields = np.empty((even + odd, points))
    fields[order] = normal.T
    fields[:even] -= fields[:even].mean(axis=1, keepdims=True)
    return tuple(  # type: ignore[return-value]
        whitened(part, part @ part.T / points) for part in (fields[:even], fields[even:])
    )


def whitened(fields: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """The nearest fields with unit second moments."""
    lam, vectors = np.linalg.eigh(gram)
    if len(lam) and lam[0] < 1e-6 * lam[-1]:
        raise OutOfDirections
    return ((vectors / np.sqrt(lam)) @ vectors.T).astype(fields.dtype) @ fields


class Stack:
    """Rows that are appended now and then, in one array."""

    def __init__(self, columns: int, dtype: np.dtype):
        self._rows = np.empty((16, columns), dtype)
        self._count = 0

    @property
    def array(self) -> np.ndarray:
        return self._rows[: self._count]

    def append(self, rows: np.ndarray) -> None:
        count = self._count + len(rows)
        if count > len(self._rows):
            grown = np.empty((max(count, 2 * len(self._rows)), self._rows.shape[1]), self._rows.dtype)
            grown[: self._count] = self.array
            self._rows = grown
        self._rows[self._count : count] = rows
        self._count = count
