"""When does a run of training count as divergent? One rule for every place that trains."""

from typing import Any

import numpy as np

from .._status import Status, StatusKind

RISE = 0.01  # of the loss at the start: what counts as a rise
_NOISY_RISE = 9.0  # the same for random batches
_FACTOR = 3.0  # of growth between sixths of a run
_ROUNDING = 64 * np.finfo(float).eps  # of the loss of outputs 0: below, a loss is rounding


def growth(losses: Any, *, zero: float = 0.0, noisy: bool = False) -> str | None:
    """What to say of a run whose `losses`, in order of time, show that it cannot have converged; else None.

    1. They are not all finite.
    2. The last is above the first by more than 1%. A catapult, which rises and falls again below its start, passes.
       Random batches (`noisy`) keep a fitted model in motion, at a stationary loss above that of its start. There
       the mean over the last tenth must exceed the first loss tenfold: the stationary loss of stable SGD on a
       linear model does so only within about a tenth of the largest stable rate.
    3. They grow threefold or more from the fourth sixth to the fifth, and again to the last, though they may still be
       below the first. Oscillations of the heavy ball, which are bounded, do not grow so steadily. Not if `noisy`.

    A last loss below 64 eps `zero`, where `zero` is the loss of outputs 0, is rounding, and passes.
    """
    losses = np.asarray(losses, dtype=np.float64)
    if not np.isfinite(losses).all():
        return "the loss left the finite numbers"
    first, last = losses[0], losses[-1]
    if noisy:
        with np.errstate(over="ignore"):
            last = losses[-max(1, len(losses) // 10) :].mean()
    if not last > _ROUNDING * abs(zero):
        return None
    if last - first > (_NOISY_RISE if noisy else RISE) * abs(first):
        return f"the loss rose from {first:.3g} to {last:.3g}"
    sixth = len(losses) // 6
    if noisy or not sixth:
        return None
    before, middle, end = losses[-3 * sixth :].reshape(3, sixth).mean(axis=1)
    if before > 0 and middle > _FACTOR * before and end > _FACTOR * middle:
        return f"the loss was growing at the end, from {losses[-3 * sixth :].min():.3g} to {last:.3g}"
    return None


def judged(status: Status, losses: Any, where: str, *, zero: float = 0.0, noisy: bool = False) -> Status:
    """`status`, or that a run diverged; `where` is its end in words, such as "in 100 steps"."""
    words = growth(losses, zero=zero, noisy=noisy)
    return status if words is None else Status(StatusKind.diverged, f"diverged: {words} {where}")
