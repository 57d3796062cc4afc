"""How a forecast of networks that learn features ended, in words."""

import numpy as np

from ..._base.status import Status, StatusKind
from ...dynamics.algorithms.spectral import GradientFlow
from .limit import Limit
from .problem import Problem

_LARGE = 0.1  # errors over outputs that are worth a word


def rich_status(problem: Problem, limit: Limit, time: float, mean: np.ndarray, error: np.ndarray) -> Status:
    """`finished`, `diverged`, or `not_converged` if the neurons were too few."""
    word = "time" if isinstance(problem.algorithm, GradientFlow) else "step"
    if limit.failure and time >= limit.times[limit.failed]:
        at = f"{word} {limit.times[limit.failed]:g}"
        if limit.failure == "diverged":
            return Status(StatusKind.diverged, f"diverged at {at}: {_rate(problem, limit)}")
        return Status(
            StatusKind.not_converged,
            f"out of directions at {at}: {problem.neurons} neurons are too few for fields that change this much: use "
            f"more neurons or a larger tol in nk.MeanField, or a smaller lr ({_rate(problem, limit)})",
        )
    parts = [f"stopped at {word} {time:g}"]
    size = float(np.sqrt(np.mean(mean**2)))
    if np.sqrt(np.mean(error**2)) > _LARGE * size > 0:
        parts.append(f"errors are {np.sqrt(np.mean(error**2)) / size:.0%} of the outputs: use more neurons")
    if not limit.checked:
        parts.append("errors do not include the effect of tol, because the neurons are too few to resolve it")
    return Status(StatusKind.finished, "; ".join(parts))


def _rate(problem: Problem, limit: Limit) -> str:
    """The step over the largest stable one, of the kernel as training has moved it."""
    value, step = limit.sharpness
    if isinstance(problem.algorithm, GradientFlow):
        return f"the largest eigenvalue of the kernel was {problem.speed * value:.4g} at step {step}"
    rate = float(problem.algorithm.lr) * problem.speed * value  # type: ignore[attr-defined]
    bound = 2.0 * (1.0 + float(getattr(problem.algorithm, "momentum", 0.0)))
    return f"lr * lambda_max of the current kernel was {rate:.3g} at step {step}, and the limit is {bound:g}"
