r"""How a model is trained: small frozen objects that know their effect on one eigenvalue.

With a linear model and the loss $\frac12 \sum (z - y)^2$, the residual $e$ along an eigenvector of the kernel decays by
a factor $p(\lambda)$, and the prediction is $z - k\, V g(\lambda) V^\top e$ with the filter $g = (1 - p)/\lambda$.
"""

import abc
import dataclasses
import math

import equinox as eqx
import numpy as np

from ..._base.check import finite_number, is_traced, positive, real_number, shown, whole
from .ridges import Ridges, one_ridge, ridges_of_descent, ridges_of_flow


class AbstractAlgorithm(eqx.Module):
    """A training algorithm."""


class SpectralAlgorithm(AbstractAlgorithm):
    """An algorithm that acts on a linear model through a filter of the kernel's eigenvalues."""

    @abc.abstractmethod
    def filter(self, lam: np.ndarray) -> np.ndarray:
        r"""The filter $g(\lambda)$ for eigenvalues `lam` > 0."""

    def decay(self, lam: np.ndarray) -> np.ndarray:
        r"""The factor $1 - \lambda\, g(\lambda)$ by which the residual along eigenvalues `lam` has decayed."""
        return 1.0 - lam * self.filter(lam)

    def end(self) -> float:
        """The time or step at which it stops; infinity if it runs to convergence or has no time."""
        return math.inf

    def limit(self) -> float:
        """The largest stable eigenvalue; infinity if all eigenvalues are stable."""
        return math.inf

    def advice(self, lam_max: float) -> str:
        """The message if `lam_max` exceeds `limit()`."""
        return ""

    def shift(self) -> float | None:
        r"""The ridge $s$ if $g(\lambda) = 1/(\lambda + s)$, which one Cholesky factorization solves; otherwise None."""
        return None

    def ridges(self, lam_max: float) -> Ridges | None:
        """The decay on [0, `lam_max`] as a short sum of complex ridges; None if no such sum is known."""
        shift = self.shift()
        return None if shift is None else one_ridge(shift)


class TimedAlgorithm(SpectralAlgorithm):
    """An algorithm that can be stopped at any time or after any number of steps."""

    unit: eqx.AbstractClassVar[str]  # in which time is counted: "time" or "step"

    @abc.abstractmethod
    def at(self, time: float) -> "TimedAlgorithm":
        """The same algorithm, stopped at another `time` (number of steps)."""


def _time(value: float, name: str) -> float:
    return positive(value, name, zero=True, finite=False)


class GradientDescent(TimedAlgorithm):
    r"""Full-batch gradient descent, $\theta \leftarrow \theta - \eta\, \nabla L$, optionally with heavy-ball
    momentum.

    On a linear model the filter without momentum is $g(\lambda) = (1 - (1 - \eta \lambda)^{\text{steps}}) / \lambda$.
    It is stable if $\eta\, \lambda_{\max} < 2 (1 + \text{momentum})$.

    **Arguments:** `lr`, $\eta$ > 0; `steps`, infinite by default; `momentum` in [0, 1), the fraction of the last step
    that is added.
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
        """The same algorithm after `time` steps."""
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
    r"""Gradient flow, $\dot\theta = -\nabla L$, optionally with inertia and friction.

    With `friction` $c$ it is the inertial flow $\ddot\theta + c\,\dot\theta = -\nabla L$ from rest. On a linear model
    the filter without inertia is $g(\lambda) = (1 - e^{-\lambda t}) / \lambda$.

    **Arguments:** `time`, infinite by default; `friction` > 0, or None for no inertia. Gradient descent with momentum
    $b$ and a small learning rate $\eta$ is the inertial flow at time $\text{steps} \cdot \sqrt\eta$ with friction $(1
    - b)/\sqrt\eta$.
    """

    time: float = math.inf
    friction: float | None = None
    unit = "time"

    def __check_init__(self):
        _time(self.time, "time")
        if self.friction is not None:
            positive(self.friction, "friction")

    def at(self, time: float) -> "GradientFlow":
        """The same flow, stopped at `time`."""
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
    r"""The exact minimizer, $g(\lambda) = 1/\lambda$: the limit of all gradient methods on a linear model."""

    def filter(self, lam: np.ndarray) -> np.ndarray:
        return 1.0 / lam

    def shift(self) -> float | None:
        return 0.0


class Ridge(SpectralAlgorithm):
    r"""The minimizer of the loss plus $\frac{s}{2} \lVert\theta - \theta_0\rVert^2$, with $s$ = `strength` >= 0.

    On a linear model $g(\lambda) = 1/(\lambda + s)$. Strength 0 gives the minimum-norm solution.
    """

    strength: float = 0.0

    def __check_init__(self):
        positive(self.strength, "strength", zero=True)

    def filter(self, lam: np.ndarray) -> np.ndarray:
        return 1.0 / (lam + self.strength)

    def shift(self) -> float | None:
        return self.strength
