"""A kernel that looks at its inputs through a matrix: distances that count more in some directions."""

import jax.numpy as jnp
import numpy as np

from ..._base.check import numeric
from ..._base.types import Array, ArrayLike
from ..base import AbstractKernel, require_kernel


class Mahalanobis(AbstractKernel):
    r"""$k_M(x, y) = k(M^{1/2} x, M^{1/2} y)$; a distance kernel then uses $\sqrt{(x - y)^\top M (x - y)}$.

    **Arguments:** `kernel`, any kernel; `matrix`, M (d, d), symmetric and positive semidefinite. The identity gives
    `kernel` itself; `nk.theory.recursive_features` learns such a matrix.
    """

    kernel: AbstractKernel
    root: Array

    def __init__(self, kernel: AbstractKernel, matrix: ArrayLike):
        require_kernel(kernel)
        matrix = numeric(matrix, "matrix")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise ValueError(f"`matrix` must have shape (d, d); got {matrix.shape}.")
        if kernel.input_dim() not in (None, len(matrix)):
            raise ValueError(
                f"`matrix` must have shape {(kernel.input_dim(),) * 2}, as `kernel` needs; got {matrix.shape}."
            )
        if np.abs(matrix - matrix.T).max() > 1e-8 * np.abs(matrix).max():
            raise ValueError("`matrix` must be symmetric.")
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        if values[0] < -1e-8 * np.abs(values).max():
            raise ValueError(f"`matrix` must have no negative eigenvalues; the smallest is {values[0]:.3g}.")
        self.kernel = kernel
        self.root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        root = np.asarray(self.root)
        return self.kernel.matrix(x1 @ root, None if x2 is None else x2 @ root)

    def traced(self, x1: Array, x2: Array | None) -> Array:
        root = jnp.asarray(self.root)
        return self.kernel.traced(x1 @ root, None if x2 is None else x2 @ root)

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return self.kernel.diagonal(x @ np.asarray(self.root))

    def input_dim(self) -> int:
        return self.root.shape[0]
