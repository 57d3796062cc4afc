"""SGD on a linear model, solved: mean and covariance of its outputs over batches and noise."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._check import inputs
from .._precision import in_float64
from .._status import Status, StatusKind
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
from ._solution import Prediction
from ._stochastic import SGD
from ._tangent import AbstractTangent


class SGDSolution:
    """A linear(ized) model after the steps of SGD: exact moments of its outputs over batches and noise.

    **Fields:** `algorithm`; `loss`, the mean over runs of 1/2 sum (z - y)^2 on the training set; `status`, an
    `nk.Status`, and its `ok`.
    """

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
        self._moments = moments_after(self._task, algorithm)
        self.loss = self._loss()
        self.status = status_of_steps(algorithm, 0.5 * float((error**2).sum()), self.loss, y)

    def _loss(self) -> float:
        moments, task = self._moments, self._task
        mean = task.error + moments.shift * task.drift + task.matrix @ moments.a
        found = 0.5 * float((mean**2).sum())
        if not self.algorithm.random:
            return found
        spread = error_covariance(task, moments)
        return found + 0.5 * float(np.einsum("iiaa->", spread))

    @property
    def ok(self) -> bool:
        return self.status.ok

    @functools.cached_property
    def _outputs(self) -> int:
        return self._y.shape[1]

    @in_float64
    def predict(self, x_new: Any) -> Prediction:
        """Mean at `x_new` (m, d), in the shape of `y`, and `cov`, (m, m) or (m, out, m, out), if anything is drawn."""
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        tangent, out = self._tangent, self._outputs
        new = NewOutputs(
            tangent.flat(tangent.start(x_new, out)),
            tangent.flat(tangent.drift(x_new, out)),
            tangent.cross(x_new, self._x),
            tangent.cross(x_new, x_new) if self.algorithm.noise else np.zeros((1, 1)),
        )
        mean = tangent.unflat(output_mean(new, self._moments), out)
        cov = None
        if self.algorithm.random:
            pairs = output_covariance(new, self._moments, None, 1.0)
            cov = squared_covariance(pairs, len(x_new), out, self._vector)
        return Prediction(terms=(mean[:, 0] if self._vector else mean,), cov=cov)

    @in_float64
    def residual(self) -> np.ndarray:
        """The mean of z - y on the training set, in the shape of `y`."""
        return self.predict(self._x).mean - (self._y[:, 0] if self._vector else self._y)

    @in_float64
    def at(self, time: int) -> "SGDSolution":
        """The same after `time` steps, of which the schedule must know."""
        return SGDSolution(self._tangent, self._x, self._y, self.algorithm.at(time), self._vector)


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
