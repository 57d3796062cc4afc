r"""How a model is trained: small frozen objects that know their effect on one eigenvalue.

With a linear model and the loss 1/2 sum (z - y)^2, the residual along an eigenvector of the kernel decays by a
factor p(lam), and the prediction is z - k V g(lam) V^T e with the filter g = (1 - p)/lam.
"""

import abc
import dataclasses
import math
from typing import Any

import equinox as eqx
import numpy as np

from .._check import finite_number, is_traced, positive, real_number, shown, whole
from ._ridges import Ridges, one_ridge, ridges_of_descent, ridges_of_flow


class AbstractAlgorithm(eqx.Module):
    """Moves parameters."""


class SpectralAlgorithm(AbstractAlgorithm):
    """One whose effect on a linear model is a function of the kernel's eigenvalues."""

    @abc.abstractmethod
    def filter(self, lam: np.ndarray) -> np.ndarray:
        """g(lam) for eigenvalues lam > 0."""

    def decay(self, lam: np.ndarray) -> np.ndarray:
        """p(lam) = 1 - lam g(lam), the factor left of the residual."""
        return 1.0 - lam * self.filter(lam)

    def end(self) -> float:
        """The time or step at which it stops; infinity if it goes to its end, or knows no time."""
        return math.inf

    def limit(self) -> float:
        """The largest stable eigenvalue; infinity if all are."""
        return math.inf

    def advice(self, lam_max: float) -> str:
        """What to say if `lam_max` is beyond `limit()`."""
        return ""

    def shift(self) -> float | None:
        """The ridge if g(lam) = 1/(lam + ridge), which one Cholesky factor solves; else None."""
        return None

    def ridges(self, lam_max: float) -> Ridges | None:
        """The decay on [0, lam_max] as a short sum of complex ridges; None if it is not known as one."""
        shift = self.shift()
        return None if shift is None else one_ridge(shift)


class TimedAlgorithm(SpectralAlgorithm):
    """One that can be stopped at any time, or after any number of steps."""

    unit: eqx.AbstractClassVar[str]  # in which time is counted: "time" or "step"

    @abc.abstractmethod
    def at(self, time: float) -> "TimedAlgorithm":
        """The same, stopped at another `time` (steps)."""


def _time(value: Any, name: str) -> Any:
    return positive(value, name, zero=True, finite=False)


class GradientDescent(TimedAlgorithm):
    """theta <- theta - lr grad L, full batch; with `momentum` b, theta's last step times b is added (heavy ball).

    On a linear model g(lam) = (1 - (1 - lr lam)^steps) / lam without momentum.

    **Arguments:** `lr` > 0; `steps`, infinite by default; `momentum` in [0, 1).
    Stable as long as lr * lambda_max < 2 (1 + momentum).
    """

    lr: float
    steps: float = math.inf
    momentum: float = 0.0
    unit = "step"

    def __check_init__(self):
        if callable(self.lr) or (np.ndim(self.lr) == 1 and not is_traced(self.lr)):
            raise TypeError(
                f"`lr` must be one number; got {shown(self.lr)}: for a rate that changes, use nk.SGD(lr, "
                "batch_size=None, steps=..., schedule=...), with a function of the step or one factor per step."
            )
        positive(self.lr, "lr")
        if real_number(self.steps, "steps") != math.inf:
            finite_number(self.steps, "steps")
            whole(int(self.steps) if float(self.steps).is_integer() else self.steps, "steps", 0, most=10**150)
        if not 0 <= real_number(self.momentum, "momentum") < 1:
            raise ValueError(f"`momentum` must be at least 0 and below 1; got {self.momentum}.")

    def at(self, time: float) -> "GradientDescent":
        """The same after `time` steps."""
        return dataclasses.replace(self, steps=time)

    def end(self) -> float:
        return self.steps

    def limit(self) -> float:
        return 2 * (1 + self.momentum) / self.lr

    def advice(self, lam_max: float) -> str:
        bound, factor = 2 * (1 + self.momentum) / lam_max, "2(1+momentum)" if self.momentum else "2"
        return f"diverges: lr = {self.lr:.6g} exceeds {factor}/lambda_max = {bound:.6g}"

    def filter(self, lam: np.ndarray) -> np.ndarray:
        if math.isinf(self.steps):
            return 1.0 / lam
        with np.errstate(over="ignore", invalid="ignore"):
            if self.momentum:
                return _heavy_ball(lam, self.lr, self.momentum, int(self.steps))
            rate = self.lr * lam
            small = rate < 1.0
            slow = -np.expm1(self.steps * np.log1p(-np.where(small, rate, 0.0)))
            return np.where(small, slow, 1.0 - (1.0 - rate) ** self.steps) / lam

    def shift(self) -> float | None:
        return 0.0 if math.isinf(self.steps) else None

    def ridges(self, lam_max: float) -> Ridges | None:
        if math.isinf(self.steps):
            return one_ridge(0.0)
        if self.steps == 0:
            return one_ridge(math.inf)
        return ridges_of_descent(self.lr, int(self.steps), self.momentum, lam_max)


def _heavy_ball(lam: np.ndarray, lr: float, momentum: float, steps: int) -> np.ndarray:
    """g_t of u <- b u + lr (1 - lam g), g <- g + u, as a power of the matrix that moves (g, u, 1)."""
    matrix = np.zeros((len(lam), 3, 3))
    matrix[:, 1] = np.stack([-lr * lam, np.full_like(lam, momentum), np.full_like(lam, lr)], axis=1)
    matrix[:, 0] = matrix[:, 1] + np.array([1.0, 0.0, 0.0])
    matrix[:, 2, 2] = 1.0
    power, bits = np.broadcast_to(np.eye(3), matrix.shape), steps
    while bits:  # square and multiply: no defective eigenvectors to fear
        if bits & 1:
            power = power @ matrix
        matrix, bits = matrix @ matrix, bits >> 1
    return power[:, 0, 2]


class GradientFlow(TimedAlgorithm):
    """d theta/dt = -grad L; with `friction` c, the inertial flow theta'' + c theta' = -grad L from rest.

    On a linear model g(lam) = (1 - exp(-lam time)) / lam without friction.

    **Arguments:** `time`, infinite by default; `friction` > 0, or None for no inertia. Gradient descent with
    momentum b and small lr is the inertial flow at time steps * sqrt(lr) with friction (1 - b)/sqrt(lr).
    """

    time: float = math.inf
    friction: float | None = None
    unit = "time"

    def __check_init__(self):
        _time(self.time, "time")
        if self.friction is not None:
            positive(self.friction, "friction")

    def at(self, time: float) -> "GradientFlow":
        """The same at `time`."""
        return dataclasses.replace(self, time=time)

    def end(self) -> float:
        return self.time

    def filter(self, lam: np.ndarray) -> np.ndarray:
        if math.isinf(self.time):
            return 1.0 / lam
        if self.friction is None:
            return -np.expm1(-lam * self.time) / lam
        half, t = (
            0.5 * self.friction,
            self.time,
        )  # 1 - lam g = p with p'' + c p' + lam p = 0, p(0) = 1, p'(0) = 0
        root = np.sqrt(half**2 - lam.astype(complex))
        critical = np.abs(root) < 1e-7 * half
        fast = np.where(critical, half, root) + half
        slow = lam / fast  # half - root, without the cancellation
        found = (np.expm1(-fast * t) / fast - np.expm1(-slow * t) / slow) / (fast - slow + critical)
        return np.where(critical, (1.0 - (1.0 + half * t) * np.exp(-half * t)) / lam, found.real)

    def shift(self) -> float | None:
        return 0.0 if math.isinf(self.time) else None

    def ridges(self, lam_max: float) -> Ridges | None:
        if math.isinf(self.time):
            return one_ridge(0.0)
        if self.time == 0:
            return one_ridge(math.inf)
        return None if self.friction is not None else ridges_of_flow(self.time)


class DirectOptimization(SpectralAlgorithm):
    """The solution k K^-1 y itself, g(lam) = 1/lam: for a linear model the end of all gradient methods."""

    def filter(self, lam: np.ndarray) -> np.ndarray:
        return 1.0 / lam

    def shift(self) -> float | None:
        return 0.0


class Ridge(SpectralAlgorithm):
    """Minimizer of the loss plus strength/2 |theta - theta_0|^2; strength 0 is the minimum norm.

    On a linear model g(lam) = 1/(lam + strength).
    """

    strength: float = 0.0

    def __check_init__(self):
        positive(self.strength, "strength", zero=True)

    def filter(self, lam: np.ndarray) -> np.ndarray:
        return 1.0 / (lam + self.strength)

    def shift(self) -> float | None:
        return self.strength
