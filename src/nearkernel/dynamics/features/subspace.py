"""Which directions of its input a function uses: average outer products of gradients, and overlaps of subspaces."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import array_of, called, inputs, whole
from ..._base.types import ArrayLike
from ..._run.memory import rows_that_fit
from ..._run.precision import in_float64


def subspace_overlap(found: ArrayLike, true: ArrayLike) -> float:
    r"""The overlap of two subspaces: 1 if the rows of `true` (r, d) lie in the span of `found` (k, d), 0 if orthogonal.

    With the projections $P$ on both, it is $\lVert P_{\text{found}} P_{\text{true}}\rVert^2 / r$. A random subspace of
    k of d directions has overlap $k/d$ on average.
    """
    true = _directions(true, "true")
    found = _directions(found, "found", true.shape[1])
    one, other = _basis(found, "found"), _basis(true, "true")
    return float(np.sum((one @ other.T) ** 2) / len(other))


def _directions(rows: ArrayLike, name: str, dim: int | None = None) -> np.ndarray:
    """Rows (k, d), no more than d of them: more are columns by mistake."""
    rows = inputs(rows, name, dim)
    if len(rows) > rows.shape[1]:
        raise ValueError(
            f"`{name}` has {len(rows)} directions of {rows.shape[1]} features, more than the space has dimensions. "
            f"Directions are rows; pass `{name}.T` if yours are columns."
        )
    return rows


def _basis(rows: np.ndarray, name: str) -> np.ndarray:
    """Orthonormal rows of the same span; repeated directions count once."""
    _, sizes, basis = np.linalg.svd(rows / max(np.abs(rows).max(), 1e-300), full_matrices=False)
    kept = basis[sizes > max(rows.shape) * np.finfo(float).eps * sizes[0]]
    if not len(kept):
        raise ValueError(f"`{name}` is 0: it has no direction.")
    return kept


def top_directions(matrix: np.ndarray, count: int) -> np.ndarray:
    """Eigenvectors (count, d) of a symmetric matrix (d, d) with the largest absolute eigenvalues."""
    count = whole(count, "count", 1)
    if count > len(matrix):
        raise ValueError(f"`count` must be at most the number of features, {len(matrix)}; got {count}.")
    values, vectors = np.linalg.eigh(matrix)
    return vectors[:, np.argsort(-np.abs(values))[:count]].T


@in_float64
def average_gradient_outer_product(function: Callable, x: ArrayLike) -> np.ndarray:
    r"""The average gradient outer product (AGOP): the mean of $\nabla f\, \nabla f^\top$ over points, (d, d).

    It is summed over outputs. Its eigenvectors with large eigenvalues are the directions in which `function` varies.

    **Arguments:** `function`, a JAX function (n, d) -> (n,) or (n, out) that treats each row separately, such as
    `lambda x: net(params, x)`; `x` (n, d).
    """
    if not callable(function):
        raise TypeError(f"`function` must be a JAX function (n, d) -> (n,); got {type(function).__name__}.")
    return outer_product(jax.jit(lambda part: row_gradients(function, part)), inputs(x))


def outer_product(
    gradients: Callable[[np.ndarray], ArrayLike], x: np.ndarray, bytes_per_row: int = 2**16
) -> np.ndarray:
    """Mean over `x` of g g^T, where `gradients` gives (out, rows, d), a chunk of rows at a time."""
    chunk = min(rows_that_fit(bytes_per_row), len(x))
    total = np.zeros((x.shape[1], x.shape[1]))
    for at in range(0, len(x), chunk):
        part = x[at : at + chunk]
        filled = np.pad(part, ((0, chunk - len(part)), (0, 0)), mode="edge")  # one compiled shape for all
        found = np.asarray(gradients(filled))[:, : len(part)].reshape(-1, x.shape[1])
        total += found.T @ found
    return total / len(x)


def row_gradients(function: Callable, x: jax.Array) -> jax.Array:
    """d f_o(x_i) / d x_i, (out, n, d): rows do not meet, so one backward pass per output serves all of them."""

    def columns(z):
        found = array_of(called(function, "function(x)", z), "function(x)")
        if found.ndim not in (1, 2) or len(found) != len(z):
            raise ValueError(
                f"`function` must map (n, d) to (n,) or (n, out); it maps {z.shape} to {found.shape}."
            )
        return found.reshape(len(z), -1)

    values, pull = jax.vjp(columns, x)
    ones = jnp.eye(values.shape[1], dtype=values.dtype)
    return jnp.stack([pull(jnp.broadcast_to(one, values.shape))[0] for one in ones])


def checked_subspace(subspace: ArrayLike, d: int) -> np.ndarray:
    """Rows (r, d) that span the true directions."""
    rows = _directions(subspace, "subspace", d)
    if len(_basis(rows, "subspace")) < len(rows):
        raise ValueError(
            "`subspace` must contain linearly independent directions; some of its rows depend on others."
        )
    return rows


__all__ = ["average_gradient_outer_product", "checked_subspace", "subspace_overlap", "top_directions"]
