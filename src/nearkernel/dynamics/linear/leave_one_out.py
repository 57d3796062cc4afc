"""Leave-one-out of every algorithm from one factorization: n trainings for the price of none."""

import math
from typing import TYPE_CHECKING

import equinox as eqx
import numpy as np
import scipy.linalg

from ..._base.result import Result
from ..._run.blas import one_thread
from ..algorithms.ridges import Ridges
from ..algorithms.spectral import SpectralAlgorithm
from .factor import AbstractFactor, Cholesky, Spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NULL = 1e-10  # share of a point in the null space below which rounding decides
_CHUNK = 2**22  # complex numbers at a time


class LeaveOneOut(Result, eqx.Module):
    """Leave-one-out predictions: each training point predicted by a model trained on all others.

    **Fields:** `y`, the targets; `residuals`, prediction minus target, in the shape of `y`; `std` (n,), for a ridge the
    standard deviation of a new observation under a Gaussian process with the kernel as covariance and the ridge as
    noise; None for other algorithms.
    """

    y: np.ndarray
    residuals: np.ndarray
    std: np.ndarray | None

    @property
    def predictions(self) -> np.ndarray:
        """The leave-one-out predictions, in the shape of `y`."""
        return self.y + self.residuals

    @property
    def _squares(self) -> np.ndarray:
        return (self.residuals.reshape(len(self.y), -1) ** 2).sum(axis=1)

    @property
    def error(self) -> float:
        """The leave-one-out mean squared error, summed over outputs."""
        return float(self._squares.mean())

    @property
    def sem(self) -> float:
        """The standard error of `error` as an estimate of the error at new points."""
        return float(self._squares.std(ddof=1) / math.sqrt(len(self.y))) if len(self.y) > 1 else math.inf

    @property
    def log_score(self) -> float:
        """The mean log density of a target under the Gaussian around its prediction, summed over outputs.

        The variance is `std` squared for a ridge; otherwise, for each output, the mean squared residual of the other
        points.
        """
        n = len(self.y)
        squares = self.residuals.reshape(n, -1) ** 2
        if self.std is not None:
            variance = self.std.reshape(n, -1) ** 2
        else:
            variance = (squares.sum(axis=0) - squares) / max(n - 1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(-0.5 * (np.log(2 * np.pi * variance) + squares / variance).sum(axis=1).mean())

    def error_rate(self) -> float:
        """The fraction of misclassified points, by the largest of several outputs or the sign of a single one."""
        truth, predicted = self.y.reshape(len(self.y), -1), self.predictions.reshape(len(self.y), -1)
        if truth.shape[1] == 1:
            return float(np.mean((truth[:, 0] > 0) != (predicted[:, 0] > 0)))
        return float(np.mean(truth.argmax(axis=1) != predicted.argmax(axis=1)))

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the leave-one-out predictions against the targets on Matplotlib's `axes`."""
        from ..._plots.training import draw_fit

        return draw_fit(self.y, self.predictions, axes, what="prediction, left out")


def refused(why: str) -> ValueError:
    return ValueError(f"leave_one_out() needs stable training, but it {why}.")


def ridges_for(algorithm: SpectralAlgorithm, lam_max: float, what: str) -> Ridges:
    """The algorithm as a sum of ridges, refused where it is none."""
    ridges = algorithm.ridges(lam_max)
    if ridges is None:
        raise ValueError(
            f"{what} needs an algorithm that is a short sum of ridges, not {algorithm!r}: use nk.Ridge, "
            "nk.GradientFlow without friction, or nk.GradientDescent (with momentum up to 1000 steps)."
        )
    return ridges


def left_out(
    factor: AbstractFactor, algorithm: SpectralAlgorithm, right: np.ndarray, points: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Residuals (rows of `right`, columns), and for one real ridge the variances of observations, (points,)."""
    block = len(right) // points  # rows of one point, which are left out together
    if isinstance(factor, Cholesky):
        with one_thread(len(right)):
            inverse, _ = scipy.linalg.lapack.dtrtri(factor.lower, lower=1)
            if block == 1:
                blocks = np.square(inverse, out=inverse).sum(axis=0)[:, None, None]
            else:
                parts = inverse.reshape(len(right), points, block)
                blocks = np.einsum("kia,kib->iab", parts, parts)
            residual, variance = _held_out(blocks, factor.solve(right).reshape(points, block, -1))
        return residual.reshape(right.shape), variance
    assert isinstance(factor, Spectrum)
    ridges = ridges_for(algorithm, factor.lam_max, "leave_one_out()")
    with one_thread(len(right)):
        if len(ridges.strengths) == 1 and ridges.strengths[0] == 0:
            return _without_ridge(factor, right, points, block).reshape(right.shape), None
        return _by_ridges(factor, ridges, right, points, block)


def _held_out(blocks: np.ndarray, solved: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """-(blocks of the inverse)^-1 (inverse times y), and the variances."""
    if blocks.shape[1] == 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            return -solved / blocks, 1.0 / blocks[:, 0, 0].real
    return -np.linalg.solve(blocks, solved), None


def _by_ridges(
    factor: Spectrum, ridges: Ridges, right: np.ndarray, points: int, block: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """The sum over strengths s of the residuals, with s (K + s)^-1 = V s/(lam + s) V^T + (null space)."""
    vectors = factor.vectors.reshape(points, block, factor.rank)
    products = (vectors[:, :, None, :] * vectors[:, None, :, :]).reshape(points * block**2, factor.rank)
    inside = factor.vectors.T @ right
    full = factor.rank == len(right)
    null_blocks = np.zeros((points, block, block))
    if not full:
        null_blocks = np.eye(block) - products.sum(axis=1).reshape(null_blocks.shape)
    null_right = np.zeros_like(right) if full else right - factor.vectors @ inside
    total = np.zeros((points, block, right.shape[1]))
    variance = None
    chunk = max(1, _CHUNK // (len(right) * (1 + right.shape[1])))
    for at in range(0, len(ridges.strengths), chunk):
        strengths, weights = ridges.strengths[at : at + chunk], ridges.weights[at : at + chunk]
        shares = 1.0 / (1.0 + factor.lam[:, None] / strengths)  # (rank, strengths)
        blocks = real_times(products, shares).reshape(points, block, block, -1)
        scaled = real_times(
            factor.vectors,
            (inside[:, :, None] * shares[:, None, :]).reshape(factor.rank, right.shape[1] * len(strengths)),
        )
        scaled = scaled.reshape(points, block, right.shape[1], -1)
        # The null space is not in the eigenvectors kept: there s (K + s)^-1 is the identity, at every strength.
        for j, weight in enumerate(weights):
            solved = scaled[..., j] + null_right.reshape(points, block, -1)
            residual, inverse = _held_out(blocks[..., j] + null_blocks, solved)
            total += (weight * residual).real
            if len(ridges.strengths) == 1 and inverse is not None and np.isfinite(strengths[0]):
                variance = float(strengths[0]) * inverse
    return total.reshape(right.shape), variance


def real_times(matrix: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A product with a complex matrix as one with real ones."""
    if not np.iscomplexobj(columns):
        return matrix @ columns
    both = matrix @ np.concatenate([columns.real, columns.imag], axis=1)
    return both[:, : columns.shape[1]] + 1j * both[:, columns.shape[1] :]


def _without_ridge(factor: Spectrum, right: np.ndarray, points: int, block: int) -> np.ndarray:
    """The limit of a vanishing ridge of a singular matrix.

    Where a point has a share in the null space, that share alone decides: the others leave a direction open there.
    """
    if block > 1:
        raise ValueError(
            "leave_one_out() of several outputs without a ridge needs a tangent kernel of full rank on `x`: its rank "
            f"is {factor.rank} < {len(right)}. Use nk.Ridge, or a finite time."
        )
    inside = factor.vectors.T @ right
    squares = factor.vectors**2
    null, null_right = 1.0 - squares.sum(axis=1), right - factor.vectors @ inside
    kept = squares @ (1.0 / factor.lam)
    kept_right = factor.vectors @ (inside / factor.lam[:, None])
    open_ = null > _NULL
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(open_[:, None], null_right / null[:, None], kept_right / kept[:, None])
