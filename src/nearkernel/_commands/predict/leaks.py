"""Columns that almost determine the target by themselves: they may have been computed from it, or filled in after it.

The rule: a small tree, or a line, that sees this column alone predicts rows that it has not seen, and

- of a regression explains at least 97 % of the variance of the target or of its ranks, and half of the other,
- of a classification avoids at least 95 % of the errors of always answering the most frequent class.

Ranks see through a logarithm or any other monotone map, and outliers do not move them. Small trees, and rows that
occur once only, keep copies of rows from being mistaken for knowledge. A real predictor may be as good as that: so
the user is asked.
"""

from __future__ import annotations

import dataclasses
import shlex

import numpy as np
from scipy.stats import rankdata

from .reading.data import LabeledData
from .reading.prepare import Split

EXPLAINED, HALF = 0.97, 0.5  # of the variance
AVOIDED = 0.95  # of the errors
LEAST_ROWS = 30
LEAST_RARE = 8  # rows outside of the most frequent class: fewer may agree with a column by chance
_MOST_ROWS = 5000
_FOLDS = 5
_TREE: dict[str, int] = {"max_leaf_nodes": 32, "min_samples_leaf": 2, "random_state": 0}


@dataclasses.dataclass(frozen=True)
class Leak:
    """A column and the share of the target's variance, or of the baseline's errors, that it removes by itself."""

    column: str
    share: float

    def warning(self, data: LabeledData) -> str:
        what = f"the variance of {data.target}"
        if data.classes:
            answer = data.classes[int(np.bincount(data.y).argmax())]
            what = f"the errors of always answering {answer!r}"
        verb = "avoids" if data.classes else "explains"
        share = f"{np.floor(1000 * self.share) / 10:g}"  # never rounded up to 100
        return (
            f"{self.column} almost determines {data.target}: by itself it {verb} {share} % of {what}. Is it known at "
            f"prediction time? If not, leave it out: --drop {shlex.quote(self.column)}"
        )


def leaks(data: LabeledData, split: Split) -> tuple[Leak, ...]:
    """The worst first; of images and small tables nothing is said."""
    if split.preparation is None or data.frame is None:
        return ()
    rows = np.sort(np.concatenate([split.trained, split.rows]))
    x, y = split.preparation.transform(data.frame)[rows], data.y[rows]
    _, once = np.unique(np.column_stack([x, y]), axis=0, return_index=True)
    once = np.random.default_rng(0).permutation(once)[:_MOST_ROWS]
    x, y = x[once], y[once]
    rare = len(y) - np.bincount(y).max() if data.classes else len(y)
    if len(y) < LEAST_ROWS or rare < LEAST_RARE:
        return ()
    sources, judge = split.preparation.sources_(), _avoided if data.classes else _explained
    found = []
    for i, plan in enumerate(split.preparation.columns_):
        share = judge(x[:, sources == i], y)
        if share >= (AVOIDED if data.classes else EXPLAINED):
            found.append(Leak(plan.name, share))
    return tuple(sorted(found, key=lambda leak: -leak.share))


def _avoided(x: np.ndarray, y: np.ndarray) -> float:
    """The share of the errors of the most frequent class that a tree of these columns (n, k) avoids."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

    _, y = np.unique(y, return_inverse=True)
    plain, tree = 1 - np.bincount(y).max() / len(y), DecisionTreeClassifier(**_TREE)
    if 1 - np.mean(tree.fit(x, y).predict(x) != y) / plain < AVOIDED:
        return 0.0  # not even on the rows that it has seen
    # Rows of classes that are too rare for the folds are wrong, which is what a fold would make of them.
    kept = np.flatnonzero(np.bincount(y)[y] >= _FOLDS)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    wrong = np.ones(len(y), dtype=bool)
    wrong[kept] = cross_val_predict(tree, x[kept], y[kept], cv=folds) != y[kept]
    return float(1 - wrong.mean() / plain)


def _explained(x: np.ndarray, y: np.ndarray) -> float:
    """The share of the variance that a tree or a line explains: of the target or of its ranks, the larger."""
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.tree import DecisionTreeRegressor

    if np.ptp(y) == 0:
        return 0.0
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), np.finfo(float).tiny)
    folds = KFold(_FOLDS, shuffle=True, random_state=0)
    models, targets = (DecisionTreeRegressor(**_TREE), LinearRegression()), (y / y.std(), rankdata(y))
    if max(_r2(model.fit(x, one).predict(x), one) for model in models for one in targets) < EXPLAINED:
        return 0.0  # not even of the rows that it has seen
    found = [max(_r2(cross_val_predict(model, x, one, cv=folds), one) for model in models) for one in targets]
    return float(max(found)) if min(found) >= HALF else 0.0


def _r2(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(1 - np.mean((predicted - y) ** 2) / y.var())
