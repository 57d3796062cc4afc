"""The answer that chooses itself: the pipeline of a table, what it says of the test rows, and which columns matter."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ...estimators import AutoClassifier, AutoRegressor
from . import scores
from .importance import Importance, importances
from .reading.data import LabeledData
from .reading.prepare import Split
from .reporting.answers import Answer

NAME = "Auto"


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A fitted pipeline, its answer, and the importance of each column: what shuffling it costs."""

    pipeline: Pipeline
    answer: Answer
    importance: tuple[Importance, ...]


def chosen(data: LabeledData, split: Split, balanced: bool, seed: int) -> Chosen:
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
    return Chosen(pipeline, answer, importances(model, data, split, seed))


def _inputs(data: LabeledData, split: Split) -> tuple[np.ndarray, np.ndarray]:
    if split.preparation is None:
        return data.x[split.trained], data.x[split.rows]
    assert data.frame is not None
    prepared = split.preparation.transform(data.frame)
    return prepared[split.trained], prepared[split.rows]


def _answer(model: Any, x_new: np.ndarray, data: LabeledData, split: Split, start: float) -> Answer:
    details: dict[str, Any] = {
        "kernels": [{"kernel": name, "weight": w, "ridge": ridge} for name, w, ridge in model.kernels_]
    }
    if data.classes:
        probabilities = _probabilities(model, x_new, data)
        with np.errstate(divide="ignore"):
            log_probs = np.log(probabilities)
        details["balanced"] = model.class_weight == "balanced"
        known = [data.classes.index(str(name)) for name in model.classes_]
        answered = model.classes_of(probabilities[:, known])
        label = np.array([data.classes.index(name) for name in answered])
        figures = scores.of_classification(label, log_probs, split.truth)
        seconds = time.perf_counter() - start
        return Answer(NAME, probabilities, None, seconds, details, log_probs, figures, label)
    mean, std, intervals = model.laws(x_new, scores.LEVELS)
    details["target"] = model.target_
    figures = scores.of_regression(mean, std, split.truth, intervals)
    seconds = time.perf_counter() - start
    return Answer(NAME, mean[:, None], std, seconds, details, None, figures, None, intervals)


def _probabilities(model: Any, x: np.ndarray, data: LabeledData) -> np.ndarray:
    """(m, classes), 0 of classes that no training row has."""
    found = np.zeros((len(x), len(data.classes)))
    found[:, [data.classes.index(str(name)) for name in model.classes_]] = model.predict_proba(x)
    return found
