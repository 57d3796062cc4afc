"""z(x; theta): the contract of every model."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._precision import in_float64, is_traced, working_dtype

Params = Any  # a tree of arrays


class AbstractModel(eqx.Module):
    """A function of parameters and inputs. Parameters are passed, never stored: theory differentiates by them."""

    @abc.abstractmethod
    def init(self, key: jax.Array) -> Params:
        """Parameters to start from."""

    @abc.abstractmethod
    def __call__(self, params: Params, x: Any) -> jax.Array:
        """Outputs (n, out) at inputs `x` (n, d)."""


def require_model(model: Any) -> None:
    """Refuses what is not a model."""
    if not isinstance(model, AbstractModel):
        raise TypeError(
            f"`model` must be a nearkernel model; got {type(model).__name__}: wrap it by nk.from_function, "
            "nk.from_torch or nk.from_network."
        )


def count_parameters(params: Params) -> int:
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(params))


def at_least_float(x: Any) -> jax.Array:
    """`x` as a JAX array of floats: NumPy and whole numbers in the working precision, JAX floats as they are."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating):
        return x
    return jnp.asarray(x, dtype=working_dtype())


@in_float64
def in_working_precision(params: Params) -> Params:
    """Parameters in the working precision, in which other libraries seldom make them; traced ones as they are."""

    def convert(leaf: Any) -> Any:
        floating = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        return leaf if is_traced(leaf) or not floating else jnp.asarray(leaf, working_dtype())

    return jax.tree.map(convert, params)
