"""What `solve` returns when it iterates: coefficients, and how far the iteration came."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from ..._base.check import inputs
from ..._base.rooms import renamed
from ..._base.status import Status, StatusKind
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


class Data(NamedTuple):
    """What a machine was trained on; `y` (n, out), and whether it came as a vector."""

    x: np.ndarray
    y: np.ndarray
    vector: bool


@renamed("0.5", centres="centers")
class MachineSolution(AbstractSolution):
    r"""A kernel machine $z(x) = k(x, C)\, a$ found by iteration, with all training points or fewer as centers $C$.

    **Fields:** `algorithm`, `solver`; `coefficients` (m, out) and `centers` (m, d); `relative_residual`, the residual
    $\lVert y - (K + s) a\rVert / \lVert y\rVert$ of the worst output, with the ridge $s$; `iterations`; `history`, the
    residual at each iteration; `seconds`; `status`, an `nk.Status`, and its `ok`: whether the tolerance was reached, or
    K was factored.
    """

    def __init__(
        self,
        kernel: AbstractKernel,
        data: Data,
        centers: np.ndarray,
        coefficients: np.ndarray,
        algorithm: SpectralAlgorithm,
        solver: AbstractSolver,
        *,
        residual: float,
        history: np.ndarray,
        seconds: float,
        status: Status,
    ):
        self._x, self._y, self._vector = data
        self.kernel, self.centers, self.coefficients = kernel, centers, coefficients
        self.algorithm, self.solver = algorithm, solver
        self.relative_residual, self.history, self.seconds, self._status = residual, history, seconds, status

    @property
    def status(self) -> Status:
        return self._status

    @property
    def iterations(self) -> int:
        return len(self.history)

    @in_float64
    def predict(self, x_new: Any, time: float | None = None) -> Prediction:
        """Outputs at `x_new` (m, d), in bounded memory; another `time` is available for "nystrom" only."""
        if time is not None:
            return self.at(time).predict(x_new)
        x_new = inputs(x_new, "x_new", self.centers.shape[1:])
        found = np.empty((len(x_new), self.coefficients.shape[1]))
        chunk = rows_that_fit(8 * len(self.centers))
        for at in range(0, len(x_new), chunk):
            part = slice(at, at + chunk)
            if np.isfinite(self.coefficients).all():
                found[part] = self.kernel.entries(x_new[part], self.centers) @ self.coefficients
            else:
                found[part] = np.inf
        return Prediction(terms=(found[:, 0] if self._vector else found,))

    def at(self, moment: Any) -> Self:
        """The solution at another time `moment`, for "nystrom" only; other solvers end at the time they were given."""
        raise ValueError(
            f"`time` is available with solver='direct' and solver='nystrom' only; this solver is {self.solver.name!r}."
        )


class NystromSolution(MachineSolution):
    """A `MachineSolution` on few centers. It keeps the sums over its features, so it predicts at any time.

    **Fields:** same as `MachineSolution`.
    """

    _pass: Centered

    @in_float64
    def at(self, moment: float | SpectralAlgorithm) -> "NystromSolution":
        """The solution at another time, or for another algorithm such as a ridge (`moment`), without another pass."""
        algorithm = moment if isinstance(moment, SpectralAlgorithm) else moved_to(self.algorithm, moment)
        data = Data(self._x, self._y, self._vector)
        return _filtered(self._pass, self.kernel, data, self.centers, algorithm, self.solver)


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
        return _filtered(
            centered(kernel, x, y, centers, solver.budget()),
            kernel,
            Data(x, y, vector),
            centers,
            algorithm,
            solver,
        )
    assert isinstance(solver, IterativeSolver)
    products = solver.products(kernel, x)
    if products.diagonal().any():
        with task("solve"):
            found = solver.iterate(products, y, algorithm)
    else:
        found = of_no_kernel(y, algorithm.shift() or 0.0)
    return _machine(found, kernel, Data(x, y, vector), algorithm, solver)


def _machine(found: Iterated, kernel, data: Data, algorithm, solver: IterativeSolver) -> MachineSolution:
    return MachineSolution(
        kernel, data, data.x, found.coefficients, algorithm, solver,
        residual=found.residual, history=found.history, seconds=found.seconds,
        status=status_of_run(found, solver, algorithm),
    )  # fmt: skip


def _filtered(done: Centered, kernel, data: Data, centers, algorithm, solver) -> NystromSolution:
    factor = _factored(done, algorithm)
    status, residual = status_at(algorithm, factor.lam_max), math.inf
    if not status.ok and math.isinf(algorithm.end()):
        coefficients = np.full((len(centers), done.moment.shape[1]), np.inf)
    else:
        fitted = factor.apply(algorithm, done.moment)
        if status.ok:
            status = Status(status.kind, f"solved on {len(centers)} centers")
        coefficients, residual = done.basis.leave(fitted), done.residual(fitted)
    found = NystromSolution(
        kernel, data, centers, coefficients, algorithm, solver,
        residual=residual, history=np.zeros(0), seconds=done.seconds, status=status,
    )  # fmt: skip
    found._pass = done
    return found


def _factored(done: Centered, algorithm: SpectralAlgorithm) -> AbstractFactor:
    """The features' Gram matrix, factored for this algorithm: by Cholesky if that serves, else by eigenvectors."""
    shift = algorithm.shift()
    if shift is not None and len(done.gram) and "spectrum" not in vars(done):
        found = cholesky(done.gram.copy(), shift, math.isfinite(algorithm.limit()))
        if found is not None:
            return found
    return Spectrum(*done.spectrum)


def status_of_run(found: Iterated, solver: IterativeSolver, algorithm: SpectralAlgorithm) -> Status:
    """Converged, stopped at a step, or what went wrong and what to do."""
    endless = math.isinf(algorithm.end())
    if endless and found.residual <= solver.tol:
        return end_of_iterations(found, solver.tol)
    if isinstance(solver, Richardson) and _grows(
        found.history, algorithm
    ):  # its residuals are those of training
        return Status(StatusKind.diverged, "diverges: the residual grows; use a smaller learning rate")
    if not endless:
        return status_at(algorithm, 0.0)
    return end_of_iterations(found, solver.tol)


def _grows(residuals: np.ndarray, algorithm: SpectralAlgorithm) -> bool:
    """Whether training diverged, by its residuals relative to the first, 1."""
    inertial = isinstance(algorithm, GradientDescent) and algorithm.momentum > 0
    with np.errstate(over="ignore"):
        return growth(np.append(1.0, residuals) ** 2, inertial=inertial) is not None
