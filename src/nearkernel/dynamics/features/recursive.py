"""A kernel that learns features: solved, asked for its gradients, it then looks through their outer product."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np

from ..._base.check import inputs, targets, whole
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...kernels.base import AbstractKernel
from ...kernels.classical.mahalanobis import Mahalanobis
from ...kernels.classical.stationary import Laplace
from ..algorithms.spectral import Ridge, SpectralAlgorithm
from ..linear.iterative import MachineSolution
from ..linear.solution import Solution
from ..solving import solve
from .subspace import checked_subspace, outer_product, row_gradients, subspace_overlap, top_directions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RIDGE = 1e-3


class RecursiveFeaturesResult(Result, eqx.Module):
    """Kernel machines after each round of learning the metric.

    **Fields:** `matrices`, M (d, d) of each round, all with trace d, the first the identity; `solutions`, one
    `Solution` per round; `overlaps` of the leading directions of each M with the true subspace (r/d for the first),
    None if no subspace was given.
    """

    matrices: tuple[np.ndarray, ...]
    solutions: tuple[Solution | MachineSolution, ...] = eqx.field(static=True)
    overlaps: tuple[float, ...] | None

    @property
    def matrix(self) -> np.ndarray:
        """The matrix M of the last round."""
        return self.matrices[-1]

    @property
    def solution(self) -> Solution | MachineSolution:
        """The kernel machine of the last round, for predictions."""
        return self.solutions[-1]

    def directions(self, count: int) -> np.ndarray:
        """The leading `count` eigenvectors (count, d) of M."""
        return top_directions(self.matrix, count)

    def _shown(self) -> Mapping[str, object]:
        return {"rounds": len(self.matrices), "overlaps": self.overlaps, "last": self.solutions[-1]}

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the leading eigenvalues of the learned matrix, round by round, on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        values = np.stack([np.linalg.eigvalsh(matrix)[::-1][:5] for matrix in self.matrices])
        return draw_lines(
            np.arange(len(values)), values, axes, xlabel="round", ylabel="eigenvalue of the matrix"
        )


@in_float64
def recursive_features(
    kernel: AbstractKernel | None,
    x: ArrayLike,
    y: ArrayLike,
    algorithm: SpectralAlgorithm | None = None,
    rounds: int = 5,
    *,
    subspace: ArrayLike | None = None,
) -> RecursiveFeaturesResult:
    r"""A recursive feature machine: alternates kernel regression and learning the metric from gradients.

    Each round fits $f = k_M(\cdot, X)\, a$ and then sets $M$ to the average of $\nabla f\, \nabla f^\top$ over $X$.
    $k_M(x, y) = k(M^{1/2} x, M^{1/2} y)$ is `nk.kernels.Mahalanobis`; $M$ is the identity in the first round and
    always has trace d.

    **Arguments:** `kernel`, any kernel that JAX can differentiate, or None for `nk.kernels.Laplace(sqrt(2 d))`; `x` (n,
    d); `y` (n,) or (n, out), preferably with mean 0; `algorithm`, same as `nk.solve`, `Ridge(1e-3)` by default;
    `rounds`, the number of times M is learned, 0 for the plain kernel; `subspace`, true directions (r, d), if known,
    for comparison.
    """
    x = inputs(x)
    d = x.shape[1]
    kernel = Laplace((2 * d) ** 0.5) if kernel is None else kernel
    vector, y = np.ndim(y) == 1, targets(y, len(x))
    true = None if subspace is None else checked_subspace(subspace, d)
    algorithm = Ridge(_RIDGE) if algorithm is None else algorithm
    matrices, solutions = [np.eye(d)], []
    for _ in range(whole(rounds, "rounds", 0) + 1):
        seen = Mahalanobis(kernel, matrices[-1])
        solutions.append(solve(seen, x, y[:, 0] if vector else y, algorithm))
        if len(solutions) > rounds:
            break
        learned = _gradient_matrix(seen, solutions[-1], x) if solutions[-1].ok else np.zeros((d, d))
        trace = np.trace(learned)
        if not 0 < trace < np.inf:  # constant targets teach nothing
            break
        matrices.append(d / trace * learned)
    overlaps = None
    if true is not None:
        seen_by = (subspace_overlap(top_directions(m, len(true)), true) for m in matrices[1:])
        overlaps = (len(true) / d, *seen_by)
    return RecursiveFeaturesResult(tuple(matrices), tuple(solutions), overlaps)


def _gradient_matrix(
    kernel: AbstractKernel, solution: Solution | MachineSolution, x: np.ndarray
) -> np.ndarray:
    """Mean over `x` of nabla f nabla f^T for f = k(., centers) a; the centers are `x`, but for approximate solvers."""
    centers = getattr(solution, "centers", x)
    return outer_product(
        lambda part: _gradients(kernel, centers, solution.coefficients, part),
        x,
        bytes_per_row=6 * 8 * len(centers),
    )


@jax.jit
def _gradients(
    kernel: AbstractKernel, centers: jax.Array, coefficients: jax.Array, part: jax.Array
) -> jax.Array:
    return row_gradients(lambda z: kernel.traced(z, centers) @ coefficients, part)
