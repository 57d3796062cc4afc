"""Several kernels, each with the ridge that leave-one-out prefers, and the average of them that it prefers, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.optimize

from .._memory import rows_that_fit
from ._members import ALL, FEW, METRIC, Kernel
from ._metric import learned_weights
from ._ridge_path import Fit, by_centers, by_cholesky, by_spectrum
from ._views import Views

ALL_ROWS = 1000  # up to here, every kernel is tried
SPECTRUM_ROWS = 2000  # up to here, every ridge
_SHORTLIST_ROWS = 1200  # of a larger table, on which kernels and ridges are chosen
_LEAST_WEIGHT = 0.01


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
        self.views, self.centers, self.parts = views, centers, []

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """(m, out) at new rows (m, d)."""
        chunk = rows_that_fit(6 * 8 * len(self.centers), 2**27)
        total = np.zeros((len(x), self.parts[0].coefficients.shape[1]))
        for part in self.parts:
            seen = part.kernel.rows(self.centers)
            for at in range(0, len(x), chunk):
                new = part.kernel.rows(x[at : at + chunk])
                total[at : at + chunk] += part.weight * (part.kernel.between(new, seen) @ part.coefficients)
        return total

    @property
    def metric(self) -> np.ndarray | None:
        """Learned weights of the columns, if a kernel with them is in the average."""
        found = [part.kernel.weights for part in self.parts if part.kernel.weights is not None]
        return found[0] if found else None


def blended(
    x: np.ndarray,
    y: np.ndarray,
    metric: bool,
    shared: bool,
    most_exact: int,
    centers: int,
    random: np.random.RandomState,
) -> tuple[Blend, np.ndarray]:
    """The average for rows x (n, d) and targets y (n, out) of mean 0, and what it says of each row without it."""
    views, n = Views(x, shared), len(x)
    weights = learned_weights(views.plain(x), y, random) if metric else None
    members = [*(ALL if n <= ALL_ROWS else FEW), *([METRIC] if weights is not None else [])]
    kernels = [Kernel(member, views, x, weights if member is METRIC else None) for member in members]
    if n <= SPECTRUM_ROWS:
        blend = Blend(views, x)
        fits = [by_spectrum(kernel.matrix(kernel.rows(x)), y) for kernel in kernels]
    elif n <= most_exact:
        blend = Blend(views, x)
        kernels, ridges = _shortlist(kernels, x, y, random)
        fits = [
            by_cholesky(kernel.matrix(kernel.rows(x)), y, ridge)
            for kernel, ridge in zip(kernels, ridges, strict=True)
        ]
    else:
        kernels, _ = _shortlist(kernels, x, y, random)
        blend = Blend(views, x[np.sort(random.permutation(n)[:centers])])
        fits = [_on_centers(kernel, x, blend.centers, y) for kernel in kernels]
    shares = _shares([fit.left_out for fit in fits], y)
    blend.parts = [
        Part(kernel, float(share), fit.ridge, fit.coefficients)
        for kernel, fit, share in zip(kernels, fits, shares, strict=True)
        if share > 0
    ]
    return blend, sum(share * fit.left_out for fit, share in zip(fits, shares, strict=True))


def _on_centers(kernel: Kernel, x: np.ndarray, centers: np.ndarray, y: np.ndarray) -> Fit:
    seen = kernel.rows(centers)
    rows = np.empty((len(x), len(centers)), dtype=np.float32)
    chunk = rows_that_fit(4 * 8 * len(centers), 2**27)
    for at in range(0, len(x), chunk):
        rows[at : at + chunk] = kernel.between(kernel.rows(x[at : at + chunk]), seen)
    return by_centers(rows, kernel.matrix(seen), y)


def _shortlist(
    kernels: Sequence[Kernel], x: np.ndarray, y: np.ndarray, random: np.random.RandomState
) -> tuple[list[Kernel], list[float]]:
    """The kernels that have a share in the average on some of the rows, and their ridges."""
    rows = random.permutation(len(x))[:_SHORTLIST_ROWS]
    fits = [by_spectrum(kernel.matrix(kernel.rows(x[rows])), y[rows]) for kernel in kernels]
    shares = _shares([fit.left_out for fit in fits], y[rows])
    kept = [i for i, share in enumerate(shares) if share > 0]
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
