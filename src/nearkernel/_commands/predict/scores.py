r"""How good an answer is: errors, log-likelihoods and calibration on test rows, each with its standard error.

An answer is a Gaussian law for each test row: mean (m, out) and one standard deviation (m,) shared by all outputs.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

BINS = 10
LEVELS = np.arange(0.1, 1.0, 0.1)


@dataclasses.dataclass(frozen=True)
class Score:
    """A mean over test rows and its standard error."""

    value: float
    sem: float


Figures = dict[str, "Score | float | None"]


def of_classification(label: np.ndarray, log_probs: np.ndarray | None, truth: np.ndarray) -> Figures:
    """Scores of answered classes (m,) and log probabilities (m, c), if there are any, against class indices (m,)."""
    wrong = np.mean(label != truth)
    figures: Figures = {
        "error": Score(float(wrong), float(share_sem(wrong, len(truth)))),
        "balanced_accuracy": balanced_accuracy(label, truth),
        "auc": None,
        "log_loss": None,
        "calibration_error": None,
    }
    if log_probs is None:
        return figures
    loss = mean_score(-log_probs[np.arange(len(truth)), truth])
    # A class that is answered may not be the most probable one, and then it is not what was bet on.
    right = log_probs.argmax(axis=1) == truth
    return {
        **figures,
        "auc": auc(log_probs, truth),
        "log_loss": loss,
        "calibration_error": expected_calibration_error(confidence(log_probs), right),
    }


def balanced_accuracy(label: np.ndarray, truth: np.ndarray) -> float:
    """The mean over classes of the share of their rows that is found."""
    return float(np.mean([np.mean(label[truth == c] == c) for c in np.unique(truth)]))


def auc(log_probs: np.ndarray, truth: np.ndarray) -> float | None:
    """The chance that a row of a class is given a larger probability of it than a row of another, mean over classes."""
    classes = log_probs.shape[1]
    found = []
    for c in [1] if classes == 2 else range(classes):
        inside = truth == c
        count, others = int(inside.sum()), int((~inside).sum())
        if count and others:
            ranks = rankdata(log_probs[:, c])
            found.append((ranks[inside].sum() - count * (count + 1) / 2) / (count * others))
    return float(np.mean(found)) if found else None


def confidence(log_probs: np.ndarray) -> np.ndarray:
    """(m,) the probability of the class that is answered, which is the most probable one."""
    return np.exp(log_probs.max(axis=1))


def of_regression(
    mean: np.ndarray, std: np.ndarray | None, truth: np.ndarray, intervals: np.ndarray | None = None
) -> Figures:
    """Scores of the Gaussian law of each row, all (m,); of its mean alone without `std`.

    Coverage is that of the last of `intervals` (levels, m, 2), the one of 90 %.
    """
    return {
        "r2": r2(mean, truth),
        "mae": mean_score(np.abs(mean - truth)),
        "rmse": rmse(mean, truth),
        "coverage": None if intervals is None else float(coverage(intervals, truth)[-1]),
        "log_likelihood": None if std is None else mean_score(gaussian_log_density(mean, std, truth)),
    }


def mean_score(values: np.ndarray) -> Score | None:
    """Mean and standard error of one number per row (m,); None where a row has no finite number."""
    if not np.isfinite(values).all():
        return None
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return Score(float(np.mean(values)), spread / math.sqrt(len(values)))


def share_sem(share: np.ndarray, count: np.ndarray | int) -> np.ndarray:
    """Standard error of a share of `count` rows; by Laplace's rule never 0, not even where all rows agree."""
    smoothed = (share * count + 1) / (count + 2)
    return np.sqrt(smoothed * (1 - smoothed) / count)


def rmse(mean: np.ndarray, y: np.ndarray) -> Score | None:
    """Root mean squared error; its standard error is that of the mean square, carried through the root."""
    square = mean_score((mean - y) ** 2)
    if square is None or square.value == 0:
        return square
    root = math.sqrt(square.value)
    return Score(root, square.sem / (2 * root))


def r2(mean: np.ndarray, y: np.ndarray) -> float | None:
    """1 - sum (y - mean)^2 / sum (y - average)^2; None for a constant y."""
    total = float(np.sum((y - y.mean()) ** 2))
    return 1 - float(np.sum((y - mean) ** 2)) / total if total > 0 else None


def gaussian_log_density(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log N(y; mean, std^2) for each row (m,); not finite where std is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return -0.5 * ((y - mean) / std) ** 2 - np.log(std) - 0.5 * math.log(2 * math.pi)


def gaussian_intervals(mean: np.ndarray, std: np.ndarray) -> np.ndarray | None:
    """(levels, m, 2) the central interval of each probability in `LEVELS`; None where a row has no spread."""
    if not np.all(std > 0):
        return None
    half = ndtri(0.5 + LEVELS / 2)[:, None] * std
    return np.stack([mean - half, mean + half], axis=-1)


def coverage(intervals: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The share of rows y (m,) inside each of the intervals (levels, m, 2)."""
    return np.mean((intervals[..., 0] <= y) & (y <= intervals[..., 1]), axis=1)


def reliability(confidence: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean confidence, share of right answers and number of rows in each of `BINS` equal bins (empty bins left out)."""
    index = np.minimum((confidence * BINS).astype(int), BINS - 1)
    count = np.bincount(index, minlength=BINS)
    full = count > 0
    mean_confidence = np.bincount(index, confidence, BINS)[full] / count[full]
    accuracy = np.bincount(index, right, BINS)[full] / count[full]
    return mean_confidence, accuracy, count[full]


def expected_calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Mean distance of confidence and accuracy over the bins of `reliability`, weighted by their rows."""
    mean_confidence, accuracy, count = reliability(confidence, right)
    return float(np.sum(count * np.abs(mean_confidence - accuracy)) / count.sum())
