"""SGD on a linear model, solved: mean and covariance of its outputs over batches and noise."""

from typing import Any, Self

import jax.numpy as jnp
import numpy as np

from .._check import inputs
from .._precision import in_float64
from .._status import Status, StatusKind
from ._abstract_solution import AbstractSolution, Prediction
from ._divergence import judged
from ._losses import Squared, loss_of_zero
from ._sgd_moments import (
    NewOutputs,
    Task,
    error_covariance,
    moments_after,
    output_covariance,
    output_mean,
    weights_of,
)
from ._stochastic import SGD
from ._tangent import AbstractTangent


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
        """The mean over runs of 1/2 sum (z - y)^2 on the training set, at the end of training or at `time`."""
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
        """The mean at `x_new` (m, d), in the shape of `y`, and `cov`, (m, m) or (m, out, m, out), if SGD is random."""
        if time is not None:
            return self.at(time).predict(x_new)
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        tangent, out = self._tangent, self._y.shape[1]
        new = NewOutputs(
            tangent.flat(tangent.start(x_new, out)),
            tangent.flat(tangent.drift(x_new, out)),
            tangent.cross(x_new, self._x),
            tangent.cross(x_new, x_new) if self.algorithm.noise else np.zeros((1, 1)),
        )
        mean = tangent.unflat(output_mean(new, self._reached), out)
        cov = None
        if self.algorithm.random:
            pairs = output_covariance(new, self._reached, None, 1.0)
            cov = squared_covariance(pairs, len(x_new), out, self._vector)
        return Prediction(terms=(mean[:, 0] if self._vector else mean,), cov=cov)

    @in_float64
    def at(self, moment: float) -> Self:
        """The same training after another number of steps `moment`, which the schedule must cover."""
        return type(self)(self._tangent, self._x, self._y, self.algorithm.at(moment), self._vector)


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
