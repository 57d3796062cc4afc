"""z(x; theta): the contract of every model."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.check import inputs, numeric
from .._base.keys import Key
from .._base.types import ArrayLike, Float, Num
from .._run.precision import Portable, in_float64, is_traced, working_dtype

Params = Any  # a tree of arrays


class AbstractModel(Portable, eqx.Module):
    """A function of parameters and inputs. Parameters are passed as an argument and never stored in the model."""

    @property
    def in_shape(self) -> tuple[int, ...] | None:
        """The shape of one input; None for vectors of any length."""
        dim = getattr(self, "in_dim", None)
        return None if dim is None else (dim,)

    @abc.abstractmethod
    def init(self, key: Key) -> Params:
        """Random initial parameters, drawn with `key`."""

    @abc.abstractmethod
    def __call__(self, params: Params, x: Num[ArrayLike, " n *d"]) -> Float[jax.Array, "n out"]:
        """Outputs (n, out) of the network with `params` at inputs `x` (n, d)."""

    def parameter_shapes(self) -> Any:
        """A tree like the parameters, of `jax.ShapeDtypeStruct`; None if the shapes are not known beforehand."""
        return None

    def own_factors(self, optimizer: str) -> Params | None:
        """The learning-rate factors of training with `optimizer` "sgd" or "adam", unless others are given.

        None if all are 1.
        """
        return None


def require_model(model: Any, name: str = "model") -> None:
    """Raises `TypeError` unless `model` is a model."""
    if not isinstance(model, AbstractModel):
        raise TypeError(
            f"`{name}` must be a nearkernel model; got {type(model).__name__}: wrap it with nk.from_function, "
            "nk.from_torch or nk.from_network."
        )


def count_parameters(params: Params) -> int:
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(params))


def at_least_float(x: ArrayLike) -> jax.Array:
    """`x` as a JAX array of floats: NumPy and integers in the working precision, JAX floats as they are."""
    if not is_traced(x):
        numeric(x, "x")
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating):
        return x
    return jnp.asarray(x, dtype=working_dtype())


def in_one_dtype(params: Params, x: jax.Array) -> tuple[Params, jax.Array]:
    """Parameters and inputs in the wider type of all: loops and convolutions of JAX's take one."""
    dtype = jnp.result_type(x, *jax.tree.leaves(params))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), params), x.astype(dtype)


def rows_of(x: ArrayLike, dim: int | tuple[int, ...] | None = None) -> jax.Array:
    """`x` as `at_least_float` makes it, refused unless it is (n, d) with d = `dim`, or of another shape (n, *dim)."""
    if not is_traced(x):
        inputs(x, "x", dim)
    rows, wanted = at_least_float(x), dim if isinstance(dim, tuple) else (dim,)
    if rows.shape[1:] != wanted and (dim or rows.ndim != 2):
        shape = ", ".join(["n", *("d" if each is None else str(each) for each in wanted)])
        raise ValueError(f"`x` must have shape ({shape}); got {rows.shape}.")
    return rows


@in_float64
def in_working_precision(params: Params) -> Params:
    """Parameters in the working precision, in which other libraries seldom make them; traced ones as they are."""

    def convert(leaf: Any) -> Any:
        dtype = getattr(leaf, "dtype", type(leaf))
        fixed = is_traced(leaf) or isinstance(leaf, np.ma.MaskedArray) or dtype is type(leaf) is not float
        return (
            leaf if fixed or not jnp.issubdtype(dtype, jnp.floating) else jnp.asarray(leaf, working_dtype())
        )

    return jax.tree.map(convert, params)
