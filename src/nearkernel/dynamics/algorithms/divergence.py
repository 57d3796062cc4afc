"""When does a run of training count as divergent? One rule for every place that trains."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike

RISE = 0.01  # of the loss at the start: what counts as a rise
_NOISY_RISE = 9.0  # the same for random batches
_FACTOR = 3.0  # of growth between sixths of a run
ROUNDING = 64 * np.finfo(float).eps  # of the loss of outputs 0: below, a loss is rounding


def rounding_of(dtype: DTypeLike) -> float:
    """`ROUNDING` for numbers of a type."""
    return 64 * float(np.finfo(dtype).eps)


def growth(
    losses: ArrayLike, *, zero: float = 0.0, noisy: bool = False, inertial: bool = False
) -> str | None:
    """What to say of a run whose `losses`, in order of time, show that it cannot have converged; else None.

    1. They are not all finite.
    2. The last is above the first by more than 1%. A catapult, which rises and falls again below its start, passes.
       Random batches (`noisy`) keep a fitted model in motion, at a stationary loss above that of its start. There
       the mean over the last tenth must exceed the first loss tenfold: the stationary loss of SGD on a linear
       model does so only within about a tenth of the largest stable rate.
    3. They grow threefold or more from the fourth sixth to the fifth, and again to the last, though they may still be
       below the first. For a linear model the loss is a sum of powers of the step, which never falls again once it
       rises. Not where the loss may rise for other reasons: by noise, or by momentum (`inertial`).

    A last loss below 64 eps `zero`, where `zero` is the loss of outputs 0, is rounding, and passes.
    """
    rounding = _rounding(np.asarray(losses))
    losses = np.asarray(losses, dtype=np.float64)
    if not np.isfinite(losses).all():
        return "the loss is no longer finite"
    first, last = _ends(losses, noisy)
    if abs(last) <= rounding * abs(zero):
        return None
    if last - first > (_NOISY_RISE if noisy else RISE) * abs(first):
        return f"the loss rose from {first:.3g} to {last:.3g}"
    sixth = len(losses) // 6
    if noisy or inertial or not sixth:
        return None
    before, middle, end = losses[-3 * sixth :].reshape(3, sixth).mean(axis=1)
    if before > 0 and middle > _FACTOR * before and end > _FACTOR * middle:
        return f"the loss was growing at the end, from {losses[-3 * sixth :].min():.3g} to {last:.3g}"
    return None


def judged(
    status: Status,
    losses: Sequence[float] | np.ndarray,
    where: str,
    *,
    zero: float,
    noisy: bool = False,
    inertial: bool = False,
) -> Status:
    """`status`, or that a run diverged; `where` is its end in words, such as "by step 100"."""
    losses = np.asarray(losses)
    words = growth(losses, zero=zero, noisy=noisy, inertial=inertial)
    if words is not None:
        return Status(StatusKind.diverged, f"diverged: {words} {where}")
    first, last = _ends(losses, noisy)
    if noisy and last - first > RISE * abs(first) and abs(last) > _rounding(losses) * abs(zero):
        return Status(
            status.kind, f"{status}; the loss rose from {first:.3g} to {last:.3g}, which noise can explain"
        )
    return status


def _rounding(losses: np.ndarray) -> float:
    """Of losses in the precision they come in, float64 unless they are of a narrower one."""
    return rounding_of(losses.dtype) if np.issubdtype(losses.dtype, np.floating) else ROUNDING


def _ends(losses: np.ndarray, noisy: bool) -> tuple[float, float]:
    """The first loss and the last, or the mean over the last tenth."""
    with np.errstate(over="ignore"):
        return losses[0], np.mean(losses[-max(1, len(losses) // 10) :]) if noisy else losses[-1]
