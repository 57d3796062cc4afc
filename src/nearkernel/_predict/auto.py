"""The answer that chooses itself: the pipeline of a table, what it says of the test rows, and which columns matter."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..estimators import AutoClassifier, AutoRegressor
from . import scores
from .answers import Answer
from .data import Data
from .prepare import Split

NAME = "Auto"
COVERAGE = 0.9
_MOST_ENTRIES = 1.0e7  # of kernels, for the importance of columns
_LEAST_ROWS = 10


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A fitted pipeline, its answer, and the importance of each column: what shuffling it costs."""

    pipeline: Pipeline
    answer: Answer
    importance: tuple[tuple[str, float], ...]


def chosen(data: Data, split: Split, balanced: bool, seed: int) -> Chosen:
    """Fitted on the training rows alone."""
    start = time.perf_counter()
    x, x_new = _inputs(data, split)
    truth = data.y[split.trained]
    scale = "shared" if data.image_shape else "columns"
    model: Any
    if data.classes:
        weight = "balanced" if balanced else None
        model = AutoClassifier(weight, scale, random_state=seed).fit(x, np.array(data.classes)[truth])
    else:
        model = AutoRegressor(scale=scale, random_state=seed).fit(x, truth)
    steps = [] if split.preparation is None else [("prepare", split.preparation)]
    pipeline = Pipeline([*steps, ("model", model)])
    answer = _answer(model, x_new, data, split, start)
    return Chosen(pipeline, answer, _importance(model, x_new, answer, data, split, seed))


def _inputs(data: Data, split: Split) -> tuple[np.ndarray, np.ndarray]:
    if split.preparation is None:
        return data.x[split.trained], data.x[split.rows]
    assert data.frame is not None
    prepared = split.preparation.transform(data.frame)
    return prepared[split.trained], prepared[split.rows]


def _answer(model: Any, x_new: np.ndarray, data: Data, split: Split, start: float) -> Answer:
    details: dict[str, Any] = {
        "kernels": [{"kernel": name, "weight": w, "ridge": ridge} for name, w, ridge in model.kernels_],
    }
    if data.classes:
        probabilities = _probabilities(model, x_new, data)
        with np.errstate(divide="ignore"):
            log_probs = np.log(probabilities)
        details["balanced"] = model.class_weight == "balanced"
        known = [data.classes.index(str(name)) for name in model.classes_]
        answered = model._answered(probabilities[:, known])
        label = np.array([data.classes.index(name) for name in answered])
        figures = scores.of_classification(label, log_probs, split.truth)
        std = np.zeros(len(x_new))
        return Answer(
            NAME, probabilities, std, time.perf_counter() - start, details, log_probs, figures, label
        )
    mean, std, interval = model._law(x_new, COVERAGE)
    details["target"] = model.target_
    figures = scores.of_regression(mean, std, split.truth, interval)
    seconds = time.perf_counter() - start
    return Answer(NAME, mean[:, None], std, seconds, details, None, figures, None, interval)


def _importance(
    model: Any, x: np.ndarray, answer: Answer, data: Data, split: Split, seed: int
) -> tuple[tuple[str, float], ...]:
    """How much worse predictions of test rows become when one column is shuffled, the worst first.

    Regression: the loss of R2. Classification: the rise of the log-loss.
    """
    if split.preparation is None or len(x) < _LEAST_ROWS:
        return ()
    plans, sources = split.preparation.columns_, split.preparation.sources_()
    most = int(_MOST_ENTRIES / (len(model.blend_.centers) * len(plans)))
    random = np.random.default_rng(seed)
    kept = random.permutation(len(x))[: max(most, _LEAST_ROWS)]
    x, truth = x[kept], split.truth[kept]
    tried = []
    for i in range(len(plans)):
        other = x.copy()
        columns = np.flatnonzero(sources == i)
        other[:, columns] = x[random.permutation(len(x))][:, columns]
        tried.append(other)
    rows = np.concatenate(tried)
    found = _probabilities(model, rows, data) if data.classes else model.predict(rows)[:, None]
    before = _losses(answer.mean[kept], truth, data).mean()
    cost = _losses(found, np.tile(truth, len(plans)), data).reshape(len(plans), -1).mean(axis=1) - before
    order = np.argsort(-cost)
    return tuple((plans[i].name, float(cost[i])) for i in order)


def _probabilities(model: Any, x: np.ndarray, data: Data) -> np.ndarray:
    """(m, classes), 0 of classes that no training row has."""
    found = np.zeros((len(x), len(data.classes)))
    found[:, [data.classes.index(str(name)) for name in model.classes_]] = model.predict_proba(x)
    return found


def _losses(predicted: np.ndarray, truth: np.ndarray, data: Data) -> np.ndarray:
    """Of each row: minus the log of its class's probability, or the squared error in units of the variance."""
    if data.classes:
        return -np.log(np.maximum(predicted[np.arange(len(truth)), truth], 1e-6))
    return (predicted[:, 0] - truth) ** 2 / max(float(np.var(truth)), np.finfo(float).tiny)
