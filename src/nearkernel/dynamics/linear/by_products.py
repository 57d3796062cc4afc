"""(K + ridge)^-1 from products with K: what a large kernel matrix is solved by where its factor costs too much."""

import math
import time

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


class ByProducts(AbstractFactor):
    """K and a ridge, never factored unless iterations turn out to cost more.

    Conjugate gradients win by far if they converge at all. They get as many products as a factor costs; if that is not
    enough and the matrix is in memory, it is factored after all.

    **Fields:** `run`, the last iteration; `status`, how it ended.
    """

    def __init__(self, kernel: AbstractKernel, x: np.ndarray):
        self._kernel, self._x = kernel, x
        self._held = held_fits(len(x), ConjugateGradients().budget())
        self.lam_max, self.rank, self.cutoff = math.nan, len(x), 0.0
        self.solver = ConjugateGradients(iterations=self._affordable())
        self.run = Iterated(np.zeros((0, 0)), math.inf, np.zeros(0), 0.0, "")
        self.status = Status(StatusKind.not_converged, "not solved yet")

    def _affordable(self) -> int:
        return max(20, len(self._x) // _FACTOR_COST) if self._held else ConjugateGradients().iterations

    def apply(self, algorithm: SpectralAlgorithm, right: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        ridge = algorithm.shift()
        assert ridge is not None
        matrix = self._kernel.entries(self._x, None) if self._held else None
        products = self.solver.products(self._kernel, self._x) if matrix is None else Held(matrix)
        if products.diagonal().any():
            with task("solve"):
                self.run = self.solver.iterate(products, right, algorithm)
        else:
            self.run = of_no_kernel(right, ridge)
        self.status = end_of_iterations(self.run, self.solver.tol)
        if matrix is not None and not self.status.ok:
            self._factored(matrix, ridge, right, begin)
        return self.run.coefficients

    def _factored(self, matrix: np.ndarray, ridge: float, right: np.ndarray, begin: float) -> None:
        factor = cholesky(matrix.astype(np.float64, copy=False), ridge, need_max=False)
        if factor is None:
            return
        found = factor.solve(right)
        residual = relative(right - factor.lower @ (factor.lower.T @ found), right)
        self.run = Iterated(found, residual, self.run.history, time.perf_counter() - begin, "")
        by = "by factoring K, because conjugate gradients were too slow"
        self.status = Status(StatusKind.converged, f"converged {by}")
        if not residual <= _FACTORED:
            self.status = short_of(residual, _FACTORED, by, "a larger ridge")

    def judged(self, status: Status) -> Status:
        return self.status


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
    return ByProducts(kernel, x)


def of_no_kernel(y: np.ndarray, ridge: float) -> Iterated:
    """(0 + ridge)^-1 y, the pseudo-inverse without a ridge."""
    coefficients = y / ridge if ridge else np.zeros_like(y)
    residual = relative(y - ridge * coefficients, y)
    return Iterated(coefficients, residual, np.zeros(0), 0.0, "the kernel is 0 on all of `x`")


def end_of_iterations(found: Iterated, tol: float) -> Status:
    """Converged, or how far the iterations came and what to do."""
    if found.residual <= tol:
        return Status(StatusKind.converged, f"converged in {found.iterations} iterations")
    why = f" ({found.note})" if found.note else ""
    return short_of(found.residual, tol, f"after {found.iterations} iterations{why}")


def short_of(
    residual: float, tol: float, where: str, advice: str = "a larger ridge, rank or tol, or solver='direct'"
) -> Status:
    return Status(
        StatusKind.not_converged,
        f"not converged: relative residual {residual:.2g} {where}, above tol = {tol:g}; use {advice}",
    )
