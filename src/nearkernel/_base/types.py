"""Shapes in signatures, as jaxtyping writes them: `Num[ArrayLike, " n *d"]`. Nothing is checked at run time.

One letter stands for one size within a signature: n training points, m new points; `*d` is the shape of one input and
`*out` that of one target, which is nothing if targets are (n,). A test compares them with real results.
"""

from typing import Any, TypeAlias

from jaxtyping import Float as Float
from jaxtyping import Num as Num

ArrayLike: TypeAlias = Any  # arrays of NumPy and JAX, traced ones too, lists, and whatever has `__array__`
