"""Training of anything that has outputs and forces: steps with momentum and batches, and flows."""

import abc
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..._base.keys import Key
from ...dynamics.simulation.steps import batch_rows


class AbstractSystem(abc.ABC):
    """Moves as training tells it to. A change has `plus(other, amount, own=1)`: own * self + amount * other."""

    @abc.abstractmethod
    def at_step(self, step: int) -> None:
        """Is told the number of the step that comes."""

    @abc.abstractmethod
    def outputs(self) -> np.ndarray:
        """(n, out) on the training set, as it is now."""

    @abc.abstractmethod
    def new_outputs(self) -> np.ndarray:
        """(m, out) at new points."""

    @abc.abstractmethod
    def force(self, rows: Any, error: np.ndarray) -> Any:
        """The gradient of the loss, where its derivative by the outputs just given is `error` at `rows`, else 0."""

    @abc.abstractmethod
    def shift(self, change: Any, amount: float) -> None:
        """Moves by `amount` times a change."""

    @abc.abstractmethod
    def decay(self, share: float) -> None:
        """Takes away this share of all parameters."""

    @abc.abstractmethod
    def sharpness(self, error: np.ndarray) -> float:
        """The largest eigenvalue of the tangent kernel of the training set."""


class Signal:
    """The derivative of the loss by the outputs, of all points or of a batch of them."""

    def __init__(self, loss: Callable, y: np.ndarray, batch_size: int | None = None, key: Key | None = None):
        self._loss, self.y, self._batch_size, self._key = loss, y, batch_size, key

    def loss(self, outputs: np.ndarray) -> float:
        return float(_loss(self._loss, outputs, self.y))

    def error(self, outputs: np.ndarray) -> np.ndarray:
        """(n, out), of all points."""
        return np.asarray(_slope(self._loss, outputs, self.y))

    def __call__(self, step: int, outputs: np.ndarray) -> tuple[Any, np.ndarray]:
        """(rows, derivative at these rows) of a step."""
        if self._batch_size is None:
            return slice(None), self.error(outputs)
        n, size = len(self.y), self._batch_size
        rows = np.asarray(batch_rows(self._key, np.uint32(step), n, size))
        return rows, np.asarray(_slope(self._loss, outputs[rows], self.y[rows])) * (n / size)


_loss = jax.jit(lambda loss, z, y: loss(z, y), static_argnums=0)
_slope = jax.jit(lambda loss, z, y: jax.grad(loss)(z, y), static_argnums=0)

Keep = Callable[
    [int, float, np.ndarray], None
]  # (step, time, outputs), before each step and at the end; may raise


class Descent:
    """Gradient descent with rates `lr` (steps,) of the network that is not scaled, `momentum` and `decay`."""

    def __init__(self, lr: np.ndarray, momentum: float = 0.0, decay: float = 0.0):
        self.rates, self._momentum, self._steps, self._decay = lr, momentum, len(lr), decay

    def __call__(self, system: AbstractSystem, signal: Signal, keep: Keep) -> None:
        velocity: Any = None  # minus the last move
        for step in range(self._steps + 1):
            system.at_step(step)
            outputs = system.outputs()
            keep(step, float(step), outputs)
            if step == self._steps:
                return
            rate, move = float(self.rates[step]), system.force(*signal(step, outputs))
            if velocity is not None:
                rate, move = 1.0, move.plus(velocity, self._momentum, own=rate)
            if self._decay:
                system.decay(self._decay)
            system.shift(move, -rate)
            if self._momentum:
                velocity = move if velocity is not None else move.plus(move, 0.0, own=rate)


class Flow:
    """Gradient flow in classical Runge-Kutta steps of `stride` over the largest eigenvalue of the kernel as it is then.

    **Arguments:** `end`, the time to go; `scale`, by which time runs faster in the network that is not scaled;
    `stride`; `times`, the moments to go through, found on the way if None. After a run they are in `times`.
    """

    def __init__(self, end: float, scale: float, stride: float, times: list[float] | None = None):
        self._end, self._scale, self._stride, self._fixed = end, scale, stride, times is not None
        self.times = [0.0] if times is None else times

    def halved(self) -> "Flow":
        """The same in steps half as long."""
        middle = [0.5 * (a + b) for a, b in zip(self.times, self.times[1:], strict=False)]
        return Flow(self._end, self._scale, self._stride, sorted([*self.times, *middle]))

    def again(self) -> "Flow":
        """The same through the same moments."""
        return Flow(self._end, self._scale, self._stride, self.times)

    def _after(self, step: int, system: AbstractSystem, error: np.ndarray) -> float | None:
        now = self.times[step]
        if not self._fixed and now < self._end:
            then = now + self._stride / (self._scale * max(system.sharpness(error), 1e-300))
            self.times.append(self._end if then > self._end * (1 - 1e-9) else then)
        return self.times[step + 1] if step + 1 < len(self.times) else None

    def __call__(self, system: AbstractSystem, signal: Signal, keep: Keep) -> None:
        step = 0
        while True:
            system.at_step(step)
            outputs = system.outputs()
            keep(step, self.times[step], outputs)
            error = signal.error(outputs)
            then = self._after(step, system, error)
            if then is None:
                return
            h = self._scale * (then - self.times[step])
            total = before = system.force(slice(None), error)
            for place, weight in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
                system.shift(before, -place * h)
                here = system.force(slice(None), signal.error(system.outputs()))
                system.shift(before, place * h)
                total, before = total.plus(here, weight), here
            system.shift(total, -h / 6.0)
            step += 1
