"""Any loss in function space: with z = z(0) + K a, training moves the n coefficients a instead of the parameters."""

import dataclasses
import math
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ..algorithms.divergence import judged
from ..algorithms.losses import AbstractLoss, loss_of_zero, require_loss
from ..algorithms.ode import integrate
from ..algorithms.sgd import FullBatches
from ..algorithms.spectral import (
    AbstractAlgorithm,
    GradientDescent,
    GradientFlow,
    SpectralAlgorithm,
    TimedAlgorithm,
)
from .base import AbstractSolution, Prediction, end_of, moved_to, status_at
from .tangent import AbstractTangent


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FunctionSpaceSolution(AbstractSolution):
    r"""A linear(ized) model trained with any differentiable loss, by integrating $\dot a = -\partial L/\partial z$.

    Gradient descent, with or without momentum, is iterated exactly; flows are integrated to a relative error of 1e-8.

    **Fields:** `algorithm`; `status`, an `nk.Status` by the rules of `nk.simulate`, and its `ok`.
    """

    algorithm: SpectralAlgorithm
    _tangent: AbstractTangent
    _loss: AbstractLoss
    _start: np.ndarray
    _matrix: np.ndarray
    _weights: np.ndarray
    _status: Status

    @property
    def status(self) -> Status:
        return self._status

    def _trained(self, time: float) -> tuple[TimedAlgorithm, np.ndarray, Status]:
        algorithm = moved_to(self.algorithm, time)
        shape = self._tangent.flat(self._start).shape
        return algorithm, *trained_by(self._loss, self._matrix, self._start, self._y, shape, algorithm)

    @in_float64
    def at(self, moment: float) -> Self:
        """The same training at another finite time `moment` (steps for gradient descent); the kernel matrix is kept."""
        algorithm, weights, status = self._trained(moment)
        return dataclasses.replace(self, algorithm=algorithm, _weights=weights, _status=status)

    @in_float64
    def loss(self, time: float | None = None) -> float:
        """The training loss, at the end of training or at `time`."""
        fitted = self.predict(self._x, time).mean.reshape(self._y.shape)
        return float(self._loss(jnp.asarray(fitted), jnp.asarray(self._y)))

    def _losses(self) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.algorithm, GradientDescent):
            return super()._losses()
        assert isinstance(self.algorithm, GradientFlow)
        times = self._plot_times()
        rest = jnp.zeros(self._tangent.flat(self._start).shape)
        # One integration serves all times.
        weights, _ = flow_at(
            self._loss, self._matrix, self._start, self._y, rest, times, self.algorithm.friction
        )
        outputs = [_outputs(self._matrix, self._start, a) for a in weights]
        return times, np.array([self._loss(z, jnp.asarray(self._y)) for z in outputs])

    @in_float64
    def predict(self, x_new: ArrayLike, time: float | None = None) -> Prediction:
        """Outputs at `x_new`, at the end or at another finite `time`."""
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        weights = self._weights if time is None else self._trained(time)[1]
        out = self._y.shape[1]
        moved = self._tangent.unflat(self._tangent.cross(x_new, self._x) @ weights, out)
        return Prediction(terms=(self._shaped(self._tangent.start(x_new, out) + moved),))


def function_space_solution(
    tangent: AbstractTangent,
    x: np.ndarray,
    y: np.ndarray,
    algorithm: SpectralAlgorithm,
    loss: AbstractLoss,
    vector: bool,
) -> FunctionSpaceSolution:
    """Trains on `x` and `y` (n, out)."""
    start = tangent.start(x, y.shape[1])
    require_loss(loss, lambda: start, y)
    matrix = tangent.matrix(x)
    weights, status = trained_by(loss, matrix, start, y, tangent.flat(start).shape, algorithm)
    return FunctionSpaceSolution(
        algorithm=algorithm, _x=x, _y=y, _vector=vector, _tangent=tangent, _loss=loss, _start=start,
        _matrix=matrix, _weights=weights, _status=status,
    )  # fmt: skip


def trained_by(
    loss: AbstractLoss,
    matrix: np.ndarray,
    start: np.ndarray,
    y: np.ndarray,
    shape: tuple[int, ...],
    algorithm: AbstractAlgorithm,
) -> tuple[np.ndarray, Status]:
    """The coefficients a, of that shape, at the end of training from outputs `start`, and how it ended."""
    if not isinstance(algorithm, GradientDescent | GradientFlow | FullBatches):
        raise ValueError(
            f"{type(algorithm).__name__} has no time: for a loss other than 'squared' use GradientFlow or "
            "GradientDescent."
        )
    time = algorithm.end()
    if math.isinf(time):
        raise ValueError(
            "a loss other than 'squared' needs a finite `time` or `steps`: it may have no minimum."
        )
    arguments = (loss, matrix, start, y, jnp.zeros(shape))
    if isinstance(algorithm, GradientDescent):
        weights = np.array(descend_by(*arguments, algorithm.lr, algorithm.momentum, int(time)))
    elif isinstance(algorithm, FullBatches):
        sgd = algorithm.sgd
        weights = np.array(_scheduled(*arguments, sgd.rates(), sgd.momentum, sgd.kept))
    else:
        positions, success = flow_at(*arguments, np.array([float(time)]), algorithm.friction)
        weights = np.array(positions[0])
        if not success:
            message = f"not converged: the flow is too stiff to follow to {end_of(algorithm)}"
            return np.full_like(weights, np.nan), Status(StatusKind.stiff, message)
    ends = [float(loss(jnp.asarray(z), jnp.asarray(y))) for z in (start, _outputs(matrix, start, weights))]
    status = judged(
        status_at(algorithm, 0.0), ends, f"by {end_of(algorithm)}", zero=loss_of_zero(loss, y, start)
    )
    return weights, status


def _force(loss: AbstractLoss, matrix, start, y, a):
    """-dL/dz at z = start + K a, in the shape of a."""
    return -jax.grad(loss)(_outputs(matrix, start, a), y).reshape(a.shape)


def _outputs(matrix, start, a):
    return start + (matrix @ a).reshape(start.shape)


@jax.jit(static_argnums=(0,))
def descend_by(loss, matrix, start, y, a, lr, momentum, steps):
    def step(_, state):
        a, velocity = state
        velocity = momentum * velocity + lr * _force(loss, matrix, start, y, a)
        return a + velocity, velocity

    return jax.lax.fori_loop(0, steps, step, (a, jnp.zeros_like(a)))[0]


@jax.jit(static_argnums=(0,))
def _scheduled(loss, matrix, start, y, a, rates, momentum, kept):
    def step(state, rate):
        a, velocity = state
        velocity = momentum * velocity + rate * _force(loss, matrix, start, y, a)
        return (kept * a + velocity, velocity), None

    return jax.lax.scan(step, (a, jnp.zeros_like(a)), rates)[0][0]


def flow_at(loss, matrix, start, y, a, times: np.ndarray, friction: float | None):
    """The coefficients at each of `times`, and whether the solver got to the last."""
    if times[-1] == 0.0:
        return a[None], True
    matrix, every = jnp.asarray(matrix), jnp.asarray([0.0, *times])
    positions, success = _flow(
        loss, matrix, start, y, a, every, 0.0 if friction is None else friction, friction is None
    )
    return positions[1:], bool(success)


@jax.jit(static_argnums=(0, 7))
def _flow(loss, matrix, start, y, a, times, friction, first_order: bool):
    def field(state):
        position, velocity = state
        force = _force(loss, matrix, start, y, position)
        if first_order:
            return force, jnp.zeros_like(force)
        return velocity, force - friction * velocity

    (positions, _), success = integrate(field, (a, jnp.zeros_like(a)), times, rtol=1e-8, atol=1e-10)
    return positions, success
