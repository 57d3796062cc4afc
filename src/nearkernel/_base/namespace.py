"""NumPy or JAX, by what an array is: concrete numbers need no compiler."""

from typing import Any

import jax.numpy as jnp
import numpy as np


def namespace(*arrays: Any) -> Any:
    """NumPy if `arrays` are all NumPy's, for which nothing need be compiled; JAX otherwise."""
    return np if all(isinstance(array, np.ndarray | np.generic) for array in arrays) else jnp
