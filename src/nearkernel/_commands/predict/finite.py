"""One network of finite width: predicted order by order, and really trained."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import nearkernel as nk

from . import scores
from .reading.data import LabeledData
from .reading.prepare import Split

MOST_OUTPUTS = 6000  # rows x outputs: the kernel of a finite network has their square as entries
DEFAULT_WIDTH = 512
STEPS = 500  # of a training that has no end of its own


@dataclasses.dataclass(frozen=True)
class Finite:
    """Which finite network is asked about: its `order` or None, whether it is trained, its width and its seed."""

    order: int | None
    train: bool
    width: int
    seed: int


@dataclasses.dataclass(frozen=True)
class FiniteAnswer:
    """Outputs of one network, in target units; they have no spread."""

    name: str
    mean: np.ndarray  # (m, out)
    seconds: float
    figures: scores.Figures
    correction: float | None  # |z^I| / |z^F|, of the first order on
    distance: float | None = None  # from the really trained network, relative to its answers


def require_few(split: Split) -> None:
    """Refuses, before anything is computed, more rows than the kernel of a finite network can have."""
    count = split.y.size
    if count > MOST_OUTPUTS:
        rows = MOST_OUTPUTS // split.y.shape[1]
        raise ValueError(
            f"--order and --train: a finite network of {split.y.shape[1]} outputs and {len(split.x)} rows has a kernel "
            f"of {count} x {count}; at most {rows} rows: give --max-train {rows}."
        )


def finite_answers(
    finite: Finite,
    net: nk.MLP | nk.CNN,
    algorithm: Any,
    data: LabeledData,
    split: Split,
    say: Callable[[str], None],
) -> tuple[tuple[FiniteAnswer, ...], str]:
    """Every order up to the one asked for, then the trained network; and the training in words."""
    params = net.init(jax.random.key(finite.seed))
    words = ""
    if finite.train:
        algorithm, words = _trainable(net, params, algorithm, split)
    expanded = nk.expand(net, params, degree=3)
    found = []
    for order in range((0 if finite.order is None else finite.order) + 1):
        say(f"finite network, order {order}")
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the notes say it in words of the command
            solution = nk.solve(expanded, split.x, split.y, algorithm, order)
            if not solution.ok:
                raise ValueError(f"--lr {algorithm.lr:g}: training {solution.status}; give a smaller --lr.")
            answer = solution.predict(split.x_new)
        found.append(_answer(f"order {order}", answer.mean, start, answer.correction, data, split))
    if not finite.train:
        return tuple(found), words
    say(f"finite network, trained for {algorithm.steps:.0f} steps")
    start = time.perf_counter()
    run = nk.simulate(net, params, split.x, split.y, algorithm, nk.Record(every=algorithm.steps))
    if not run.ok:
        raise ValueError(f"--train: training {run.status}; give a smaller --lr.")
    trained = _answer("trained", np.asarray(net(run.params, split.x_new)), start, None, data, split)
    centered = trained.mean - split.center
    return (
        *(
            dataclasses.replace(
                each, distance=float(np.linalg.norm(each.mean - trained.mean) / np.linalg.norm(centered))
            )
            for each in found
        ),
        trained,
    ), words


def _trainable(
    net: nk.MLP | nk.CNN, params: Any, algorithm: Any, split: Split
) -> tuple[nk.GradientDescent, str]:
    """Gradient descent of finitely many steps, close to what was asked for: both sides then stop at the same step."""
    if isinstance(algorithm, nk.GradientDescent):
        lr, steps = algorithm.lr, algorithm.steps
    else:
        lr = 1.0 / nk.solve(nk.expand(net, params), split.x, split.y).lambda_max
        steps = math.ceil(algorithm.time / lr) if math.isfinite(algorithm.time) else math.inf
    steps = STEPS if math.isinf(steps) else steps
    return nk.GradientDescent(lr, steps), f"gradient descent for {steps:.0f} steps, learning rate {lr:.3g}"


def _answer(
    name: str, mean: np.ndarray, start: float, correction: float | None, data: LabeledData, split: Split
) -> FiniteAnswer:
    mean = split.mean_in_target_units(mean.reshape(len(mean), -1))
    seconds = time.perf_counter() - start
    if data.classes:
        figures = scores.of_classification(mean.argmax(axis=1), None, split.truth)
    else:
        figures = scores.of_regression(mean[:, 0], None, split.truth)
    return FiniteAnswer(name, mean, seconds, figures, correction)
