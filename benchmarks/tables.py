"""`AutoRegressor` and `AutoClassifier` on real tables, beside the usual methods: mean score, rank, seconds.

Every set is split 75 : 25, with at most 500 rows to learn from and 2,000 to test; every method sees the same prepared
columns (`PrepareTable`, fitted on the training rows). Half of the sets, chosen by a hash of their names, is held out:
it is run with `--half held-out`, and nothing was decided on it.

    python benchmarks/tables.py --half seen            # or held-out, or all
    python benchmarks/tables.py --quick                # six sets
    python benchmarks/tables.py --quick --with-tuned   # and whether a wider search would find better

TabPFN is not among the rivals: it fetches its weights from a hub. xRFM joins where it imports (`--with-xrfm`).
"""

import argparse
import itertools
import json
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from _table_sets import TableSet, held_out, load, names
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from nearkernel.estimators import AutoClassifier, AutoRegressor, PrepareTable
from nearkernel.estimators.auto import auto as _auto
from nearkernel.estimators.auto import blend as _blend
from nearkernel.estimators.auto.members import Member

TRAIN, TEST, TREES = 500, 2000, 300
MOST_GP_CLASSES = 3  # one-against-all processes of more classes take minutes per set
QUICK = 6
OURS = "Auto"


def scaled(model):
    return make_pipeline(StandardScaler(), model)


def classifiers(classes: int, seed: int) -> dict[str, Callable]:
    found = {
        OURS: lambda: AutoClassifier(),
        "random forest": lambda: RandomForestClassifier(TREES, random_state=seed),
        "histogram boosting": lambda: HistGradientBoostingClassifier(random_state=seed),
        "RBF SVM, tuned": lambda: scaled(
            GridSearchCV(SVC(), {"C": [0.3, 1, 3, 10, 100], "gamma": ["scale", 0.01, 0.1]}, cv=3)
        ),
        "logistic, tuned": lambda: scaled(LogisticRegressionCV(cv=3, Cs=6, max_iter=300)),
    }
    if classes <= MOST_GP_CLASSES:
        found["Gaussian process"] = lambda: scaled(
            GaussianProcessClassifier(ConstantKernel(1.0) * RBF(3.0), max_iter_predict=30, random_state=seed)
        )
    return found


def regressors(seed: int) -> dict[str, Callable]:
    grid = {"svr__C": [0.3, 1, 10, 100], "svr__gamma": ["scale", 0.01, 0.1], "svr__epsilon": [0.05]}
    return {
        OURS: lambda: AutoRegressor(),
        "random forest": lambda: RandomForestRegressor(TREES, random_state=seed),
        "histogram boosting": lambda: HistGradientBoostingRegressor(random_state=seed),
        "RBF SVM, tuned": lambda: _Standardized(GridSearchCV(scaled(SVR()), grid, cv=3)),
        "ridge, tuned": lambda: scaled(RidgeCV(np.logspace(-3, 4, 15))),
        "Gaussian process": lambda: scaled(
            GaussianProcessRegressor(
                ConstantKernel(1.0) * RBF(3.0) + WhiteKernel(0.1), normalize_y=True, random_state=seed
            )
        ),
    }


class _Standardized:
    """A regressor of targets of mean 0 and variance 1."""

    def __init__(self, model):
        self.model = model

    def fit(self, x, y):
        self.location, self.scale = y.mean(), y.std() or 1.0
        self.model.fit(x, (y - self.location) / self.scale)
        return self

    def predict(self, x):
        return self.model.predict(x) * self.scale + self.location


def xrfm(task: str, seed: int):
    """xRFM with its own settings, a fifth of the rows to validate with."""
    import torch
    from xrfm import xRFM

    class Model:
        def fit(self, x, y):
            self.location, self.scale = x.mean(axis=0), np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
            self.classes, index = (
                np.unique(y, return_inverse=True) if task == "classification" else (None, None)
            )
            self.middle, self.spread = (0.0, 1.0) if task == "classification" else (y.mean(), y.std())
            target = index if task == "classification" else ((y - self.middle) / self.spread)[:, None]
            a, b, c, d = train_test_split(
                (x - self.location) / self.scale, target, test_size=0.2, random_state=seed
            )
            kind = np.int64 if task == "classification" else np.float32
            self.model = xRFM(
                device=torch.device("cpu"),
                verbose=False,
                tuning_metric="accuracy" if task == "classification" else "mse",
            )
            self.model.fit(a.astype(np.float32), c.astype(kind), b.astype(np.float32), d.astype(kind))
            return self

        def predict(self, x):
            found = np.asarray(self.model.predict(((x - self.location) / self.scale).astype(np.float32)))
            if self.classes is None:
                return found.ravel() * self.spread + self.middle
            return self.classes[found.ravel().astype(int)]

    return Model()


class TunedAuto:
    """Auto with a wider search: what cross-validation prefers of more kernels, a learned metric or none, and scales.

    Each variant is a pair of members and a choice of the metric; the plain one is among them.
    """

    WIDE = (
        *itertools.starmap(Member, itertools.product(("ntk", "nngp"), (1, 2, 3, 5), ("plain", "normal"))),
        *itertools.starmap(Member, itertools.product(("laplace",), (0.25, 0.5, 1, 1.5, 3, 6), ("plain", "normal"))),
    )  # fmt: skip
    FOLDS = 3

    def __init__(self, task: str, seed: int):
        self.task, self.seed = task, seed

    def fit(self, x, y):
        variants = list(itertools.product((_blend.ALL, self.WIDE), (True, False), ("columns", "shared")))
        kind = StratifiedKFold if self.task == "classification" else KFold
        folds = list(kind(self.FOLDS, shuffle=True, random_state=self.seed % 2**31).split(x, y))
        losses = []
        for variant in variants:
            found = [self._fitted(variant, x[a], y[a]).score(x[b], y[b]) for a, b in folds]
            losses.append(-np.mean(found))
        self.model = self._fitted(variants[int(np.argmin(losses))], x, y)
        return self

    def _fitted(self, variant, x, y):
        members, metric, scale = variant

        def chosen(x, y, _, *others):
            return _blend.blended(x, y, metric, *others)

        make = AutoClassifier if self.task == "classification" else AutoRegressor
        with mock.patch.object(_blend, "ALL", members), mock.patch.object(_auto, "blended", chosen):
            return make(scale=scale).fit(x, y)

    def predict(self, x):
        return self.model.predict(x)


def scores_of(each: TableSet, split: int, with_xrfm: bool, with_tuned: bool) -> dict[str, dict[str, float]]:
    """Accuracy, or R2, and seconds of CPU of every method on one split."""
    from nearkernel.estimators.tables.frames import frame_of

    seed = zlib.crc32(f"{each.name} {split}".encode())
    rows = np.arange(len(each.y))
    labels = each.y if each.task == "classification" else None
    if labels is not None and np.unique(labels, return_counts=True)[1].min() < 2:
        labels = None
    train, test = train_test_split(rows, test_size=0.25, random_state=seed, stratify=labels)
    random = np.random.default_rng(seed)
    train = np.sort(random.permutation(train)[:TRAIN])
    test = np.sort(random.permutation(test)[:TEST])
    frame = frame_of(each.columns)
    prepare = PrepareTable().fit({name: column.taken(train) for name, column in frame.items()})
    x = prepare.transform(frame)
    classes = len(np.unique(each.y[train]))
    methods = classifiers(classes, seed) if each.task == "classification" else regressors(seed)
    if with_xrfm:
        methods["xRFM"] = lambda: xrfm(each.task, seed)
    if with_tuned:
        methods = {OURS: methods[OURS], f"{OURS}, tuned": lambda: TunedAuto(each.task, seed)}
    found = {}
    for name, make in methods.items():
        start = time.process_time()
        try:
            predicted = make().fit(x[train], each.y[train]).predict(x[test])
        except Exception as error:
            print(f"  {each.name}: {name} failed: {str(error)[:90]}", file=sys.stderr)
            continue
        score = float(np.mean(predicted == each.y[test]))
        if each.task == "regression":
            score = 1 - float(np.mean((predicted - each.y[test]) ** 2) / np.var(each.y[test]))
        found[name] = {"score": score, "seconds": time.process_time() - start}
    return found


def table(results: dict[str, dict[str, dict[str, float]]], task: str) -> str:
    """Mean score, mean rank and the share of sets within 95 % of the best, over sets that all methods of a row did."""
    sets = [name for name, each in results.items() if each["task"] == task]
    if not sets:
        return ""
    methods = list(dict.fromkeys(m for name in sets for m in results[name]["methods"]))
    common = [m for m in methods if all(m in results[name]["methods"] for name in sets)]
    score = np.array([[max(results[name]["methods"][m]["score"], 0.0) for m in common] for name in sets])
    rank = (
        1
        + (score[:, None, :] > score[:, :, None]).sum(axis=2)
        + 0.5 * ((score[:, None, :] == score[:, :, None]).sum(axis=2) - 1)
    )
    near = score >= 0.95 * score.max(axis=1, keepdims=True)
    seconds = np.array([[results[name]["methods"][m]["seconds"] for m in common] for name in sets])
    what = "accuracy, %" if task == "classification" else "R2, %"
    lines = [
        f"| {task}, {len(sets)} sets | mean {what} | mean rank | best or tied | within 95 % of the best | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    wins = (score == score.max(axis=1, keepdims=True)).sum(axis=0)
    for i in np.argsort(rank.mean(axis=0)):
        lines.append(
            f"| {common[i]} | {100 * score[:, i].mean():.1f} | {rank[:, i].mean():.2f} | {wins[i]} | "
            f"{100 * near[:, i].mean():.0f} % | {seconds[:, i].mean():.1f} |"
        )
    for m in (m for m in methods if m not in common):
        shared = [i for i, name in enumerate(sets) if m in results[name]["methods"]]
        theirs = np.mean([max(results[sets[i]]["methods"][m]["score"], 0.0) for i in shared])
        ours = score[shared, common.index(OURS)].mean()
        lines.append(
            f"| {m}, on {len(shared)} of the sets | {100 * theirs:.1f} ({OURS} {100 * ours:.1f}) | | | | |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--half", choices=("seen", "held-out", "all"), default="seen")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="six sets")
    parser.add_argument(
        "--only", default="", help="sets whose names contain this, or one of several with commas"
    )
    parser.add_argument("--with-xrfm", action="store_true")
    parser.add_argument(
        "--with-tuned", action="store_true", help="Auto against a wider search of itself alone"
    )
    parser.add_argument("--out", type=Path, help="JSON of every score")
    arguments = parser.parse_args()
    chosen = [n for n in names() if arguments.half == "all" or held_out(n) == (arguments.half == "held-out")]
    chosen = [n for n in chosen if any(part in n for part in arguments.only.split(","))]
    if arguments.quick:
        chosen = chosen[:: max(1, len(chosen) // QUICK)][:QUICK]
    warnings.simplefilter("ignore")
    results: dict = {}
    for name in chosen:
        each = load(name)
        if each is None:
            continue
        begin = time.perf_counter()
        with threadpool_limits(1):
            runs = [
                scores_of(each, split, arguments.with_xrfm, arguments.with_tuned)
                for split in range(arguments.splits)
            ]
        common = set.intersection(*(set(run) for run in runs))
        methods = {
            m: {key: float(np.mean([run[m][key] for run in runs])) for key in ("score", "seconds")}
            for m in runs[0]
            if m in common
        }
        results[name] = {"task": each.task, "methods": methods}
        shown = "  ".join(f"{m} {value['score']:.3f}" for m, value in methods.items())
        print(
            f"{name} ({len(each.y)} rows, {time.perf_counter() - begin:.0f} s): {shown}",
            file=sys.stderr,
            flush=True,
        )
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1) + os.linesep)
    for task in ("classification", "regression"):
        print(table(results, task), end="\n\n")


if __name__ == "__main__":
    main()
