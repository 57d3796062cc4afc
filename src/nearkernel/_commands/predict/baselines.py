"""What others say: the plain baseline that every method must beat, and boosted trees."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from . import scores
from .reading.data import LabeledData
from .reading.prepare import Split
from .reporting.answers import Answer

BOOSTING = "Boosting"
_MOST_CELLS = 3.0e7  # rows x columns x classes, above which trees would take longer than all the rest


def name_of(data: LabeledData) -> str:
    return "Majority" if data.classes else "Mean"


def baseline(data: LabeledData, split: Split) -> Answer:
    """The most frequent class with the share of each class as its probability, or the mean and the deviation."""
    start = time.perf_counter()
    y, m = data.y[split.trained], len(split.truth)
    if data.classes:
        share = (np.bincount(y, minlength=len(data.classes)) + 0.5) / (len(y) + 0.5 * len(data.classes))
        details: dict[str, Any] = {"answer": data.classes[int(share.argmax())]}
        return of_probabilities(name_of(data), np.tile(share, (m, 1)), split, start, details)
    mean, std = np.full(m, y.mean()), np.full(m, y.std())
    intervals = scores.gaussian_intervals(mean, std)
    figures = scores.of_regression(mean, std, split.truth, intervals)
    seconds, details = time.perf_counter() - start, {"answer": y.mean()}
    return Answer(name_of(data), mean[:, None], std, seconds, details, None, figures, intervals=intervals)


def boosting(data: LabeledData, split: Split) -> Answer | None:
    """Histogram boosting with scikit-learn's own settings; None for images and where it would take long."""
    cells = split.x.size * max(len(data.classes), 1)
    if data.image_shape is not None or cells > _MOST_CELLS or len(split.x) < 20:
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    y = data.y[split.trained]
    with threadpool_limits(1, "openmp"):  # threads that wait for a busy core cost more than they bring
        if data.classes:
            trees = HistGradientBoostingClassifier(random_state=0).fit(split.x, y)
            found = np.full((len(split.truth), len(data.classes)), 0.0)
            found[:, trees.classes_] = trees.predict_proba(split.x_new)
            return of_probabilities(BOOSTING, found, split, start, {})
        mean = HistGradientBoostingRegressor(random_state=0).fit(split.x, y).predict(split.x_new)
    figures = scores.of_regression(mean, None, split.truth)
    return Answer(BOOSTING, mean[:, None], None, time.perf_counter() - start, {}, None, figures)


def of_probabilities(
    name: str, probabilities: np.ndarray, split: Split, start: float, details: dict[str, Any]
) -> Answer:
    with np.errstate(divide="ignore"):
        log_probs = np.log(probabilities)
    figures = scores.of_classification(probabilities.argmax(axis=1), log_probs, split.truth)
    seconds = time.perf_counter() - start
    return Answer(name, probabilities, None, seconds, details, log_probs, figures)
