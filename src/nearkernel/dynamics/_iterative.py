"""What `solve` returns when it iterates: coefficients, and how far the iteration came."""

import math
import time
from typing import Any

import numpy as np

from .._check import inputs
from .._memory import rows_that_fit
from .._precision import in_float64
from .._status import Status, StatusKind
from ..kernels import AbstractKernel
from ..scale._centres import Centred, centred
from ..scale._iterate import Iterated, relative
from ..scale._products import Held, held_fits
from ._algorithms import GradientDescent, SpectralAlgorithm
from ._divergence import growth
from ._factor import cholesky
from ._solution import Prediction, moved_to, status_at
from ._solvers import AbstractSolver, ConjugateGradients, IterativeSolver, Nystrom, Richardson

_DIRECT = 4000  # rows up to which a factor costs less than a second
_FACTORED = (
    1e-6  # relative residual up to which a factor has solved: rounding alone leaves less, but for singular K
)
_FACTOR_COST = 150  # a Cholesky factor of n rows costs about n / 150 products with K


class MachineSolution:
    """z(x) = k(x, C) a, on all training points or on centres C.

    **Fields:** `algorithm`, `solver`; `coefficients` (m, out) and `centres` (m, d); `relative_residual`
    |y - (K + ridge) a| / |y| of the worst output; `iterations`; `history`, the residual at each; `seconds`; `status`,
    an `nk.Status`, and its `ok`: whether the tolerance was reached, or K was factored.
    """

    def __init__(
        self,
        kernel: AbstractKernel,
        centres: np.ndarray,
        coefficients: np.ndarray,
        algorithm: SpectralAlgorithm,
        solver: AbstractSolver,
        vector: bool,
        *,
        residual: float,
        history: np.ndarray,
        seconds: float,
        status: Status,
    ):
        self.kernel, self.centres, self.coefficients, self._vector = kernel, centres, coefficients, vector
        self.algorithm, self.solver = algorithm, solver
        self.relative_residual, self.history, self.seconds, self.status = residual, history, seconds, status

    @property
    def ok(self) -> bool:
        return self.status.ok

    @property
    def iterations(self) -> int:
        return len(self.history)

    @in_float64
    def predict(self, x_new: Any, time: float | None = None) -> Prediction:
        """Outputs at `x_new` (m, d), in bounded memory; at another `time` only if the solver knows it ("nystrom")."""
        if time is not None:
            return self._at(time).predict(x_new)
        x_new = inputs(x_new, "x_new", self.centres.shape[1:])
        found = np.empty((len(x_new), self.coefficients.shape[1]))
        chunk = rows_that_fit(8 * len(self.centres))
        for at in range(0, len(x_new), chunk):
            part = slice(at, at + chunk)
            if np.isfinite(self.coefficients).all():
                found[part] = self.kernel.entries(x_new[part], self.centres) @ self.coefficients
            else:
                found[part] = np.inf
        return Prediction(terms=(found[:, 0] if self._vector else found,))

    def _at(self, time: float) -> "MachineSolution":
        raise ValueError(
            f"`time` is known to solver='direct' and solver='nystrom' alone; this one is {self.solver.name!r}."
        )


class NystromSolution(MachineSolution):
    """One on few centres; keeps the eigenvalues of its features, so that any time is at hand."""

    _pass: Centred

    @in_float64
    def at(self, algorithm: SpectralAlgorithm) -> "NystromSolution":
        """The same data, trained by another `algorithm` (another ridge, another time), without another pass."""
        return _filtered(self._pass, self.kernel, self.centres, algorithm, self.solver, self._vector)

    def _at(self, time: float) -> "NystromSolution":
        return self.at(moved_to(self.algorithm, time))


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
        centres = solver.points(x)
        return _filtered(
            centred(kernel, x, y, centres, solver.budget()), kernel, centres, algorithm, solver, vector
        )
    assert isinstance(solver, IterativeSolver)
    products = solver.products(kernel, x)
    if products.diagonal().any():
        found = solver.iterate(products, y, algorithm)
    else:
        found = _of_no_kernel(y, algorithm.shift() or 0.0)
    return _machine(found, kernel, x, algorithm, solver, vector)


def _of_no_kernel(y: np.ndarray, ridge: float) -> Iterated:
    """(0 + ridge)^-1 y, the pseudo-inverse without a ridge."""
    coefficients = y / ridge if ridge else np.zeros_like(y)
    residual = relative(y - ridge * coefficients, y)
    return Iterated(coefficients, residual, np.zeros(0), 0.0, "the kernel is 0 on all of `x`")


def _machine(found: Iterated, kernel, x, algorithm, solver: IterativeSolver, vector: bool) -> MachineSolution:
    return MachineSolution(
        kernel, x, found.coefficients, algorithm, solver, vector,
        residual=found.residual, history=found.history, seconds=found.seconds,
        status=status_of_run(found, solver, algorithm),
    )  # fmt: skip


def _filtered(done: Centred, kernel, centres, algorithm, solver, vector: bool) -> NystromSolution:
    status, residual = status_at(algorithm, float(done.lam.max(initial=0.0))), math.inf
    if not status.ok and math.isinf(algorithm.end()):
        coefficients = np.full((len(centres), done.moment.shape[1]), np.inf)
    else:
        gain = algorithm.filter(done.lam)
        if status.ok:
            status = Status(status.kind, f"solved on {len(centres)} centres")
        coefficients, residual = done.coefficients(gain), done.residual(gain)
    found = NystromSolution(
        kernel, centres, coefficients, algorithm, solver, vector,
        residual=residual, history=np.zeros(0), seconds=done.seconds, status=status,
    )  # fmt: skip
    found._pass = done
    return found


def status_of_run(found: Iterated, solver: IterativeSolver, algorithm: SpectralAlgorithm) -> Status:
    """Converged, stopped at a step, or what went wrong and what to do."""
    endless = math.isinf(algorithm.end())
    if endless and found.residual <= solver.tol:
        return Status(StatusKind.converged, f"converged in {found.iterations} iterations")
    if isinstance(solver, Richardson) and _grows(
        found.history, algorithm
    ):  # its residuals are those of training
        return Status(StatusKind.diverged, "diverges: the residual grows; use a smaller learning rate")
    if not endless:
        return status_at(algorithm, 0.0)
    why = f" ({found.note})" if found.note else ""
    return _short_of(found.residual, solver.tol, f"after {found.iterations} iterations{why}")


def _grows(residuals: np.ndarray, algorithm: SpectralAlgorithm) -> bool:
    """Whether training diverged, by its residuals relative to the first, 1."""
    inertial = isinstance(algorithm, GradientDescent) and algorithm.momentum > 0
    with np.errstate(over="ignore"):
        return growth(np.append(1.0, residuals) ** 2, inertial=inertial) is not None


def _short_of(
    residual: float, tol: float, where: str, advice: str = "a larger ridge, rank or tol, or solver='direct'"
) -> Status:
    return Status(
        StatusKind.not_converged,
        f"not converged: relative residual {residual:.2g} {where}, above tol = {tol:g}; use {advice}",
    )


def solve_by_size(
    kernel: AbstractKernel, x: np.ndarray, y: np.ndarray, algorithm: SpectralAlgorithm, vector: bool
) -> MachineSolution | None:
    """What "auto" does with more than 4000 points; None where the direct solver is the choice.

    With a ridge: conjugate gradients, which win by far if they converge at all. They get as many products as a factor
    costs; if that is not enough and the matrix is in memory, it is factored after all.
    """
    solver, ridge = ConjugateGradients(), algorithm.shift()
    fits = held_fits(len(x), solver.budget())
    if len(x) <= _DIRECT or (fits and not ridge):
        return None
    if ridge is None:
        raise MemoryError(
            f"the eigenvalues of a kernel matrix of {len(x)} points do not fit into memory: use solver='richardson' "
            "for gradient descent, solver='nystrom' for any algorithm, or fewer points."
        )
    if not fits:
        return solve_iteratively(kernel, x, y, algorithm, solver, vector)
    begin = time.perf_counter()
    held = Held(kernel.entries(x, None))
    solver = ConjugateGradients(iterations=max(20, len(x) // _FACTOR_COST))
    found = solver.iterate(held, y, algorithm)
    if found.residual > solver.tol:
        factor = cholesky(held.matrix.astype(np.float64, copy=False), ridge, need_max=False)
        if factor is not None:
            coefficients = factor.solve(y)
            residual = relative(y - factor.lower @ (factor.lower.T @ coefficients), y)
            seconds = time.perf_counter() - begin
            by = "by a factor of K, since conjugate gradients were too slow"
            status = Status(StatusKind.converged, f"converged {by}")
            if not residual <= _FACTORED:
                status = _short_of(residual, _FACTORED, by, "a larger ridge")
            return MachineSolution(
                kernel, x, coefficients, algorithm, solver, vector, residual=residual, history=found.history,
                seconds=seconds, status=status,
            )  # fmt: skip
    return _machine(found, kernel, x, algorithm, solver, vector)
