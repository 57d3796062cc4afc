"""When to stop training: the error of wide networks along it, by leave-one-out, and what that advises."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import nearkernel as nk

from .reading.data import LabeledData
from .reading.prepare import Split
from .scores import mean_score
from .shared import Shared

_POINTS = 25
_SIGMAS = 2.0
_WORTH = 0.97  # of the loss: what is saved above is not worth an advice


@dataclasses.dataclass(frozen=True)
class TrainingCurve:
    """Leave-one-out error of the trained network's mean along training: error rate, or root mean squared error.

    No test row is looked at, so that the best time may be used. `constant` is the error of the most frequent class or
    of the mean, which is all that is known before training. `advice` is empty unless stopping early is
    better than training to the end, by 3 % and by two standard errors.
    """

    axis: str
    at: np.ndarray  # (t,)
    error: np.ndarray  # (t,)
    constant: float
    early: bool  # whether stopping early pays, and is better than not training at all
    advice: str

    @property
    def best(self) -> int:
        return int(self.error.argmin())


def along_training(kernel: Shared, algorithm: Any, data: LabeledData, split: Split) -> TrainingCurve | None:
    """Errors at times spread evenly in their logarithm, from before the first mode is learned to after most are."""
    if isinstance(algorithm, nk.Ridge):
        return None  # a minimum, however it is reached
    trace = float(np.sum(kernel.diag(split.x)))
    # The largest eigenvalue is below the trace; few of those that matter are 1e4 times smaller than the average one.
    at = np.geomspace(0.01, 1e4 * len(split.x), _POINTS) / trace
    axis = "time of gradient flow"
    if isinstance(algorithm, nk.GradientDescent):
        at = np.unique(np.maximum(1, np.rint(at / algorithm.lr)))
        axis = "steps of gradient descent"
    solution = nk.solve(
        kernel, split.x, split.y, algorithm.at(at[0])
    )  # not at the end, so that all times are cheap
    truth = split.mean_in_target_units(split.y)
    losses = np.stack(
        [
            _losses(split.mean_in_target_units(solution.leave_one_out(moment).predictions), truth, data)
            for moment in at
        ]
    )
    constant = _losses(split.mean_in_target_units(np.zeros_like(split.y)), truth, data)
    error, plain = (
        each if data.classes else np.sqrt(each) for each in (losses.mean(axis=1), constant.mean())
    )
    counted = isinstance(algorithm, nk.GradientDescent)
    moments = [f"{moment:.0f} steps" if counted else f"a time of {moment:.3g}" for moment in at]
    early, advice = advised(losses, constant, moments, bool(data.classes))
    return TrainingCurve(axis, at, error, float(plain), early, advice)


def advised(losses: np.ndarray, constant: np.ndarray, moments: list[str], classes: bool) -> tuple[bool, str]:
    """Whether stopping early pays, and in words, from the losses of rows at each time (t, n), and of the constant."""
    best = int(losses.mean(axis=1).argmin())
    if not _better(losses[best], losses[-1]) or losses[best].mean() > _WORTH * losses[-1].mean():
        return False, ""
    if not _better(losses[best], constant):
        plain = "the most frequent class" if classes else "the mean"
        return False, (
            f"the NTK has nothing to add over {plain}: trained to the end it does worse, and stopped early no better "
            "(by leave-one-out)"
        )
    return True, f"the NTK would do better if training stopped early, at {moments[best]} (by leave-one-out)"


def _better(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether the losses of rows (n,) are smaller, beyond chance."""
    gain = mean_score(other - one)
    return gain is not None and gain.value > _SIGMAS * np.nan_to_num(gain.sem)


def _losses(found: np.ndarray, truth: np.ndarray, data: LabeledData) -> np.ndarray:
    """Of each row: whether the class is wrong, or the squared error."""
    if data.classes:
        return (found.argmax(axis=1) != truth.argmax(axis=1)).astype(float)
    return np.sum((found - truth) ** 2, axis=1)
