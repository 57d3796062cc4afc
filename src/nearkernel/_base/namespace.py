"""NumPy or JAX, by what an array is: concrete numbers need no compiler."""

from types import ModuleType

import jax.numpy as jnp
import numpy as np

from .types import Array


def namespace(*arrays: Array | None) -> ModuleType:
    """NumPy if `arrays` are all NumPy's, for which nothing need be compiled; JAX otherwise."""
    return np if all(isinstance(array, np.ndarray | np.generic) for array in arrays) else jnp
