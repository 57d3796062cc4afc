"""What `solve` returns when it iterates: coefficients, and how far the iteration came."""

import dataclasses
import math
from typing import Self

import numpy as np

from ..._base.check import inputs
from ..._base.rooms import renamed
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike
from ..._run.memory import rows_that_fit
from ..._run.precision import in_float64
from ..._run.progress import task
from ...kernels.base import AbstractKernel
from ...scale.centers import Centered, centered
from ...scale.iterate import Iterated
from ..algorithms.divergence import growth
from ..algorithms.spectral import GradientDescent, SpectralAlgorithm
from .base import AbstractSolution, Prediction, moved_to, status_at
from .by_products import end_of_iterations, of_no_kernel
from .factor import AbstractFactor, Spectrum, cholesky
from .solvers import AbstractSolver, IterativeSolver, Nystrom, Richardson


@renamed("0.5", centres="centers")
@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MachineSolution(AbstractSolution):
    r"""A kernel machine $z(x) = k(x, C)\, a$ found by iteration, with all training points or fewer as centers $C$.

    **Fields:** `algorithm`, `solver`; `coefficients` (m, out) and `centers` (m, d); `relative_residual`, the residual
    $\lVert y - (K + s) a\rVert / \lVert y\rVert$ of the worst output, with the ridge $s$; `iterations`; `history`, the
    residual at each iteration; `seconds`; `status`, an `nk.Status`, and its `ok`: whether the tolerance was reached, or
    K was factored.
    """

    algorithm: SpectralAlgorithm
    kernel: AbstractKernel
    centers: np.ndarray
    coefficients: np.ndarray
    solver: AbstractSolver
    relative_residual: float
    history: np.ndarray
    seconds: float
    _status: Status

    @property
    def status(self) -> Status:
        return self._status

    @property
    def iterations(self) -> int:
        return len(self.history)

    @in_float64
    def predict(self, x_new: ArrayLike, time: float | None = None) -> Prediction:
        """Outputs at `x_new` (m, d), in bounded memory; another `time` is available for "nystrom" only."""
        if time is not None:
            return self.at(time).predict(x_new)
        x_new = inputs(x_new, "x_new", self.centers.shape[1:])
        outputs = np.full((len(x_new), self.coefficients.shape[1]), np.inf)
        if np.isfinite(self.coefficients).all():
            chunk = rows_that_fit(8 * len(self.centers))
            for at in range(0, len(x_new), chunk):
                part = slice(at, at + chunk)
                outputs[part] = self.kernel.entries(x_new[part], self.centers) @ self.coefficients
        return Prediction(terms=(self._shaped(outputs),))

    def at(self, moment: float) -> Self:
        """The solution at another time `moment`, for "nystrom" only; other solvers end at the time they were given."""
        raise ValueError(
            f"`time` is available with solver='direct' and solver='nystrom' only; this solver is {self.solver.name!r}."
        )


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NystromSolution(MachineSolution):
    """A `MachineSolution` on few centers. It keeps the sums over its features, so it predicts at any time.

    **Fields:** same as `MachineSolution`.
    """

    _pass: Centered

    @in_float64
    def at(self, moment: float | SpectralAlgorithm) -> Self:
        """The solution at another time, or for another algorithm such as a ridge (`moment`), without another pass."""
        algorithm = moment if isinstance(moment, SpectralAlgorithm) else moved_to(self.algorithm, moment)
        coefficients, residual, status = _filtered(self._pass, algorithm)
        return dataclasses.replace(
            self, algorithm=algorithm, coefficients=coefficients, relative_residual=residual, _status=status
        )


def solve_iteratively(
    kernel: AbstractKernel,
    x: np.ndarray,
    y: np.ndarray,
    algorithm: SpectralAlgorithm,
    solver: AbstractSolver,
    vector: bool,
) -> MachineSolution:
    """By a solver that is not `Direct`."""
    if isinstance(solver, Nystrom):
        centers = solver.points(x)
        sums = centered(kernel, x, y, centers, solver.budget())
        coefficients, residual, status = _filtered(sums, algorithm)
        return NystromSolution(
            algorithm=algorithm, _x=x, _y=y, _vector=vector, kernel=kernel, solver=solver, centers=centers,
            coefficients=coefficients, relative_residual=residual, history=np.zeros(0), seconds=sums.seconds,
            _status=status, _pass=sums,
        )  # fmt: skip
    assert isinstance(solver, IterativeSolver)
    products = solver.products(kernel, x)
    if products.diagonal().any():
        with task("solve"):
            run = solver.iterate(products, y, algorithm)
    else:
        run = of_no_kernel(y, algorithm.shift() or 0.0)
    return MachineSolution(
        algorithm=algorithm, _x=x, _y=y, _vector=vector, kernel=kernel, solver=solver, centers=x,
        coefficients=run.coefficients, relative_residual=run.residual, history=run.history, seconds=run.seconds,
        _status=status_of_run(run, solver, algorithm),
    )  # fmt: skip


def _filtered(sums: Centered, algorithm: SpectralAlgorithm) -> tuple[np.ndarray, float, Status]:
    """Coefficients, the relative residual and the status."""
    factor, centers = _factored(sums, algorithm), len(sums.basis.root)
    status = status_at(algorithm, factor.lam_max)
    if not status.ok and math.isinf(algorithm.end()):
        return np.full((centers, sums.moment.shape[1]), np.inf), math.inf, status
    fitted = factor.apply(algorithm, sums.moment)
    if status.ok:
        status = Status(status.kind, f"solved on {centers} centers")
    return sums.basis.leave(fitted), sums.residual(fitted), status


def _factored(sums: Centered, algorithm: SpectralAlgorithm) -> AbstractFactor:
    """The features' Gram matrix, factored for this algorithm: by Cholesky if that serves, else by eigenvectors."""
    shift = algorithm.shift()
    if shift is not None and len(sums.gram):
        factor = cholesky(sums.gram.copy(), shift, math.isfinite(algorithm.limit()))
        if factor is not None:
            return factor
    return Spectrum(*sums.spectrum)


def status_of_run(run: Iterated, solver: IterativeSolver, algorithm: SpectralAlgorithm) -> Status:
    """Converged, stopped at a step, or what went wrong and what to do."""
    endless = math.isinf(algorithm.end())
    if endless and run.residual <= solver.tol:
        return end_of_iterations(run, solver.tol)
    # The residuals of Richardson's iteration are those of training.
    if isinstance(solver, Richardson) and _grows(run.history, algorithm):
        return Status(StatusKind.diverged, "diverges: the residual grows; use a smaller learning rate")
    if not endless:
        return status_at(algorithm, 0.0)
    return end_of_iterations(run, solver.tol)


def _grows(residuals: np.ndarray, algorithm: SpectralAlgorithm) -> bool:
    """Whether training diverged, by its residuals relative to the first, 1."""
    inertial = isinstance(algorithm, GradientDescent) and algorithm.momentum > 0
    with np.errstate(over="ignore"):
        return growth(np.append(1.0, residuals) ** 2, inertial=inertial) is not None
