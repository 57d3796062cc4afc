"""The derivatives of a model by its parameters, on a set of inputs, without arrays of them.

With f the first derivative of the outputs, psi the second and Psi the third, and all (input, output) pairs as one
index a of m = n * out, everything that solvers need is one of

    push(v)            f_a . v                pull(p)            sum_a p_a f_a
    bend(u, v)         psi_a[u, v]            bend_pull(p, v)    sum_a p_a psi_a v
    twist(u)           Psi_a[u, u, u]         twist_pull(p, u)   sum_a p_a Psi_a[u, u, .]

for a batch of R directions (R, P) and weights (R, m). Each costs a few passes of the model, in bounded memory.
"""

import abc
import collections
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._check import inputs
from .._memory import require_fits, rows_that_fit
from .._precision import in_float64
from ._base import AbstractModel, in_working_precision

BATCH = 8  # directions in one compiled pass: enough to share the model's own work, few to pad
_LAYERS_OF_DERIVATIVES = 8  # a third derivative keeps about so many copies of what one evaluation makes
BUDGET = 256 * 2**20


class AbstractDerivatives(abc.ABC):
    """Derivatives at one point of parameter space, on fixed inputs. `passes` counts directions by kind."""

    size: int  # parameters, P
    outputs: int  # (input, output) pairs, m
    degree: int  # highest derivative that is not zero

    def __init__(self) -> None:
        self.passes: collections.Counter[str] = collections.Counter()

    def push(self, v: np.ndarray) -> np.ndarray:
        return self._counted("push", v)

    def pull(self, p: np.ndarray) -> np.ndarray:
        return self._counted("pull", p)

    def bend(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._counted("bend", u, v)

    def bend_pull(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._counted("bend_pull", p, v)

    def bend_pull_sum(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        """sum_r H[p_r] v_r, (P,)."""
        return self._counted("bend_pull", p, v).sum(0)

    def twist(self, u: np.ndarray) -> np.ndarray:
        return self._counted("twist", u)

    def twist_pull(self, p: np.ndarray, u: np.ndarray) -> np.ndarray:
        return self._counted("twist_pull", p, u)

    def _counted(self, kind: str, *batches: np.ndarray) -> np.ndarray:
        self.passes[kind] += len(batches[0])
        return self._run(kind, *batches)

    @abc.abstractmethod
    def _run(self, kind: str, *batches: np.ndarray) -> np.ndarray:
        """One of the six, for batches (R, P) of directions and (R, m) of weights."""


class ModelDerivatives(AbstractDerivatives):
    """Those of any model, by automatic differentiation; parameters flattened as `ravel_pytree` does."""

    def __init__(self, model: AbstractModel, params: Any, x: np.ndarray, degree: int):
        super().__init__()
        self.model, self.params, self.x, self.degree = model, params, x, degree
        self.size = sum(np.size(leaf) for leaf in jax.tree.leaves(params))
        self.out = jax.eval_shape(model, params, x[:1]).shape[1]
        self.outputs = len(x) * self.out
        per_row = 8 * _LAYERS_OF_DERIVATIVES * _floats_per_row(model, params, x)
        self._rows = min(len(x), rows_that_fit(per_row, BUDGET))
        self._batch = min(BATCH, rows_that_fit(per_row * self._rows, BUDGET))

    def _chunks(self):
        """Inputs a chunk at a time, padded to one shape, with the slice of the outputs they belong to."""
        for at in range(0, len(self.x), self._rows):
            rows = self.x[at : at + self._rows]
            part = slice(at * self.out, (at + len(rows)) * self.out)
            yield np.pad(rows, ((0, self._rows - len(rows)), (0, 0)), mode="edge"), part

    def _run(self, kind: str, *batches: np.ndarray) -> np.ndarray:
        directions = len(batches[0])
        pulls = kind.endswith("pull")
        found = np.zeros((directions, self.size if pulls else self.outputs))
        step = min(self._batch, directions)
        for rows, part in self._chunks():
            width = len(rows) * self.out
            for at in range(0, directions, step):
                batch = [padded_rows(b[at : at + step], step) for b in batches]
                if pulls:  # weights of padded rows are 0, so they add nothing
                    batch[0] = _padded_columns(batch[0][:, part], width)
                values = np.asarray(_PASSES[kind](self.model, self.params, rows, *batch))[: directions - at]
                if pulls:
                    found[at : at + step] += values
                else:
                    found[at : at + step, part] = values[:, : part.stop - part.start]
        return found


def padded_rows(array: np.ndarray, count: int) -> np.ndarray:
    return array if len(array) == count else np.pad(array, ((0, count - len(array)), (0, 0)))


def _padded_columns(array: np.ndarray, count: int) -> np.ndarray:
    return array if array.shape[1] == count else np.pad(array, ((0, 0), (0, count - array.shape[1])))


def jacobian(model: AbstractModel, params: Any, x: Any) -> jax.Array:
    """dz/dtheta as one array (n, out, P), as a JAX expression."""
    found = jax.vmap(lambda row: jax.jacrev(lambda p: model(p, row[None])[0])(params))(jnp.asarray(x))
    return jnp.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in jax.tree.leaves(found)], axis=2)


@in_float64
def effective_features(model: AbstractModel, params: Any, x: Any) -> np.ndarray:
    """The features a model has at `params`, dz_i/dtheta, (n, out, P), parameters flattened as `ravel_pytree` does.

    Those of a quadratic model are phi + eps psi W; of any other, or of an expansion, its Jacobian.
    """
    x = inputs(x, "x", getattr(model, "in_dim", None))
    params = in_working_precision(params)
    out = jax.eval_shape(model, params, x[:1]).shape[1]
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(params))
    require_fits(8 * len(x) * out * size, f"features of {len(x)} points", "use fewer points, or a kernel")
    return np.asarray(_compiled_jacobian(model, params, x))


def _floats_per_row(model: AbstractModel, params: Any, x: np.ndarray) -> int:
    """Numbers that one evaluation makes for each input, read off its trace."""

    def made(count: int) -> int:
        rows = jax.ShapeDtypeStruct((count, x.shape[1]), np.float64)
        return _sizes(jax.make_jaxpr(lambda p, r: model(p, r))(params, rows).jaxpr)

    return max(made(3) - made(2), x.shape[1], 1)


def _sizes(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        inner = [_sizes(p.jaxpr) for p in equation.params.values() if hasattr(p, "jaxpr")]
        total += sum(inner) or sum(int(np.prod(v.aval.shape)) for v in equation.outvars)
    return total


@jax.jit
def _compiled_jacobian(model, params, x):
    return jacobian(model, params, x)


def _flat(model, params, x):
    """The model as a function of one vector of parameters, and that vector."""
    theta, unravel = ravel_pytree(params)
    return lambda t: model(unravel(t), x).reshape(-1), theta


def _along(function, direction):
    return lambda t: jax.jvp(function, (t,), (direction,))[1]


@jax.jit
def _push(model, params, x, v):
    function, theta = _flat(model, params, x)
    return jax.vmap(jax.linearize(function, theta)[1])(v)


@jax.jit
def _pull(model, params, x, p):
    function, theta = _flat(model, params, x)
    return jax.vmap(jax.vjp(function, theta)[1])(p)[0]


@jax.jit
def _bend(model, params, x, u, v):
    function, theta = _flat(model, params, x)
    return jax.vmap(lambda a, b: _along(_along(function, a), b)(theta))(u, v)


@jax.jit
def _twist(model, params, x, u):
    function, theta = _flat(model, params, x)
    return jax.vmap(lambda a: _along(_along(_along(function, a), a), a)(theta))(u)


def _gradient(function, weights):
    return jax.grad(lambda t: weights @ function(t))


@jax.jit
def _bend_pull(model, params, x, p, v):
    function, theta = _flat(model, params, x)
    return jax.vmap(lambda a, b: _along(_gradient(function, a), b)(theta))(p, v)


@jax.jit
def _twist_pull(model, params, x, p, u):
    function, theta = _flat(model, params, x)
    return jax.vmap(lambda a, b: _along(_along(_gradient(function, a), b), b)(theta))(p, u)


_PASSES = {
    "push": _push,
    "pull": _pull,
    "bend": _bend,
    "twist": _twist,
    "bend_pull": _bend_pull,
    "twist_pull": _twist_pull,
}
