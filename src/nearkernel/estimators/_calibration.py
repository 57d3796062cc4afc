"""From outputs to probabilities and intervals, both judged by rows that were left out."""

from __future__ import annotations

import numpy as np
import scipy.optimize
from scipy.special import log_softmax, softmax

from ._members import Kernel
from ._ridge_path import RIDGES, by_spectrum

_STIFFNESS = 1.0  # pull of slope and offsets, in rows: no offset is learned from a handful
_MOST_ROWS = 1500  # by which the size of errors is learned
_LEAST_SIZE = 0.25  # of the mean error


class Softmax:
    """Probabilities softmax(slope f + offset) of outputs f, most likely for outputs of left-out rows."""

    def __init__(self, outputs: np.ndarray, index: np.ndarray):
        n, classes = outputs.shape
        share = np.bincount(index, minlength=classes) / n
        start = np.concatenate([[np.log(4.0)], np.zeros(classes)])

        def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            slope, offset = np.exp(parameters[0]), parameters[1:]
            log_p = log_softmax(slope * outputs + offset, axis=1)
            wrong = np.exp(log_p)
            wrong[np.arange(n), index] -= 1.0
            pull = parameters - start
            by_slope = slope * np.einsum("ij,ij->", wrong, outputs)
            gradient = np.append(by_slope, wrong.sum(axis=0)) + _STIFFNESS * pull
            return 0.5 * _STIFFNESS * float(pull @ pull) - float(log_p[np.arange(n), index].sum()), gradient

        found = scipy.optimize.minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=[(-3.0, 7.0)] + [(-20.0, 20.0)] * classes
        )
        self.slope, self.offset = float(np.exp(found.x[0])), found.x[1:]
        self.share = share

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        return softmax(self.slope * outputs + self.offset, axis=1)


class Errors:
    """How far targets lie from predictions: errors of left-out rows, in units of a size that may depend on the input.

    The size is a kernel machine for the absolute error, kept only where it makes the errors more likely than one size
    for all does, by two standard errors.
    """

    def __init__(self, kernel: Kernel, x: np.ndarray, error: np.ndarray, random: np.random.RandomState):
        rows = np.sort(random.permutation(len(x))[:_MOST_ROWS])
        sizes = np.abs(error)
        self.mean = float(max(sizes.mean(), np.finfo(float).tiny))
        self.kernel: Kernel | None = None
        if len(rows) >= 50:
            seen = kernel.rows(x[rows])
            relative = sizes[rows] / self.mean - 1.0
            fit = by_spectrum(kernel.matrix(seen), relative[:, None], RIDGES[12:])
            found = self.mean * np.maximum(1.0 + fit.left_out[:, 0], _LEAST_SIZE)
            gain = _log_score(error[rows], found) - _log_score(error[rows], np.full(len(rows), self.mean))
            if gain.mean() > 2.0 * gain.std() / np.sqrt(len(rows)):
                self.kernel, self.centers, self.coefficients = kernel, x[rows], fit.coefficients
                self.scaled = np.sort(error[rows] / found)
        if self.kernel is None:
            self.scaled = np.sort(error / self.mean)

    def sizes(self, x: np.ndarray) -> np.ndarray:
        """(m,) at new rows."""
        if self.kernel is None:
            return np.full(len(x), self.mean)
        found = self.kernel.between(self.kernel.rows(x), self.kernel.rows(self.centers)) @ self.coefficients
        return self.mean * np.maximum(1.0 + found[:, 0], _LEAST_SIZE)

    def quantiles(self, coverage: float) -> tuple[float, float]:
        """Scaled errors between which a new one falls with probability `coverage`, if rows are exchangeable."""
        n, outside = len(self.scaled), 0.5 * (1.0 - coverage)
        low = int(np.floor((n + 1) * outside)) - 1
        high = int(np.ceil((n + 1) * (1.0 - outside))) - 1
        return float(self.scaled[max(low, 0)]), float(self.scaled[min(high, n - 1)])

    def deviation(self) -> float:
        """Root mean square of the scaled errors."""
        return float(np.sqrt(np.mean(self.scaled**2)))


def _log_score(error: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Log density of a two-sided exponential, up to a constant."""
    return -np.abs(error) / size - np.log(size)
