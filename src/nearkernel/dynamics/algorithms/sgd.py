"""Stochastic gradient descent, with all that can be said of its steps: batches, noise, schedules, decay, momentum."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import numeric, one_of, one_real, positive, real_number, shown, whole
from ..._run.precision import is_traced
from .spectral import AbstractAlgorithm, GradientDescent, SpectralAlgorithm, TimedAlgorithm

_LOOKED = 2**20  # steps at which a schedule is tried when it is given: all, up to so many


def _hashable(schedule: Any) -> Any:
    """A function as it is; numbers, one per step, as a tuple."""
    if schedule is None or callable(schedule):
        return schedule
    if isinstance(schedule, str | bytes | dict | bool) or np.ndim(schedule) == 0:
        raise TypeError(
            f"`schedule` must be a function of the step, or an array of one factor per step; got {shown(schedule)}."
        )
    found = numeric(schedule, "schedule")
    if found.ndim != 1 or found.min(initial=0.0) < 0:
        raise ValueError(
            f"`schedule` must be a vector of factors that are at least 0; got shape {found.shape} and smallest value "
            f"{found.min(initial=0.0):g}."
        )
    return tuple(found.tolist())


def _factors(schedule: Callable, steps: np.ndarray) -> Any:
    """(steps,) of a function; not looked at where it depends on what is traced."""
    with jax.ensure_compile_time_eval():  # also while a caller is being traced
        found: Any = jax.vmap(lambda step: one_real(schedule, "schedule(step)", step))(
            jnp.asarray(steps, float)
        )
    if not is_traced(found):
        found = np.asarray(found)
        fine = np.isfinite(found) & (found >= 0)
        if not fine.all():
            raise ValueError(
                f"`schedule` must return a finite factor of at least 0 for every step; at step "
                f"{steps[fine.argmin()]:g} it returns {found[fine.argmin()]:g}."
            )
    return found


class SGD(AbstractAlgorithm):
    r"""Stochastic gradient descent, $\theta \leftarrow \theta - \eta\, \frac{n}{b} \sum_{i \in \text{batch}} \nabla
    L_i$.

    Batches have $b$ = `batch_size` points. With the factor $n/b$, the mean of a batch gradient is the full gradient.
    `nk.simulate` draws batches; `nk.solve` and `nk.forecast` of linear models compute mean and covariance over
    batches and noise in closed form; `nk.forecast` of mean-field networks follows the batches of its `key`.

    **Arguments:**

    - `lr` > 0; `steps`.
    - `batch_size`: None for the full batch, i.e. gradient descent with a schedule or weight decay.
    - `momentum`: at least 0 and below 1.
    - `weight_decay`: every step subtracts `lr` times `weight_decay` times the parameters (decoupled decay).
    - `schedule`: a JAX function of the step, or an array (steps,), which multiplies the learning rate of the
      gradient, e.g. `lambda step: 1 / (1 + step)`.
    - `decay_to`: "zero" or "start": whether decay pulls the parameters to 0 or to their initial values.
    - `batches`: "fixed", exactly b points without replacement; "bernoulli", each point with probability b/n.
    - `noise`: standard deviation of Gaussian noise added to each parameter's gradient in each step.

    With momentum $m$, weight decay $w$, schedule $s$ and anchor $\theta_a$ (0 or the initial $\theta$), step $k$ is

    $$u \leftarrow m\, u - \eta\, s(k)\, (\text{gradient} + \text{noise}), \qquad
    \theta \leftarrow \theta - \eta\, w\, (\theta - \theta_a) + u.$$
    """

    lr: float
    batch_size: int | None = eqx.field(static=True)
    steps: int
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: Any = eqx.field(static=True, default=None, converter=_hashable)
    decay_to: str = eqx.field(static=True, default="zero")
    batches: str = eqx.field(static=True, default="fixed")
    noise: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        positive(self.lr, "lr")
        if self.batch_size is not None:
            whole(self.batch_size, "batch_size", 1)
        whole(self.steps, "steps", 0)
        if not 0 <= real_number(self.momentum, "momentum") < 1:
            raise ValueError(f"`momentum` must be at least 0 and below 1; got {self.momentum}.")
        if positive(self.weight_decay, "weight_decay", zero=True) * self.lr >= 1:
            raise ValueError(f"`weight_decay` must be below 1/lr = {1 / self.lr:g}; got {self.weight_decay}.")
        one_of(self.decay_to, "decay_to", ("zero", "start"))
        one_of(self.batches, "batches", ("fixed", "bernoulli"))
        positive(self.noise, "noise", zero=True)
        if isinstance(self.schedule, tuple) and len(self.schedule) < self.steps:
            raise ValueError(
                f"`schedule` must have one factor per step, {self.steps}; got {len(self.schedule)}."
            )
        if callable(self.schedule) and self.steps:
            with jax.enable_x64(True):
                _factors(self.schedule, np.unique(np.linspace(0, self.steps - 1, _LOOKED).round()))

    def at(self, time: float) -> "SGD":
        """The same algorithm after `time` steps."""
        number = real_number(time, "time")
        steps = whole(int(number) if float(number).is_integer() else number, "time", 0)
        return dataclasses.replace(self, steps=steps)

    @property
    def plain(self) -> bool:
        """Whether all steps are equal: no momentum, decay, schedule or noise."""
        return self.momentum == 0 and self.weight_decay == 0 and self.schedule is None and self.noise == 0

    @property
    def random(self) -> bool:
        """Whether batches or noise are random."""
        return self.batch_size is not None or self.noise > 0

    @property
    def kept(self) -> float:
        """The fraction of the parameters' distance from their anchor that remains after the decay of one step."""
        return 1.0 - float(self.lr * self.weight_decay)

    def rate(self, step: Any) -> Any:
        """The learning rate of step number `step`."""
        if self.schedule is None:
            return self.lr
        if isinstance(self.schedule, tuple):
            return self.lr * jnp.asarray(self.schedule)[jnp.asarray(step).astype(int)]
        return self.lr * self.schedule(step)

    def rates(self) -> np.ndarray:
        """The learning rates of all steps, (steps,)."""
        if self.schedule is None or not self.steps:
            return np.full(self.steps, float(self.lr))
        if isinstance(self.schedule, tuple):
            return float(self.lr) * np.asarray(self.schedule[: self.steps])
        return float(self.lr) * np.asarray(_factors(self.schedule, np.arange(self.steps)))

    def weights(self, n: int) -> tuple[float, float]:
        r"""$\mathbb{E}[w_i^2]$ and $\mathbb{E}[w_i w_j]$ of the weights of the gradients of `n` points in a step.

        Their mean is 1.
        """
        if self.batch_size is None:
            return 1.0, 1.0
        require_batch(self.batch_size, n)
        if self.batches == "bernoulli" or n == 1:
            return n / self.batch_size, 1.0
        return n / self.batch_size, n / self.batch_size * (self.batch_size - 1) / (n - 1)

    def spectral(self) -> SpectralAlgorithm:
        """The filter on eigendirections of a kernel, for SGD without randomness that decays to the initial values."""
        if self.schedule is None and not self.weight_decay:
            return GradientDescent(self.lr, self.steps, self.momentum)
        return FullBatches(self)


def require_batch(batch_size: int, n: int) -> None:
    """Refuses batches of more than the `n` points there are."""
    if batch_size > n:
        raise ValueError(f"`batch_size` must be at most the number of points, {n}; got {batch_size}.")


class FullBatches(TimedAlgorithm):
    """Descent with a schedule or a decay of weights to the start, on one eigendirection at a time.

    With u <- b u + lr_t (1 - lam g) and g <- kept g + u, from 0. The limit is the eigenvalue beyond which the residual
    ends larger than it started.
    """

    sgd: SGD
    unit = "step"

    def filter(self, lam: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True), np.errstate(over="ignore", invalid="ignore"):
            rates = self.sgd.rates()
            return np.asarray(_stepped(np.asarray(lam, float), rates, self.sgd.momentum, self.sgd.kept))

    def at(self, time: float) -> "FullBatches":
        return FullBatches(self.sgd.at(time))

    def end(self) -> float:
        return self.sgd.steps

    def limit(self) -> float:
        rates = self.sgd.rates()
        if not rates.any():
            return math.inf
        low = 2.0 / float(rates.max())  # up to here no step makes a residual grow
        tried = np.geomspace(low, 1e4 * low, 400)
        grown = np.flatnonzero(~(np.abs(self.decay(tried)) <= 1.0))
        if not len(grown):
            return math.inf
        if grown[0] == 0:
            return low
        low, high = tried[grown[0] - 1], tried[grown[0]]
        for _ in range(40):
            middle = 0.5 * (low + high)
            fine = abs(float(self.decay(np.array([middle]))[0])) <= 1.0
            low, high = (middle, high) if fine else (low, middle)
        return float(low)

    def advice(self, lam_max: float) -> str:
        return (
            f"diverges: by step {self.sgd.steps} the residual along lambda_max = {lam_max:.6g} has grown; "
            f"eigenvalues up to {self.limit():.6g} are stable"
        )


@jax.jit
def _stepped(lam, rates, momentum, kept):
    def step(state, rate):
        g, u = state
        u = momentum * u + rate * (1.0 - lam * g)
        return (kept * g + u, u), None

    return jax.lax.scan(step, (jnp.zeros_like(lam), jnp.zeros_like(lam)), rates)[0][0]
