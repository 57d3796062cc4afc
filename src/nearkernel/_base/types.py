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

# The parameters of a model: a tree of arrays.
Params: TypeAlias = PyTree
# An argument as it came, before it is looked at.
Unchecked: TypeAlias = Any


class HasArray(Protocol):
    """What says itself how it becomes an array, such as a table of pandas."""

    def __array__(self) -> np.ndarray: ...


if TYPE_CHECKING:
    # Which of the two a function returns depends on what it is given, which type checkers cannot follow.
    Array: TypeAlias = Any
    Number: TypeAlias = Any
    ArrayLike: TypeAlias = jax.Array | np.ndarray | np.generic | HasArray | Sequence[Any] | complex
else:
    Array = jax.Array | np.ndarray
    Number = float | np.number | jax.Array

    class ArrayLike(abc.ABC):  # noqa: B024
        """Whatever `np.asarray` reads: arrays of NumPy and JAX, lists, numbers, and what has `__array__`."""

        @classmethod
        def __subclasshook__(cls, other: type) -> bool:
            return hasattr(other, "__array__") or (
                issubclass(other, Sequence | numbers.Number) and not issubclass(other, str | bytes)
            )
