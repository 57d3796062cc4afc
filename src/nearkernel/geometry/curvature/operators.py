r"""Second derivatives of a loss with respect to the parameters, never formed as matrices.

With outputs $z$ (n, out), their Jacobian $J$, the loss $L(z, y)$ and its gradients $g_i$ at each point,

| matrix | formula |
|---|---|
| Hessian | $H = J^\top L'' J + \sum_i L'_i z''_i$ |
| Gauss-Newton | $G = J^\top L'' J$ |
| Fisher | $F = \sum_i \mathbb{E}[g_i g_i^\top]$, labels drawn from the model: $\mathcal{N}(z, 1)$ or softmax. $F = G$ |
| empirical Fisher | $\sum_i g_i g_i^\top$, with the given labels |
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..._base.check import inputs, numeric
from ..._base.types import ArrayLike, Params
from ..._run.precision import in_float64, is_traced
from ...dynamics.algorithms.losses import AbstractLoss, get_loss, require_loss
from ...models.base import AbstractModel, count_parameters, require_model
from ...models.params import checked_params
from .symmetric import AbstractOperator

_ROWS = 1024  # points that are differentiated together


class AbstractCurvature(AbstractOperator):
    r"""A curvature matrix of the training loss at given parameters, as an operator.

    **Arguments:** `model`; `params`; `x` (n, d); `y` (n,) or (n, out); `loss`, "squared" ($\frac12 \sum (z - y)^2$),
    "cross_entropy" (`y` one-hot, probabilities or integer labels) or a JAX function loss(z, y), a sum over points.
    """

    model: AbstractModel
    params: Params
    x: jax.Array
    y: jax.Array
    loss: AbstractLoss = eqx.field(static=True)

    @in_float64
    def __init__(
        self,
        model: AbstractModel,
        params: Params,
        x: ArrayLike,
        y: ArrayLike,
        loss: str | Callable = "squared",
    ):
        require_model(model)
        params = checked_params(model, params)
        function = get_loss(loss)
        if not is_traced(x, y):
            x = inputs(x, "x", model.in_shape)
            out = jax.eval_shape(model, params, x[:1]).shape[1]
            y = function.columns(y, len(x), out)
        if not is_traced(params):
            params = jax.tree.map(lambda leaf: jnp.asarray(numeric(leaf, "params")), params)
        self.model = model
        self.params = params
        self.x = jnp.asarray(x)
        self.y = jnp.asarray(y)
        self.loss = function
        require_loss(function, lambda: model(params, self.x), self.y)
        if not is_traced(params, x, y):
            value = float(_value(self))
            if not np.isfinite(value):
                raise ValueError(f"the loss at `params` is {value}, so its curvature is undefined.")

    @property
    def size(self) -> int:
        return count_parameters(self.params)

    @in_float64
    def gradient(self) -> np.ndarray:
        """The gradient (P,) of the loss."""
        return np.asarray(_gradient(self))

    def product(self, vector: jax.Array) -> jax.Array:
        """The product with a vector, summed over chunks of points to bound the memory."""
        direction = ravel_pytree(self.params)[1](vector)
        n, whole = len(self.x), len(self.x) // _ROWS * _ROWS

        def rows_product(x, y):
            return ravel_pytree(self.rows_product(direction, x, y))[0]

        if n <= _ROWS:
            return rows_product(self.x, self.y)
        chunks = [array[:whole].reshape(-1, _ROWS, array.shape[1]) for array in (self.x, self.y)]
        total, _ = jax.lax.scan(
            lambda sum, rows: (sum + rows_product(*rows), None), jnp.zeros_like(vector), chunks
        )
        return total + rows_product(self.x[whole:], self.y[whole:]) if whole < n else total

    @abc.abstractmethod
    def rows_product(self, direction: Params, x: jax.Array, y: jax.Array) -> Params:
        """The contribution of the points `x`, `y` to the product with the tree `direction`."""


class Hessian(AbstractCurvature):
    r"""The Hessian of the training loss, as an operator: $H = J^\top L'' J + \sum_i L'_i z''_i$.

    **Arguments:** `model`; `params`; `x` (n, d); `y` (n,) or (n, out); `loss`, "squared" ($\frac12 \sum (z - y)^2$),
    "cross_entropy" (`y` one-hot, probabilities or integer labels) or a JAX function loss(z, y), a sum over points.
    """

    __init__ = AbstractCurvature.__init__  # for type checkers, which take it for a dataclass

    def rows_product(self, direction, x, y):
        gradient = jax.grad(lambda params: self.loss(self.model(params, x), y))
        return jax.jvp(gradient, (self.params,), (direction,))[1]


class GaussNewton(AbstractCurvature):
    r"""The Gauss-Newton matrix of the training loss, as an operator: $G = J^\top L'' J$.

    **Arguments:** `model`, `params`, `x`, `y`, `loss`: same as `Hessian`.
    """

    __init__ = AbstractCurvature.__init__  # for type checkers, which take it for a dataclass

    def rows_product(self, direction, x, y):
        def outer(z, dz):
            return jax.jvp(lambda z: jax.grad(self.loss)(z, y), (z,), (dz,))[1]

        return sandwich(self.model, self.params, x, direction, outer)


class Fisher(AbstractCurvature):
    r"""The Fisher information, as an operator: $F = \sum_i \mathbb{E}[g_i g_i^\top]$, with labels drawn from the model.

    **Arguments:** `model`, `params`, `x`, `y`, `loss`: same as `Hessian`.
    """

    __init__ = AbstractCurvature.__init__

    def __check_init__(self):
        self.loss.fisher(jnp.zeros((1, 2)), jnp.zeros((1, 2)))  # refused at once if there is none

    def rows_product(self, direction, x, y):
        return sandwich(self.model, self.params, x, direction, self.loss.fisher)


class EmpiricalFisher(AbstractCurvature):
    r"""The empirical Fisher matrix, as an operator: the sum of squared gradients, $\sum_i g_i g_i^\top$.

    **Arguments:** `model`, `params`, `x`, `y`, `loss`: same as `Hessian`.
    """

    __init__ = AbstractCurvature.__init__

    def rows_product(self, direction, x, y):
        def losses(params):
            z = self.model(params, x)
            return jax.vmap(lambda z, y: self.loss(z[None], y[None]))(z, y)

        along = jax.jvp(losses, (self.params,), (direction,))[1]
        return jax.vjp(losses, self.params)[1](along)[0]


def sandwich(
    model: AbstractModel, params: Params, x: jax.Array, direction: Params, outer: Callable
) -> Params:
    """J^T outer(z, J direction), the product with a matrix J^T M J."""
    outputs = lambda p: model(p, x)
    z, dz = jax.jvp(outputs, (params,), (direction,))
    return jax.vjp(outputs, params)[1](outer(z, dz))[0]


@jax.jit
def _value(curvature: AbstractCurvature) -> jax.Array:
    return curvature.loss(curvature.model(curvature.params, curvature.x), curvature.y)


@jax.jit
def _gradient(curvature: AbstractCurvature) -> jax.Array:
    loss = lambda params: curvature.loss(curvature.model(params, curvature.x), curvature.y)
    return ravel_pytree(jax.grad(loss)(curvature.params))[0]
