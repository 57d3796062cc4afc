r"""The derivatives of a model with respect to its parameters, on a set of inputs, without arrays of them.

With $f$ the first derivative of the outputs, $\psi$ the second and $\Psi$ the third, and all (input, output) pairs as
one index $a$ of m = n · out values, everything that solvers need is one of

| method | result |
|---|---|
| `push(v)` | $f_a \cdot v$ |
| `pull(p)` | $\sum_a p_a f_a$ |
| `bend(u, v)` | $\psi_a[u, v]$ |
| `bend_pull(p, v)` | $\sum_a p_a \psi_a v$ |
| `twist(u)` | $\Psi_a[u, u, u]$ |
| `curve(k, w)` | what curvature adds to the outputs at $t^{k+1}$ |
| `curved(k, r, w)` | that, and what curvature adds to the gradient $\sum_a r_a f_a$ at $t^k$ |

for a batch of R directions (R, P) and weights (R, m); the last two along the curve $w = t w_0 + t^2 w_1 + \ldots$ that
training takes, with $r = r_0 + t r_1 + \ldots$ Each costs a few passes of the model, in bounded memory.
"""

import abc
import collections
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from ..._base.check import inputs
from ..._base.types import Array, ArrayLike, Params, PyTree
from ..._run.memory import require_fits, rows_that_fit
from ..._run.precision import Portable, in_float64
from ..base import AbstractModel, count_parameters
from ..params import floating_params
from .passes import PASSES, mode_for

BATCH = 8  # directions in one compiled pass: enough to share the model's own work, few to pad
BUDGET = 512 * 2**20
_COPIES = 8  # a third derivative keeps about so many copies of what one evaluation makes

Batches = Sequence[np.ndarray]


class AbstractDerivatives(Portable, abc.ABC):
    """Derivatives of a model at one parameter vector, on fixed inputs. `passes` counts the passes of each kind."""

    size: int  # parameters, P
    outputs: int  # (input, output) pairs, m
    degree: int  # highest derivative that is not zero

    def __init__(self) -> None:
        self.passes: collections.Counter[str] = collections.Counter()

    @abc.abstractmethod
    def push(self, v: np.ndarray) -> np.ndarray:
        r"""$f_a \cdot v$ for directions `v` (R, P): (R, m)."""

    @abc.abstractmethod
    def pull(self, p: np.ndarray) -> np.ndarray:
        r"""$\sum_a p_a f_a$ for weights `p` (R, m): (R, P)."""

    @abc.abstractmethod
    def bend(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        r"""$\psi_a[u, v]$ for directions `u` and `v` (R, P): (R, m)."""

    @abc.abstractmethod
    def bend_pull(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        r"""$H[p]\, v = \sum_a p_a \psi_a v$ for weights `p` (R, m) and directions `v` (R, P): (R, P)."""

    @abc.abstractmethod
    def bend_pull_sum(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        r"""$\sum_r H[p_r]\, v_r$ of `bend_pull(p, v)`, (P,), for `p` and `v` as in `bend_pull`."""

    @abc.abstractmethod
    def twist(self, u: np.ndarray) -> np.ndarray:
        r"""$\Psi_a[u, u, u]$ for directions `u` (R, P): (R, m)."""

    @abc.abstractmethod
    def curve(self, k: int, w: Batches) -> np.ndarray:
        r"""$b_k$ of `w`, (R, m), for `k` 1 or 2.

        $$b_1 = \tfrac12 \psi[w_0, w_0], \qquad b_2 = \psi[w_0, w_1] + \tfrac16 \Psi[w_0, w_0, w_0]$$
        """

    @abc.abstractmethod
    def curved(self, k: int, r: Batches, w: Batches) -> tuple[np.ndarray, np.ndarray]:
        r"""$b_k$ of `w`, same as `curve`, and $h_k$ of `r` and `w`, (R, P), for `k` 1 or 2.

        $$h_1 = H[r_0]\, w_0, \qquad h_2 = H[r_1]\, w_0 + H[r_0]\, w_1 + \tfrac12 T[r_0]\, w_0 w_0$$

        $T[r] = \sum_a r_a \Psi_a$.
        """


class ModelDerivatives(AbstractDerivatives):
    """Derivatives of any `model` at `params` on inputs `x`, up to order `degree`, by automatic differentiation.

    Parameters are flattened in the order of `ravel_pytree`. With `roots` (P,), those of learning-rate factors, they are
    derivatives by the parameters divided by them."""

    roots: np.ndarray | None = None  # in files of 0.2, which trained without factors

    def __init__(
        self, model: AbstractModel, params: Params, x: np.ndarray, degree: int, roots: Array | None = None
    ):
        super().__init__()
        self.roots = None if roots is None else np.asarray(roots)
        self.model = model
        self.params = params
        self.x = x
        self.degree = degree
        self.size = count_parameters(params)
        self.out = jax.eval_shape(model, params, x[:1]).shape[1]
        self.outputs = len(x) * self.out
        per_row = 8 * _COPIES * _known_floats_per_row(model, params, x)
        self._rows = min(len(x), rows_that_fit(per_row, BUDGET))
        self._batch = min(BATCH, rows_that_fit(per_row * self._rows, BUDGET))

    def push(self, v: np.ndarray) -> np.ndarray:
        return self._run("push", (), (v,))[0]

    def pull(self, p: np.ndarray) -> np.ndarray:
        return self._run("pull", (p,), ())[1]

    def bend(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._run("bend", (), (u, v))[0]

    def bend_pull(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._run("bend_pull", (p,), (v,))[1]

    def bend_pull_sum(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._run("bend_pull_sum", (p,), (v,))[1].sum(0)

    def twist(self, u: np.ndarray) -> np.ndarray:
        return self._run("twist", (), (u,))[0]

    def curve(self, k: int, w: Batches) -> np.ndarray:
        return self._run("curve, quadratic" if self.degree == 2 else "curve, nested", (), w[:k])[0]

    def curved(self, k: int, r: Batches, w: Batches) -> tuple[np.ndarray, np.ndarray]:
        return self._run(f"curved, {'nested' if k == 1 else self._mode}", r[:k], w[:k])

    @functools.cached_property
    def _mode(self) -> str:
        """Taylor series win over nested derivatives only where a gradient is taken of the second order."""
        return mode_for(self.model, self.params, self.x[:1], self.degree)

    def _chunks(self):
        """Inputs a chunk at a time, padded to one shape, with the slice of the outputs they belong to."""
        for at in range(0, len(self.x), self._rows):
            rows = self.x[at : at + self._rows]
            part = slice(at * self.out, (at + len(rows)) * self.out)
            missing = [(0, self._rows - len(rows)), *[(0, 0)] * (rows.ndim - 1)]
            yield np.pad(rows, missing, mode="edge"), part

    def _run(self, kind: str, weights: Batches, directions: Batches) -> tuple[PyTree, PyTree]:
        """A pass over all rows and directions, in chunks of both: (R, m) and (R, P), or None."""
        count = len((*weights, *directions)[0])
        self.passes[kind] += count
        rows_out: PyTree = None
        pulled: PyTree = None
        step = min(self._batch, count)
        for rows, part in self._chunks():
            for at in range(0, count, step):
                batch = slice(at, min(at + step, count))
                # What is padded has weight 0, so that it adds nothing.
                p = [padded(each[batch, part], step, len(rows) * self.out) for each in weights]
                v = [padded(self.unscaled(each[batch]), step, self.size) for each in directions]
                made = PASSES[kind](self.model, self.params, rows, p, v)
                if made[0] is not None:
                    rows_out = np.zeros((count, self.outputs)) if rows_out is None else rows_out
                    values = np.asarray(made[0])
                    rows_out[batch, part] = values[: batch.stop - at, : part.stop - part.start]
                if made[1] is not None:
                    pulled = np.zeros((count, self.size)) if pulled is None else pulled
                    values = np.asarray(made[1])[: batch.stop - at]
                    pulled[at : at + len(values)] += values
        return rows_out, None if pulled is None else self.unscaled(pulled)

    def unscaled(self, vectors: np.ndarray) -> np.ndarray:
        """Directions `vectors` (R, P) of the scaled parameters in the model's own units; pulls back alike."""
        return vectors if self.roots is None else vectors * self.roots


def padded(array: np.ndarray, rows: int, columns: int) -> np.ndarray:
    missing = (rows - array.shape[0], columns - array.shape[1])
    return np.pad(array, [(0, missing[0]), (0, missing[1])]) if any(missing) else array


def jacobian(model: AbstractModel, params: Params, x: ArrayLike) -> jax.Array:
    """dz/dtheta as one array (n, out, P), as a JAX expression."""
    rows = jax.vmap(lambda row: jax.jacrev(lambda p: model(p, row[None])[0])(params))(jnp.asarray(x))
    return jnp.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in jax.tree.leaves(rows)], axis=2)


@in_float64
def effective_features(model: AbstractModel, params: Params, x: ArrayLike, name: str = "x") -> np.ndarray:
    r"""The features $\partial z_i / \partial \theta$ of a `model` at `params` on inputs `x`, (n, out, P).

    For a quadratic model they are $\phi + \epsilon\, \psi W$; for any other model, or an expansion, the Jacobian.
    Parameters are flattened in the order of `ravel_pytree`. `name` is the argument that error messages mention.
    """
    params = floating_params(model, params)
    x = inputs(x, name, model.in_shape)
    out = jax.eval_shape(model, params, x[:1]).shape[1]
    size = count_parameters(params)
    require_fits(8 * len(x) * out * size, f"features of {len(x)} points", "use fewer points, or a kernel")
    return np.asarray(_compiled_jacobian(model, params, x))


# A trace takes longer than many a pass, and the next model is often like the last.
_KNOWN: dict[tuple, int] = {}
_MOST_KNOWN = 256


def _known_floats_per_row(model: AbstractModel, params: Params, x: np.ndarray) -> int:
    leaves, structure = jax.tree.flatten((model, params))
    key = structure, tuple(np.shape(leaf) for leaf in leaves), x.shape[1:]
    try:
        hash(key)
    except TypeError:  # a model that holds what cannot be compared
        return _floats_per_row(model, params, x)
    count = _KNOWN.get(key)
    if count is None:
        count = _floats_per_row(model, params, x)
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()  # another thread may do so at any time
        _KNOWN[key] = count
    return count


def _floats_per_row(model: AbstractModel, params: Params, x: np.ndarray) -> int:
    """Numbers that one evaluation makes for each input, read off its trace."""

    def made(count: int) -> int:
        rows = jax.ShapeDtypeStruct((count, *x.shape[1:]), np.float64)
        return _sizes(jax.make_jaxpr(lambda p, r: model(p, r))(params, rows).jaxpr)

    return max(made(3) - made(2), math.prod(x.shape[1:]), 1)


def _sizes(jaxpr: core.Jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        inner = [_sizes(p.jaxpr) for p in equation.params.values() if hasattr(p, "jaxpr")]
        total += sum(inner) or sum(int(np.prod(getattr(v.aval, "shape", ()))) for v in equation.outvars)
    return total


@jax.jit
def _compiled_jacobian(model, params, x):
    return jacobian(model, params, x)
