"""Which columns matter: what shuffling a column costs on rows that the model has not learned from, with its error.

All rows take part. The model (its kernels, ridges and weights) is fitted again to four fifths of them and predicts the
others, five times; so a table with few rows, or few of one class, says as much as it can. A column that matters is one
whose cost is larger than chance would make any of the columns, at 5 %.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from ...estimators.auto.blend import Blend, Part
from ...estimators.auto.members import matrices
from ...estimators.auto.ridge_path import by_cholesky
from .reading.data import LabeledData
from .reading.prepare import Split
from .scores import Score

CHANCE = 0.05  # that a column is said to matter though none does
_LEAST_ROWS = 20
_MOST_ROWS = 2000
_FOLDS = 5
_MOST_ENTRIES = 1.0e7  # of kernels
_MOST_REPEATS = 5


@dataclasses.dataclass(frozen=True)
class Importance:
    """The loss of R2, or the rise of the log-loss, when `column` is shuffled; whether that is more than chance."""

    column: str
    cost: Score
    matters: bool


def importances(model: Any, data: LabeledData, split: Split, seed: int) -> tuple[Importance, ...]:
    """Of each column, the most important first; nothing for images and very small tables."""
    if split.preparation is None or data.frame is None:
        return ()
    random = np.random.default_rng(seed)
    rows = random.permutation(np.concatenate([split.trained, split.rows]))
    if data.classes:
        known = np.isin(np.array(data.classes)[data.y[rows]], model.classes_.astype(str))
        rows = rows[known]
        rows = rows[np.argsort(data.y[rows], kind="stable")]  # so that each fold has its share of each class
    if len(rows) < _LEAST_ROWS:
        return ()
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MOST_ROWS)).astype(int)]
    x = split.preparation.transform(data.frame)[rows]
    learned, losses = (_classification if data.classes else _regression)(model, data, rows)
    plans, sources = split.preparation.columns_, split.preparation.sources_()
    each = _MOST_ENTRIES / (len(rows) * len(plans) * len(model.blend_.parts))  # rows to try a column on
    strata = data.y[rows] if data.classes else np.zeros(len(rows), dtype=int)
    rare = len(rows) - int(np.bincount(strata).max())
    repeats = int(np.clip(each / (min(8 * rare, len(rows)) or len(rows)), 1, _MOST_REPEATS))
    chosen = _spread(strata, max(int(each / repeats), _LEAST_ROWS), random)
    fold, costs = np.arange(len(rows)) % _FOLDS, np.zeros((len(plans), len(rows)))
    kernels = dict(matrices([part.kernel for part in model.blend_.parts], x))
    for k in range(_FOLDS):
        inside = chosen[fold[chosen] == k]
        blend = _fitted(model.blend_, kernels, x, learned, np.flatnonzero(fold != k))
        tried = [x[inside]]
        for i in range(len(plans)):
            for _ in range(repeats):
                other = x[inside].copy()
                columns = np.flatnonzero(sources == i)
                other[:, columns] = x[random.permutation(len(x))[: len(inside)]][:, columns]
                tried.append(other)
        found = losses(blend.outputs(np.concatenate(tried)), np.tile(inside, len(tried)))
        before, after = np.split(found, [len(inside)])
        costs[:, inside] = after.reshape(len(plans), repeats, -1).mean(axis=1) - before
    # If a column is noise, what two rows say of it by chance counts twice, once with each of them left out: this
    # doubles the variance of the mean.
    sigmas = math.sqrt(2) * float(ndtri(1 - CHANCE / len(plans)))
    scores = [_over_strata(cost, strata, chosen) for cost in costs]
    measured = [
        Importance(plan.name, score, score.value > sigmas * score.sem)
        for plan, score in zip(plans, scores, strict=True)
    ]
    return tuple(sorted(measured, key=lambda one: -one.cost.value))


def _spread(strata: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """Places of at most about `most` rows: all of the rare strata (n,), and of the others equally many."""
    groups = sorted((random.permutation(np.flatnonzero(strata == c)) for c in np.unique(strata)), key=len)
    kept: list[np.ndarray] = []
    for i, group in enumerate(groups):
        room = (most - sum(map(len, kept))) // (len(groups) - i)
        kept.append(group[: max(room, 2)])
    return np.sort(np.concatenate(kept))


def _over_strata(cost: np.ndarray, strata: np.ndarray, chosen: np.ndarray) -> Score:
    """The mean over all rows (n,) and its error, from the rows that were tried."""
    value, variance = 0.0, 0.0
    for c in np.unique(strata):
        tried, share = cost[chosen[strata[chosen] == c]], float(np.mean(strata == c))
        value += share * float(np.mean(tried))
        variance += share**2 * float(np.var(tried, ddof=1)) / len(tried) if len(tried) > 1 else math.inf
    return Score(value, math.sqrt(variance))


def _fitted(
    blend: Blend, kernels: dict[int, np.ndarray], x: np.ndarray, y: np.ndarray, rows: np.ndarray
) -> Blend:
    """The same average, fitted to some of the rows x (n, d) and targets y (n, out); `kernels` (n, n) by its parts."""
    found = Blend(blend.views, x[rows])
    for place, part in enumerate(blend.parts):
        coefficients = by_cholesky(kernels[place][np.ix_(rows, rows)], y[rows], part.ridge).coefficients
        found.parts.append(Part(part.kernel, part.weight, part.ridge, coefficients))
    return found


Losses = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of outputs (m, out) for rows at places (m,)


def _regression(model: Any, data: LabeledData, rows: np.ndarray) -> tuple[np.ndarray, Losses]:
    """What is learned, (n, 1), and the squared error in units of the variance."""
    truth = data.y[rows]
    values = np.log(truth) if model.target_ == "log" else truth
    unit = max(float(np.var(truth)), np.finfo(float).tiny)
    losses = lambda outputs, at: (model.mean_of(outputs)[:, 0] - truth[at]) ** 2 / unit
    return ((values - model.target_mean_) / model.target_scale_)[:, None], losses


def _classification(model: Any, data: LabeledData, rows: np.ndarray) -> tuple[np.ndarray, Losses]:
    """What is learned, (n, classes), and minus the log of the true class's probability."""
    place = {str(name): i for i, name in enumerate(model.classes_)}
    truth = np.array([place[data.classes[each]] for each in data.y[rows]])

    def losses(outputs: np.ndarray, at: np.ndarray) -> np.ndarray:
        found = model.probabilities_of(outputs)
        return -np.log(np.maximum(found[np.arange(len(at)), truth[at]], 1e-6))

    return np.eye(len(place))[truth] - model.target_mean_, losses
