"""Models of second and third degree in their weights, of given features: the simplest that learn features."""

import inspect
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import array_of, called, finite_number, whole
from ..._base.keys import Key
from ..._base.types import ArrayLike, Num, Number
from ..._run.precision import drawing, in_float64
from ..base import AbstractModel, Params, rows_of
from .features import checked_features, feature_weights, require_features, zero_weights


class QuadraticModel(AbstractModel):
    r"""A quadratic model $z_i = \sum_j W_{ij}\, \phi_j(x) + \frac{\epsilon}{2} \sum_{jk} W_{ij} W_{ik}\, \psi_{jk}(x)$.

    As $W$ moves, so do the effective features
    $\partial z_i / \partial W_{ij} = \phi_j + \epsilon \sum_k \psi_{jk} W_{ik}$: the model learns features. $W$ is
    (out, f), or (f,) for one output, and is initialized to 0.

    **Arguments:**

    - `phi`: features, a JAX function (n, d) -> (n, f).
    - `psi`: meta-features, symmetric in their last two indices: a function (n, d) -> (n, f, f), or, if that array would
      not fit, a product (x, u) -> $\psi(x)\, u$ that maps (n, d) and (f,) to (n, f). Only the symmetric part of an
      array is used; `solve` raises `ValueError` for a product that is not symmetric.
    - `eps`: the strength of feature learning; 0 gives a linear model.
    - `out_dim`: number of outputs, each with its own weights.
    - `in_dim`: needed if you call `init` before the model has seen an input.
    """

    phi: Callable = eqx.field(static=True)
    psi: Callable = eqx.field(static=True)
    eps: Number = 1.0
    out_dim: int = eqx.field(static=True, default=1, kw_only=True)
    in_dim: int | None = eqx.field(static=True, default=None, kw_only=True)

    def __check_init__(self):
        require_features(self.phi)
        if not callable(self.psi):
            raise TypeError(
                f"`psi` must be a function x -> (n, f, f) or (x, u) -> (n, f); got {type(self.psi).__name__}."
            )
        finite_number(self.eps, "eps")
        whole(self.out_dim, "out_dim", 1)
        if self.in_dim is not None:
            whole(self.in_dim, "in_dim", 1)

    @in_float64
    def features(self, x: ArrayLike) -> jax.Array:
        r"""The features $\phi$ at `x`, checked to have shape (n, f)."""
        return checked_features(self.phi, rows_of(x, self.in_dim))

    @drawing
    def init(self, key: Key | None = None) -> Params:
        if self.in_dim is None:
            name = type(self).__name__
            raise ValueError(f"`{name}.init` needs `in_dim`: {name}(phi, psi, eps, in_dim=d).")
        return zero_weights(self.phi, self.in_dim, self.out_dim)

    @in_float64
    def __call__(self, params: Params, x: Num[ArrayLike, " n *d"]) -> jax.Array:
        x, phi = rows_of(x, self.in_dim), self.features(x)
        weights = feature_weights(self, params, phi.shape[1])
        return phi @ weights.T + jax.vmap(lambda w: self.bending(w, x), out_axes=1)(weights)

    def bending(self, w: jax.Array, x: jax.Array) -> jax.Array:
        r"""The terms beyond $\phi \cdot w$ at `x`, (n,), for one output's weights `w` (f,)."""
        return 0.5 * self.eps * (self.meta(x, w) @ w)

    def meta(self, x: jax.Array, u: jax.Array) -> jax.Array:
        r"""$\psi$ at `x`, times `u`: (n, f)."""
        return _applied(self.psi, "psi", x, u)


class CubicModel(QuadraticModel):
    r"""`QuadraticModel` with a cubic term, through which $\psi$ moves too.

    The term is $\frac{\epsilon^2}{6} \sum_{jkl} W_{ij} W_{ik} W_{il}\, \Psi_{jkl}(x)$.

    **Arguments:** `phi`, `psi`, `eps`, `out_dim`, `in_dim`: same as `QuadraticModel`; `Psi`, symmetric in its last
    three indices: a function (n, d) -> (n, f, f, f), or a product (x, u, v) -> $\Psi(x)\, u\, v$ that maps (n, d),
    (f,), (f,) to (n, f).
    """

    Psi: Callable = eqx.field(static=True)  # type: ignore[misc]  # __init__ below takes it before eps

    def __init__(self, phi, psi, Psi, eps=1.0, *, out_dim=1, in_dim=None):
        self.phi = phi
        self.psi = psi
        self.Psi = Psi
        self.eps = eps
        self.out_dim, self.in_dim = out_dim, in_dim

    def __check_init__(self):
        if not callable(self.Psi):
            raise TypeError(
                f"`Psi` must be a function x -> (n, f, f, f) or (x, u, v) -> (n, f); got {type(self.Psi).__name__}."
            )

    def bending(self, w: jax.Array, x: jax.Array) -> jax.Array:
        cube = self.eps**2 / 6 * (self.third(x, w, w) @ w)
        return super().bending(w, x) + cube

    def third(self, x: jax.Array, u: jax.Array, v: jax.Array) -> jax.Array:
        """Psi at `x`, times `u` and `v`: (n, f)."""
        return _applied(self.Psi, "Psi", x, u, v)


def _applied(function: Callable, name: str, x: jax.Array, *vectors: jax.Array) -> jax.Array:
    """A tensor contracted with vectors, whether it is given as an array or as a product."""
    n, f = len(x), len(vectors[0])
    if is_product(function):
        call = f"{name}({', '.join(['x', 'u', 'v'][: len(vectors) + 1])})"
        values = array_of(called(function, call, x, *vectors), call)
        if values.shape != (n, f):
            raise ValueError(f"`{call}` must return (n, f) = {(n, f)}; it returns {values.shape}.")
        return values
    values = array_of(called(function, f"{name}(x)", x), f"{name}(x)")
    expected = (n,) + (f,) * (len(vectors) + 1)
    if values.shape != expected:
        axes = ", ".join("n" + "f" * (len(vectors) + 1))
        raise ValueError(f"`{name}(x)` must return ({axes}) = {expected}; it returns {values.shape}.")
    return _symmetric_part(values, vectors)


def _symmetric_part(array: jax.Array, vectors: tuple[jax.Array, ...]) -> jax.Array:
    """The mean over all orders of the last indices, contracted with `vectors`."""
    if len(vectors) == 1:
        return 0.5 * (array @ vectors[0] + jnp.einsum("njk,j->nk", array, vectors[0]))
    u, v = vectors
    spellings = ("njkl,k,l->nj", "nkjl,k,l->nj", "nklj,k,l->nj")
    terms = [jnp.einsum(s, array, a, b) for s in spellings for a, b in ((u, v), (v, u))]
    return sum(terms[1:], terms[0]) / 6


def is_product(function: Callable) -> bool:
    """Whether a tensor is given as its product with vectors: a function of x and of them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built in C: say what cannot be known
        return False
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in needed) > 1
