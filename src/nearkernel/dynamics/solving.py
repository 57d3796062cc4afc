"""The verb `solve`: what training does, without training."""

from typing import Literal, overload

import numpy as np

from .._base.check import inputs, shown, whole
from .._base.types import ArrayLike, Num
from .._run.precision import in_float64
from ..kernels.base import AbstractKernel
from ..kernels.empirical.ntk import EmpiricalNTK
from .algorithms.losses import AbstractLoss, AnyLoss, Squared, get_loss
from .algorithms.sgd import SGD
from .algorithms.spectral import AbstractAlgorithm, GradientFlow, SpectralAlgorithm
from .linear.base import AbstractSolution
from .linear.by_products import by_size
from .linear.function_space import function_space_solution
from .linear.iterative import solve_iteratively
from .linear.sgd_solution import sgd_solution
from .linear.solution import Solution, linear_solution
from .linear.solvers import AbstractSolver, Direct, Nystrom, get_solver
from .linear.tangent import AbstractTangent, CurvedTangent, ExpandedTangent, Problem, tangent_of
from .orders.requirements import require_solvable, require_sound
from .orders.solution import NearlyKernelSolution, expanded_solution


@overload
def solve(
    problem: Problem,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm | None = None,
    *,
    order: Literal[1, 2],
    loss: Literal["squared"] | Squared = "squared",
    solver: Literal["auto", "direct"] | Direct = "auto",
) -> NearlyKernelSolution: ...


@overload
def solve(
    problem: Problem,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: SpectralAlgorithm | None = None,
    order: Literal[0] = 0,
    *,
    loss: Literal["squared"] | Squared = "squared",
    solver: Literal["auto", "direct"] | Direct = "auto",
) -> Solution: ...


@overload
def solve(
    problem: Problem,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm | None = None,
    order: int = 0,
    *,
    loss: AnyLoss = "squared",
    solver: str | AbstractSolver = "auto",
) -> AbstractSolution: ...


@in_float64
def solve(
    problem: Problem,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm | None = None,
    order: int = 0,
    *,
    loss: AnyLoss = "squared",
    solver: str | AbstractSolver = "auto",
) -> AbstractSolution:
    r"""Solves training in closed form. At order 0, $z(x; t) = z(x; 0) - k(x, X)\, g_t(K)\, (z(X; 0) - y)$.

    **Arguments:**

    - `problem`: a kernel (initial outputs 0), an `nk.FeatureModel` or `nk.QuadraticModel` (initial weights 0) or
      `nk.expand(model, params, degree)` (initial outputs are those of the model).
    - `x` (n, d), `y` (n,) or (n, out).
    - `algorithm`: `GradientFlow()` by default; `GradientDescent`, `DirectOptimization`, `Ridge`; `SGD` with schedules,
      decay, momentum, batches and noise.
    - `order`: 0, the linear theory; 1 and 2 add feature learning, for quadratic models and expansions of degree 2 or
      3, with errors of order $\epsilon^{\text{order} + 1}$.
    - `loss`: "squared"; or "cross_entropy" (`y` one-hot, probabilities, or integer labels (n,)), another
      `AbstractLoss` such as `nk.dynamics.Huber(0.5)`, or any JAX function loss(z, y); these are integrated in
      function space and need a finite time.
    - `solver`, for kernels: "direct", one factorization; "cg", "richardson", "eigenpro", which need only products with
      $K$ and no memory of size $n^2$; "nystrom", few centers and one pass over the data; or an object with settings,
      such as `nk.dynamics.ConjugateGradients(tol=1e-6, memory="4GiB")`. "auto": direct up to 4000 points, and without
      a ridge as long as it fits in memory; otherwise conjugate gradients.

    **Returns:** a `Solution`: `predict(x_new, time=None)`, `residual()`, `params()`, `status` (an `nk.Status`), `ok`,
    `rank`, `cutoff`. A learning rate beyond the stability limit is a status, not an error. Orders 1 and 2 return a
    `NearlyKernelSolution`, which also has `weights`, `effective_kernel`, `trained_kernel`, `algorithm_projectors()`
    and `feature_learning(x_test, y_test)`. An explicitly chosen iterative `solver` returns a `MachineSolution`:
    `predict`, `residual()`, `coefficients`, `relative_residual`, `iterations`, `status`. Other losses return a
    `FunctionSpaceSolution`. `SGD` with random batches or noise returns an `SGDSolution`, with a covariance. All have
    `predict(x_new)`, `at(time)`, `residual()`, `loss()`, `status`, `ok` and `plot()`.
    """
    chosen, function = get_solver(solver), get_loss(loss)
    algorithm = GradientFlow() if algorithm is None else algorithm
    if not isinstance(algorithm, SpectralAlgorithm | SGD):
        raise TypeError(
            f"`algorithm` must be one that can be solved, e.g. nk.GradientFlow(); got {_name(algorithm)}."
        )
    if whole(order, "order", 0) > 2:
        raise ValueError(f"`order` must be 0, 1 or 2; got {order}.")
    tangent = tangent_of(problem)
    if isinstance(algorithm, SGD):
        _require_one_rate(algorithm, tangent)
        algorithm = _solvable(algorithm, tangent, order, chosen, function)
    if order > 0 and tangent.degree == 1:
        raise ValueError(
            f"`order` must be 0 for this problem, which is linear in its parameters; got {order}. For feature "
            "learning use nk.QuadraticModel(phi, psi, eps) or nk.expand(model, params, degree=2)."
        )
    x = inputs(x, "x", tangent.input_dim())
    if not isinstance(chosen, Nystrom):  # which keeps its centers alone, and reads memory maps
        x = x.copy()  # the solution outlives the caller's array
    vector = function.is_vector(y)
    columns = np.asarray(function.columns(y, len(x), tangent.out_dim(x)))
    require_sound(tangent, x)
    if isinstance(algorithm, SGD):
        return sgd_solution(tangent, x, columns, algorithm, vector)
    if order > 0:
        if not function.quadratic:
            raise ValueError(f"`order` must be 0 for losses other than 'squared'; got {order}.")
        assert isinstance(tangent, CurvedTangent)
        if not isinstance(chosen, Direct | None):
            raise ValueError(f"`solver` {chosen.name!r} needs order 0; use solver='direct' or 'auto'.")
        require_solvable(tangent, x, algorithm)
        return expanded_solution(tangent, x, columns, algorithm, order, vector)
    if not isinstance(chosen, Direct | None):
        if not isinstance(problem, AbstractKernel) or not function.quadratic:
            raise ValueError(
                f"`solver` {chosen.name!r} needs a kernel and the loss 'squared'; use solver='direct' or 'auto'."
            )
        return solve_iteratively(problem, x, columns, algorithm, chosen, vector)
    if not function.quadratic:
        return function_space_solution(tangent, x, columns, algorithm, function, vector)
    large = by_size(problem, x, algorithm) if chosen is None and isinstance(problem, AbstractKernel) else None
    return linear_solution(tangent, x, columns, algorithm, vector, large)


def _require_one_rate(sgd: SGD, tangent: AbstractTangent) -> None:
    """Noise of gradients is multiplied by the factors, not by their roots: the kernel does not know it."""
    kernel = tangent.kernel
    if sgd.noise and isinstance(kernel, EmpiricalNTK) and kernel.lr_factors is not None:
        raise ValueError("`noise` needs learning-rate factors that are all 1: otherwise use nk.simulate.")


def _solvable(
    sgd: SGD, tangent: AbstractTangent, order: int, solver: AbstractSolver | None, loss: AbstractLoss
) -> SGD | SpectralAlgorithm:
    """A filter if SGD draws nothing and its decay is to the start; else itself, for which there are moments."""
    anchored = not sgd.weight_decay or sgd.decay_to == "start" or not isinstance(tangent, ExpandedTangent)
    if not sgd.random and anchored and not order:
        return sgd.spectral()  # of other problems the parameters start at 0
    if order or not loss.quadratic or not isinstance(solver, Direct | None):
        what = "random batches or noise" if sgd.random else "decay to zero"
        raise ValueError(
            f"`algorithm` with {what} is solved only at order 0, for the loss 'squared' and solver='direct': otherwise "
            "train with nk.simulate."
        )
    return sgd


def _name(algorithm: object) -> str:
    return shown(algorithm) if isinstance(algorithm, AbstractAlgorithm) else type(algorithm).__name__
