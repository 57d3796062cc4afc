"""Mercer's eigenpairs of a kernel, and the explicit features they make."""

import numpy as np
import scipy.linalg

from ..._base.check import inputs, numeric, whole
from ..._base.types import Array, ArrayLike
from ..._run.blas import one_thread
from ..._run.precision import in_float64, is_traced
from ..features import AbstractFeatureKernel
from .positivity import KernelLike, cross, positive_gram


class Mercer(AbstractFeatureKernel):
    r"""A kernel of finite rank, made by `mercer`: $k_r(x, y) = \sum_{i \le r} \lambda_i\, \phi_i(x)\, \phi_i(y)$.

    On the nodes it equals the kernel if $r$ is the full rank; elsewhere it is the Nyström approximation.

    **Fields:** `values` (r,), eigenvalues, largest first; `nodes` (n, d) and `weights` (n,) of the measure; `kernel`;
    `coefficients` (n, r): $\phi_i = \sum_j$ `coefficients[j, i]` $k(\cdot, x_j)$.
    """

    kernel: KernelLike
    nodes: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    coefficients: np.ndarray

    @in_float64
    def functions(self, x: ArrayLike) -> Array:
        """Eigenfunctions (m, r) at any points `x` (m, d), by the Nyström extension; orthonormal in the measure."""
        if is_traced(self, x):
            return self.kernel(x, self.nodes) @ self.coefficients
        return self._at(inputs(x, dim=self.nodes.shape[1])) @ self.coefficients

    @in_float64
    def features(self, x: ArrayLike) -> Array:
        r"""The feature map $\sqrt{\lambda_i}\, \phi_i$ at `x`, (m, r): `features(x) @ features(y).T` is this kernel."""
        return self.functions(x) * self.values**0.5

    def feature_rows(self, x: np.ndarray) -> np.ndarray:
        return self._at(x) @ (self.coefficients * np.sqrt(self.values))

    def _at(self, x: np.ndarray) -> np.ndarray:
        return cross(self.kernel, x, self.nodes)

    def input_dim(self) -> int:
        return self.nodes.shape[1]


@in_float64
def mercer(
    kernel: KernelLike, x: ArrayLike, weights: ArrayLike | None = None, rank: int | None = None
) -> Mercer:
    r"""Eigenvalues and eigenfunctions of a kernel in a measure: $\int k(x, y)\, \phi(y)\, d\mu(y) = \lambda\, \phi(x)$.

    The measure is $\mu = \sum_j w_j\, \delta(x_j)$. The nodes and weights of a quadrature rule give the eigenpairs of
    the continuous measure, to the accuracy of the rule; a sample with equal weights gives estimates of them. The
    eigenvectors $u$ of $\sqrt{w_i w_j}\, k(x_i, x_j)$ give $\phi(x) = \sum_j \sqrt{w_j}\, k(x, x_j)\, u_j / \lambda$.

    **Arguments:**

    - `kernel`: positive semidefinite, of this library or any function k(x1, x2) -> (n1, n2).
    - `x`: nodes (n, d).
    - `weights`: (n,) > 0; 1/n each by default.
    - `rank`: number of eigenpairs; by default all with eigenvalues that are nonzero up to rounding.
    """
    x = inputs(x)
    n = len(x)
    w = np.full(n, 1 / n) if weights is None else numeric(weights, "weights")
    if w.shape != (n,) or np.any(w <= 0):
        raise ValueError(f"`weights` must be ({n},) positive numbers, one per point; got shape {w.shape}.")
    kept = n if rank is None else whole(rank, "rank", 1)
    if kept > n:
        raise ValueError(f"`rank` must be at most the number of points, {n}; got {rank}.")
    root = np.sqrt(w)
    matrix = root[:, None] * positive_gram(kernel, x) * root
    with one_thread(n // 2):
        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[n - kept, n - 1], overwrite_a=True)
    values, vectors = values[::-1], vectors[:, ::-1]
    real = values > n * np.finfo(float).eps * values[0]
    if not real.any():
        raise ValueError("`kernel` is zero on `x`: it has no eigenfunctions there.")
    values, vectors = values[real], vectors[:, real]
    return Mercer(kernel, x, w, values, root[:, None] * vectors / values)
