"""Names of types in signatures, and shapes as jaxtyping writes them: `Num[ArrayLike, " n *d"]`.

One letter stands for one size within a signature: n training points, m new points; `*d` is the shape of one input and
`*out` that of one target, which is nothing if targets are (n,). Tests run the package with all of them checked
(`tests/support/typed.py`); users pay nothing.
"""

import abc
import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import jax
import numpy as np
from jaxtyping import Float as Float
from jaxtyping import Num as Num
from jaxtyping import PyTree as PyTree

# One number, which JAX may trace.
Number: TypeAlias = float | np.number | jax.Array
# A tree of arrays, which a model is called with.
Params: TypeAlias = PyTree


class HasArray(Protocol):
    """What says itself how it becomes an array, such as a table of pandas."""

    def __array__(self) -> np.ndarray: ...


if TYPE_CHECKING:
    # Which of the two a function returns depends on what it is given, which type checkers cannot follow.
    Array: TypeAlias = Any
    ArrayLike: TypeAlias = jax.Array | np.ndarray | np.generic | HasArray | Sequence[Any] | complex
else:
    Array = jax.Array | np.ndarray

    class ArrayLike(abc.ABC):  # noqa: B024
        """Whatever `np.asarray` reads: arrays of NumPy and JAX, lists, numbers, and what has `__array__`."""

        @classmethod
        def __subclasshook__(cls, other: type) -> bool:
            return hasattr(other, "__array__") or (
                issubclass(other, Sequence | numbers.Number) and not issubclass(other, str | bytes)
            )
