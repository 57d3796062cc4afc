"""Several kernels, each with the ridge that leave-one-out prefers, and the average of them that it prefers, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.optimize

from ..._run.memory import rows_that_fit
from ..tables.views import Views
from .members import ALL, METRIC, Kernel, fitted_kernels, matrices
from .metric import learned_weights
from .ridge_path import Fit, Spectrum, by_centers, by_cholesky

ALL_ROWS = 600  # up to here, every kernel is fitted to all rows
SPECTRUM_ROWS = 2000  # up to here, every ridge
# Rows of a larger table on which kernels are chosen; beyond `SPECTRUM_ROWS`, ridges too.
_SHORTLIST_ROWS = 500, 800
_SHORTLIST = 4  # kernels that are kept
_LEAST_WEIGHT = 0.01

Term = tuple[Kernel, np.ndarray]  # a kernel and coefficients (centers, columns)


@dataclasses.dataclass
class Part:
    """One kernel of the average: its weight, its ridge and its coefficients (rows or centers, out)."""

    kernel: Kernel
    weight: float
    ridge: float
    coefficients: np.ndarray


class Blend:
    """An average of kernel machines. `centers` (k, d) are the rows that kernels compare new ones with."""

    parts: list[Part]

    def __init__(self, views: Views, centers: np.ndarray):
        self.views = views
        self.centers = centers
        self.parts = []

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """(m, out) at new rows (m, d)."""
        return self.outputs_and(x, ())[0]

    def outputs_and(self, x: np.ndarray, others: Sequence[Term]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Outputs (m, out), and what `others` give besides: no kernel is computed twice."""
        kernels = list({id(kernel): kernel for kernel in self._kernels(others)}.values())
        total = np.zeros((len(x), self.parts[0].coefficients.shape[1]))
        beside = [np.zeros((len(x), coefficients.shape[1])) for _, coefficients in others]
        chunk = rows_that_fit(6 * 8 * len(self.centers), 2**27)
        for at in range(0, len(x), chunk):
            rows = slice(at, at + chunk)
            for place, matrix in matrices(kernels, x[rows], self.centers):
                for part in self.parts:
                    if part.kernel is kernels[place]:
                        total[rows] += part.weight * (matrix @ part.coefficients)
                for found, (kernel, coefficients) in zip(beside, others, strict=True):
                    if kernel is kernels[place]:
                        found[rows] = matrix @ coefficients
        return total, beside

    def _kernels(self, others: Sequence[Term]) -> list[Kernel]:
        return [*(part.kernel for part in self.parts), *(kernel for kernel, _ in others)]

    @property
    def heaviest(self) -> Kernel:
        return max(self.parts, key=lambda part: part.weight).kernel

    @property
    def metric(self) -> np.ndarray | None:
        """Learned weights of the columns, if a kernel with them is in the average."""
        metrics = [part.kernel.weights for part in self.parts if part.kernel.weights is not None]
        return metrics[0] if metrics else None


@dataclasses.dataclass(frozen=True)
class Blended:
    """The average, what it says of each row without it (n, out), and which rows are its centers.

    `spectrum` is that of the heaviest kernel on the centers, where it was made.
    """

    blend: Blend
    left_out: np.ndarray
    centers: np.ndarray
    spectrum: Spectrum | None


def blended(
    x: np.ndarray,
    y: np.ndarray,
    metric: bool,
    shared: bool,
    most_exact: int,
    centers: int,
    random: np.random.RandomState,
) -> Blended:
    """The average for rows x (n, d) and targets y (n, out) of mean 0."""
    views, n = Views(x, shared), len(x)
    weights = learned_weights(views.plain(x), y, random) if metric else None
    kernels = fitted_kernels([*ALL, *([METRIC] if weights is not None else [])], views, x, weights)
    ridges: list[float] = []
    if n > ALL_ROWS:
        kernels, ridges = _shortlist(kernels, x, y, random)
    rows, spectra = np.arange(n), dict[int, Spectrum]()
    if n <= SPECTRUM_ROWS:
        spectra = {i: Spectrum(matrix) for i, matrix in matrices(kernels, x)}
        fitted = {i: spectrum.fit(y) for i, spectrum in spectra.items()}
    elif n <= most_exact:
        fitted = {i: by_cholesky(matrix, y, ridges[i]) for i, matrix in matrices(kernels, x)}
    else:
        rows = np.sort(random.permutation(n)[:centers])
        fitted = {i: _on_centers(kernel, x, x[rows], y) for i, kernel in enumerate(kernels)}
    fits = [fitted[i] for i in range(len(kernels))]
    blend = Blend(views, x[rows])
    shares = _shares([fit.left_out for fit in fits], y)
    blend.parts = [
        Part(kernel, float(share), fit.ridge, fit.coefficients)
        for kernel, fit, share in zip(kernels, fits, shares, strict=True)
        if share > 0
    ]
    left_out = sum(share * fit.left_out for fit, share in zip(fits, shares, strict=True))
    return Blended(blend, left_out, rows, spectra.get(int(np.argmax(shares))))


def _on_centers(kernel: Kernel, x: np.ndarray, centers: np.ndarray, y: np.ndarray) -> Fit:
    rows = np.empty((len(x), len(centers)), dtype=np.float32)
    chunk = rows_that_fit(4 * 8 * len(centers), 2**27)
    for at in range(0, len(x), chunk):
        for _, matrix in matrices([kernel], x[at : at + chunk], centers):
            rows[at : at + chunk] = matrix
    return by_centers(rows, next(matrices([kernel], centers))[1], y)


def _shortlist(
    kernels: Sequence[Kernel], x: np.ndarray, y: np.ndarray, random: np.random.RandomState
) -> tuple[list[Kernel], list[float]]:
    """The kernels with the largest shares in the average on some of the rows, and their ridges."""
    rows = random.permutation(len(x))[: _SHORTLIST_ROWS[len(x) > SPECTRUM_ROWS]]
    fits = {i: Spectrum(matrix).fit(y[rows]) for i, matrix in matrices(kernels, x[rows])}
    shares = _shares([fits[i].left_out for i in range(len(kernels))], y[rows])
    kept = [i for i in np.argsort(-shares)[:_SHORTLIST] if shares[i] > 0]
    return [kernels[i] for i in kept], [fits[i].ridge for i in kept]


def _shares(left_out: Sequence[np.ndarray], y: np.ndarray) -> np.ndarray:
    """Non-negative weights with the least squared error on rows that were left out; small ones are dropped."""
    columns = np.stack([each.ravel() for each in left_out], axis=1)
    gram = columns.T @ columns
    gram += 1e-10 * max(np.trace(gram), np.finfo(float).tiny) * np.eye(len(gram))
    root = np.linalg.cholesky(gram)  # |root^T w - root^-1 columns^T y| is the error, in few rows
    shares, _ = scipy.optimize.nnls(root.T, np.linalg.solve(root, columns.T @ y.ravel()))
    kept = shares > _LEAST_WEIGHT
    if not kept.any():  # nothing is better than the mean
        errors = [np.mean((each - y) ** 2) for each in left_out]
        shares = np.zeros(len(left_out))
        shares[int(np.argmin(errors))] = 1.0
        return shares
    return np.where(kept, shares, 0.0)
