"""SGD on a linear model, solved: mean and covariance of its outputs over batches and noise."""

import dataclasses
from typing import Self

import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ..algorithms.divergence import judged
from ..algorithms.losses import Squared, loss_of_zero
from ..algorithms.sgd import SGD
from .base import AbstractSolution, AbstractSpread, Prediction
from .sgd_moments import Task, TrainedMoments, trained_moments, weights_of
from .tangent import AbstractTangent


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SGDSolution(AbstractSolution):
    """A linear(ized) model trained by SGD: exact moments of its outputs over batches and noise.

    **Fields:** `algorithm`; `status`, an `nk.Status`, and its `ok`.
    """

    algorithm: SGD
    _tangent: AbstractTangent
    _trained: TrainedMoments
    _status: Status

    @in_float64
    def loss(self, time: float | None = None) -> float:
        r"""The mean over runs of $\frac12 \sum (z - y)^2$ on the training set, at the end of training or at `time`."""
        return self._trained.loss() if time is None else self.at(time).loss()

    @property
    def status(self) -> Status:
        return self._status

    @in_float64
    def predict(self, x_new: ArrayLike, time: float | None = None) -> Prediction:
        """The mean at `x_new` (m, d), in the shape of `y`; if SGD is random, also `std` and `cov`."""
        if time is not None:
            return self.at(time).predict(x_new)
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        tangent, out = self._tangent, self._y.shape[1]
        start, drift = (tangent.flat(make(x_new, out)) for make in (tangent.start, tangent.drift))
        cross = tangent.cross(x_new, self._x)
        mean = tangent.unflat(self._trained.mean(start, drift, cross), out)
        spread = _Spread(self, x_new, cross) if self.algorithm.random else None
        return Prediction((self._shaped(mean),), spread)

    @in_float64
    def at(self, moment: float) -> Self:
        """The same training after another number of steps `moment`, which the schedule must cover."""
        algorithm = self.algorithm.at(moment)
        trained, status = _trained_by(algorithm, self._trained.task, self._y)
        return dataclasses.replace(self, algorithm=algorithm, _trained=trained, _status=status)


def sgd_solution(
    tangent: AbstractTangent, x: np.ndarray, y: np.ndarray, algorithm: SGD, vector: bool
) -> SGDSolution:
    """Trains on `x` and `y` (n, out)."""
    error = tangent.flat(tangent.start(x, y.shape[1]) - y)
    sharing = error.size // (len(x) * error.shape[1])  # outputs that share parameters
    task = Task(
        matrix=tangent.matrix(x),
        error=error,
        drift=tangent.flat(tangent.drift(x, y.shape[1])),
        weights=weights_of(algorithm, len(x), sharing),
    )
    trained, status = _trained_by(algorithm, task, y)
    return SGDSolution(
        algorithm=algorithm, _x=x, _y=y, _vector=vector, _tangent=tangent, _trained=trained, _status=status
    )


def _trained_by(algorithm: SGD, task: Task, y: np.ndarray) -> tuple[TrainedMoments, Status]:
    trained = trained_moments(task, algorithm)
    first = 0.5 * float((task.error**2).sum())
    return trained, status_of_steps(algorithm, first, trained.loss(), y)


class _Spread(AbstractSpread):
    """Over batches and noise."""

    def __init__(self, solution: SGDSolution, x_new: np.ndarray, cross: np.ndarray):
        self._solution = solution
        self._x_new = x_new
        self._cross = cross

    @in_float64
    def covariance(self) -> np.ndarray:
        of, x_new = self._solution, self._x_new
        own = of._tangent.cross(x_new, x_new) if of.algorithm.noise else np.zeros((1, 1))
        pairs = of._trained.covariance(self._cross, own)
        return squared_covariance(pairs, len(x_new), of._y.shape[1], of._vector)

    @in_float64
    def variance(self) -> np.ndarray:
        of = self._solution
        own = of._tangent.diagonal(self._x_new) if of.algorithm.noise else np.zeros(1)
        columns = of._trained.variance(self._cross, own)
        return of._shaped(of._tangent.unflat(columns, of._y.shape[1]))


def squared_covariance(pairs: np.ndarray, m: int, out: int, vector: bool) -> np.ndarray:
    """Covariances of pairs of columns (c, c, M, M) as (m, m) for a vector of targets, else (m, out, m, out)."""
    if vector:
        return pairs.reshape(m, m)
    if len(pairs) == 1:  # outputs that share parameters: (point, output) is one index
        return pairs.reshape(m, out, m, out)
    return np.transpose(pairs, (2, 0, 3, 1))


def status_of_steps(algorithm: SGD, first: float, last: float, y: np.ndarray) -> Status:
    """Stopped at its last step, unless the mean loss says that it diverged."""
    where = f"step {algorithm.steps}"
    finished = Status(StatusKind.finished, f"stopped at {where}")
    zero = loss_of_zero(Squared(), jnp.asarray(y))
    return judged(finished, np.array([first, last]), f"by {where}", zero=zero, noisy=algorithm.random)
