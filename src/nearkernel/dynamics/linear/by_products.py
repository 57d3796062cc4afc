"""(K + ridge)^-1 from products with K: what a large kernel matrix is solved by where its factor costs too much."""

import dataclasses
import math
import time
from typing import Self

import numpy as np

from ..._base.status import Status, StatusKind
from ..._run.progress import task
from ...kernels.base import AbstractKernel
from ...scale.iterate import Iterated, relative
from ...scale.products import Held, held_fits
from ..algorithms.spectral import SpectralAlgorithm
from .factor import AbstractFactor, cholesky
from .solvers import ConjugateGradients

_DIRECT = 4000  # rows up to which a factor costs less than a second
_FACTORED = (
    1e-6  # relative residual up to which a factor has solved: rounding alone leaves less, but for singular K
)
_FACTOR_COST = 150  # a Cholesky factor of n rows costs about n / 150 products with K


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ByProducts(AbstractFactor):
    """K and a ridge, never factored unless iterations turn out to cost more.

    Conjugate gradients win by far if they converge at all. They get as many products as a factor costs; if that is not
    enough and the matrix is in memory, it is factored after all.

    **Fields:** `held`, whether the matrix is in memory; `solver`; `run`, the iteration that found the coefficients;
    `status`, how it ended.
    """

    kernel: AbstractKernel
    x: np.ndarray
    rank: int
    held: bool
    solver: ConjugateGradients
    lam_max: float = math.nan
    cutoff: float = 0.0
    run: Iterated = Iterated(np.zeros((0, 0)), math.inf, np.zeros(0), 0.0, "")
    status: Status = Status(StatusKind.not_converged, "not solved yet")

    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        return self.solved(algorithm, right)[1]

    def solved(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> tuple[Self, np.ndarray]:
        begin = time.perf_counter()
        ridge = algorithm.shift()
        assert ridge is not None
        matrix = self.kernel.entries(self.x, None) if self.held else None
        products = self.solver.products(self.kernel, self.x) if matrix is None else Held(matrix)
        if products.diagonal().any():
            with task("solve"):
                run = self.solver.iterate(products, right, algorithm)
        else:
            run = of_no_kernel(right, ridge)
        status = end_of_iterations(run, self.solver.tol)
        if matrix is not None and not status.ok:
            run, status = _factored(matrix, ridge, right, begin, run) or (run, status)
        return dataclasses.replace(self, run=run, status=status), run.coefficients

    def judged(self, status: Status) -> Status:
        return self.status


def _factored(
    matrix: np.ndarray, ridge: float, right: np.ndarray, begin: float, tried: Iterated
) -> tuple[Iterated, Status] | None:
    """The solution by a factor, where iterations were `tried` in vain; None if the matrix is singular."""
    factor = cholesky(matrix.astype(np.float64, copy=False), ridge, need_max=False)
    if factor is None:
        return None
    coefficients = factor.solve(right)
    residual = relative(right - factor.lower @ (factor.lower.T @ coefficients), right)
    run = Iterated(coefficients, residual, tried.history, time.perf_counter() - begin, "")
    by = "by factoring K, because conjugate gradients were too slow"
    if residual <= _FACTORED:
        return run, Status(StatusKind.converged, f"converged {by}")
    return run, short_of(residual, _FACTORED, by, "a larger ridge")


def by_size(kernel: AbstractKernel, x: np.ndarray, algorithm: SpectralAlgorithm) -> ByProducts | None:
    """What "auto" does with more than 4000 points; None where a factor is the choice."""
    ridge = algorithm.shift()
    fits = held_fits(len(x), ConjugateGradients().budget())
    if len(x) <= _DIRECT or (fits and not ridge):
        return None
    if ridge is None:
        raise MemoryError(
            f"the eigenvalues of a kernel matrix of {len(x)} points do not fit in memory: use solver='richardson' "
            "for gradient descent, solver='nystrom' for any algorithm, or fewer points."
        )
    affordable = max(20, len(x) // _FACTOR_COST) if fits else ConjugateGradients().iterations
    return ByProducts(
        kernel=kernel, x=x, rank=len(x), held=fits, solver=ConjugateGradients(iterations=affordable)
    )


def of_no_kernel(y: np.ndarray, ridge: float) -> Iterated:
    """(0 + ridge)^-1 y, the pseudo-inverse without a ridge."""
    coefficients = y / ridge if ridge else np.zeros_like(y)
    residual = relative(y - ridge * coefficients, y)
    return Iterated(coefficients, residual, np.zeros(0), 0.0, "the kernel is 0 on all of `x`")


def end_of_iterations(run: Iterated, tol: float) -> Status:
    """Converged, or how far the iterations came and what to do."""
    if run.residual <= tol:
        return Status(StatusKind.converged, f"converged in {run.iterations} iterations")
    why = f" ({run.note})" if run.note else ""
    return short_of(run.residual, tol, f"after {run.iterations} iterations{why}")


def short_of(
    residual: float, tol: float, where: str, advice: str = "a larger ridge, rank or tol, or solver='direct'"
) -> Status:
    return Status(
        StatusKind.not_converged,
        f"not converged: relative residual {residual:.2g} {where}, above tol = {tol:g}; use {advice}",
    )
