"""From outputs to probabilities and intervals, calibrated on left-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize
from scipy.special import log_softmax, softmax

from .blend import Blended, Term
from .members import Kernel, matrices
from .ridge_path import RIDGES, Spectrum

_STIFFNESS = 1.0  # pull of slope and offsets, in rows: no offset is learned from a handful
_MOST_ROWS = 1000  # by which the size of errors is learned, where no spectrum is at hand
_LEAST_ROWS = 50
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

        optimum = scipy.optimize.minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=[(-3.0, 7.0)] + [(-20.0, 20.0)] * classes
        )
        self.slope, self.offset = float(np.exp(optimum.x[0])), optimum.x[1:]
        self.share = share

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        return softmax(self.slope * outputs + self.offset, axis=1)


class Errors:
    """How far targets lie from predictions: errors of left-out rows, in units of a size that may depend on the input.

    The size is a kernel machine for the absolute error, kept only where it makes the errors more likely than one size
    for all does, by two standard errors. Its kernel and its centers are those of the average: `coefficients`
    (centers, 1) with `kernel`, or None.
    """

    kernel: Kernel | None
    coefficients: np.ndarray | None

    def __init__(self, made: Blended, error: np.ndarray, random: np.random.RandomState):
        sizes = np.abs(error)
        self.mean = float(max(sizes.mean(), np.finfo(float).tiny))
        self.kernel = self.coefficients = None
        self.scaled = np.sort(error / self.mean)
        places, spectrum = np.arange(len(made.centers)), made.spectrum
        if spectrum is None:
            places = np.sort(random.permutation(len(made.centers))[:_MOST_ROWS])
        rows = made.centers[places]
        if len(rows) < _LEAST_ROWS:
            return
        kernel = made.blend.heaviest
        if spectrum is None:
            spectrum = Spectrum(next(matrices([kernel], made.blend.centers[places]))[1])
        fit = spectrum.fit((sizes[rows] / self.mean - 1.0)[:, None], RIDGES[12:])
        widths = self._sizes(fit.left_out)
        gain = _log_score(error[rows], widths) - _log_score(error[rows], np.full(len(rows), self.mean))
        if gain.mean() > 2.0 * gain.std() / np.sqrt(len(rows)):
            self.kernel, self.coefficients = kernel, np.zeros((len(made.centers), 1))
            self.coefficients[places] = fit.coefficients
            self.scaled = np.sort(error[rows] / widths)

    def terms(self) -> list[Term]:
        """What the sizes at new rows are made of."""
        return [] if self.kernel is None or self.coefficients is None else [(self.kernel, self.coefficients)]

    def sizes(self, terms: Sequence[np.ndarray], rows: int) -> np.ndarray:
        """(m,) at new rows, from the values (m, 1) of `terms`."""
        return self._sizes(terms[0]) if terms else np.full(rows, self.mean)

    def _sizes(self, relative: np.ndarray) -> np.ndarray:
        return self.mean * np.maximum(1.0 + relative[:, 0], _LEAST_SIZE)

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
