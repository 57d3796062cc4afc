"""SGD on a linear model, solved: mean and covariance of its outputs over batches and noise."""

from typing import Any, Self

import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs
from ..._base.status import Status, StatusKind
from ..._run.precision import in_float64
from ..algorithms.divergence import judged
from ..algorithms.losses import Squared, loss_of_zero
from ..algorithms.sgd import SGD
from .base import AbstractSolution, AbstractSpread, Prediction
from .sgd_moments import (
    NewOutputs,
    Task,
    error_covariance,
    moments_after,
    output_covariance,
    output_mean,
    output_variance,
    weights_of,
)
from .tangent import AbstractTangent


class SGDSolution(AbstractSolution):
    """A linear(ized) model trained by SGD: exact moments of its outputs over batches and noise.

    **Fields:** `algorithm`; `status`, an `nk.Status`, and its `ok`.
    """

    algorithm: SGD  # type: ignore[assignment]

    def __init__(self, tangent: AbstractTangent, x: np.ndarray, y: np.ndarray, algorithm: SGD, vector: bool):
        self._tangent, self._x, self._y, self._vector = tangent, x, y, vector
        self.algorithm = algorithm
        start = tangent.start(x, y.shape[1])
        error = tangent.flat(start - y)
        together = error.size // (len(x) * error.shape[1])  # outputs that share parameters
        self._task = Task(
            tangent.matrix(x),
            error,
            tangent.flat(tangent.drift(x, y.shape[1])),
            weights_of(algorithm, len(x), together),
            None,
            False,
        )
        self._reached = moments_after(self._task, algorithm)
        self._status = status_of_steps(algorithm, 0.5 * float((error**2).sum()), self.loss(), y)

    @in_float64
    def loss(self, time: float | None = None) -> float:
        r"""The mean over runs of $\frac12 \sum (z - y)^2$ on the training set, at the end of training or at `time`."""
        if time is not None:
            return self.at(time).loss()
        moments, task = self._reached, self._task
        mean = task.error + moments.shift * task.drift + task.matrix @ moments.a
        found = 0.5 * float((mean**2).sum())
        if not self.algorithm.random:
            return found
        spread = error_covariance(task, moments)
        return found + 0.5 * float(np.einsum("iiaa->", spread))

    @property
    def status(self) -> Status:
        return self._status

    @in_float64
    def predict(self, x_new: Any, time: float | None = None) -> Prediction:
        """The mean at `x_new` (m, d), in the shape of `y`; if SGD is random, also `std` and `cov`."""
        if time is not None:
            return self.at(time).predict(x_new)
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        tangent, out = self._tangent, self._y.shape[1]
        start, drift = (tangent.flat(make(x_new, out)) for make in (tangent.start, tangent.drift))
        new = NewOutputs(start, drift, tangent.cross(x_new, self._x), np.zeros(1))
        mean = tangent.unflat(output_mean(new, self._reached), out)
        spread = _Spread(self, x_new, new) if self.algorithm.random else None
        return Prediction((mean[:, 0] if self._vector else mean,), spread)

    @in_float64
    def at(self, moment: float) -> Self:
        """The same training after another number of steps `moment`, which the schedule must cover."""
        return type(self)(self._tangent, self._x, self._y, self.algorithm.at(moment), self._vector)


class _Spread(AbstractSpread):
    """Over batches and noise."""

    def __init__(self, solution: SGDSolution, x_new: np.ndarray, new: NewOutputs):
        self._solution, self._x_new, self._new = solution, x_new, new

    @in_float64
    def covariance(self) -> np.ndarray:
        of, x_new = self._solution, self._x_new
        own = of._tangent.cross(x_new, x_new) if of.algorithm.noise else np.zeros((1, 1))
        pairs = output_covariance(self._new._replace(own=own), of._reached, None, 1.0)
        return squared_covariance(pairs, len(x_new), of._y.shape[1], of._vector)

    @in_float64
    def variance(self) -> np.ndarray:
        of = self._solution
        own = of._tangent.diagonal(self._x_new) if of.algorithm.noise else np.zeros(1)
        found = output_variance(self._new._replace(own=own), of._reached, None, 1.0)
        found = of._tangent.unflat(found, of._y.shape[1])
        return found[:, 0] if of._vector else found


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
