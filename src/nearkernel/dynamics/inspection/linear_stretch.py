"""One stretch of training, predicted from the linearization where it begins: weights, outputs, and their errors."""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ...kernels.empirical.ntk import EmpiricalNTK
from ...models.base import AbstractModel, Params
from ...models.expansion.derivatives import ModelDerivatives
from ...models.params import root_factors
from ..algorithms.losses import AbstractLoss
from ..algorithms.spectral import GradientDescent, GradientFlow
from ..linear.factor import Spectrum, spectrum
from ..linear.function_space import descend_by, flow_at
from ..linear.tangent import model_outputs

Timed = GradientDescent | GradientFlow


class Arrival(NamedTuple):
    """The prediction for one moment: parameters, outputs (rows, out), and the network's outputs at these parameters."""

    params: Params
    outputs: np.ndarray
    actual: np.ndarray

    @property
    def gap(self) -> float:
        return float(np.linalg.norm(self.actual - self.outputs))


class Stretch:
    """Training from `params` on the first rows of `rows`, as many as `y` (n, out) has.

    `factors` are its learning-rate factors, a tree like `params`, or None if all are 1.
    """

    def __init__(
        self, model: AbstractModel, params: Params, rows: np.ndarray, y: np.ndarray, factors: Params | None
    ):
        self.model, self.params = model, params
        self.rows, self.y = rows, y
        self.factors = factors
        self.start = np.asarray(model_outputs(model, params, rows))
        self.x = rows[: len(y)]

    @functools.cached_property
    def matrix(self) -> jax.Array:
        """The kernel (n out, n out), made only once its caller has seen that outputs are finite."""
        size = self.y.size
        kernel = EmpiricalNTK(self.model, self.params, 1.0 if self.factors is None else self.factors)
        return jnp.asarray(kernel.full(self.x).reshape(size, size))

    @functools.cached_property
    def spectrum(self) -> Spectrum:
        return spectrum(np.array(self.matrix))

    def arrivals(self, algorithm: Timed, loss: AbstractLoss, moments: np.ndarray) -> Iterator[Arrival]:
        """At each of `moments`, counted from the beginning of this stretch."""
        roots = root_factors(self.factors, self.params)
        everywhere = ModelDerivatives(self.model, self.params, self.rows, 1, roots)
        here = ModelDerivatives(self.model, self.params, self.x, 1, roots)
        flat, tree = ravel_pytree(self.params)
        for weights in self._coefficients(algorithm, loss, moments):
            step = here.pull(weights.reshape(1, -1))
            outputs = self.start + everywhere.push(step).reshape(self.start.shape)
            params = jax.tree.map(np.asarray, tree(flat + here.unscaled(step)[0]))
            yield Arrival(params, outputs, np.asarray(model_outputs(self.model, params, self.rows)))

    def _coefficients(
        self, algorithm: Timed, loss: AbstractLoss, moments: np.ndarray
    ) -> Iterator[np.ndarray]:
        """a (N, 1) of z = z_0 + K a at each moment."""
        start = self.start[: len(self.y)]
        if loss.quadratic:
            for moment in moments:
                with np.errstate(over="ignore", invalid="ignore"):
                    yield -self.spectrum.apply(algorithm.at(moment), (start - self.y).reshape(-1, 1))
            return
        a, before = jnp.zeros((self.y.size, 1)), 0.0
        if isinstance(algorithm, GradientFlow):
            found, fine = flow_at(loss, self.matrix, start, self.y, a, moments, None)
            yield from np.asarray(found) if fine else np.full((len(moments), *a.shape), np.nan)
            return
        for moment in moments:
            steps = int(moment - before)
            a = descend_by(loss, self.matrix, start, self.y, a, algorithm.lr, 0.0, steps)
            before = moment
            yield np.asarray(a)
