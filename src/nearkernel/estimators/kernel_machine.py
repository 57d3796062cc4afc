"""A regressor with any kernel and any training algorithm."""

from typing import Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from .._base.types import ArrayLike
from ..dynamics.linear.iterative import MachineSolution
from ..dynamics.linear.solution import Solution
from ..dynamics.solving import solve
from ..kernels.base import AbstractKernel
from ..kernels.classical.stationary import RBF
from .auto.tuned import chosen
from .data import new_inputs, regression_data, require_trained
from .estimator import Estimator


class KernelMachine(MultiOutputMixin, RegressorMixin, Estimator):
    r"""Regression with any kernel and any training algorithm: $f(x) = k(x, X)\, g(K)\, y$, `nk.solve` as an estimator.

    The initial function is 0 and targets are not centered: with `nk.Ridge(strength)` it equals scikit-learn's
    `KernelRidge`. A singular kernel matrix (repeated rows) gives the pseudo-inverse.

    **Arguments:**

    - `kernel`: any kernel of `nk.kernels`, or sums and products of kernels; by default `nk.kernels.RBF(sqrt(d))` for d
      features, the typical length of inputs of unit variance.
    - `algorithm`: `nk.GradientFlow()` to convergence by default; "ridge" or "flow" choose the strength or the time
      with the smallest leave-one-out error (`nk.dynamics.tune`).
    - `solver`: same as `nk.solve`: "auto", "direct", "cg", "richardson", "eigenpro", "nystrom" or an object with
      settings. If the tolerance is not reached, `fit` issues a scikit-learn `ConvergenceWarning`.

    **Fitted:** `solution_`, the result of `nk.solve`; `dual_coef_` $= g(K)\, y$, in the shape of `y`; `X_fit_`, the
    rows that the coefficients belong to (the centers for "nystrom"); `n_features_in_`. Predictions are `kernel(x,
    X_fit_) @ dual_coef_`.

    ```python
    kernel = nk.kernels.Laplace(2.0) + 0.1 * nk.kernels.Linear()
    KernelMachine(kernel, nk.GradientFlow(time=100.0)).fit(x, y).predict(x_new)
    ```
    """

    def __init__(self, kernel=None, algorithm=None, solver="auto"):
        self.kernel = kernel
        self.algorithm = algorithm
        self.solver = solver

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Solve for the coefficients of `X` (n, d) that learn `y` (n,) or (n, out)."""
        if not isinstance(self.kernel, AbstractKernel | None):
            raise TypeError(
                f"`kernel` must be a kernel, e.g. nk.kernels.RBF(1.0); got {type(self.kernel).__name__}."
            )
        x, y = regression_data(self, X, y)
        kernel = RBF(self.n_features_in_**0.5) if self.kernel is None else self.kernel
        solution = solve(kernel, x, y, chosen(self.algorithm, kernel, x, y), solver=self.solver)
        assert isinstance(solution, Solution | MachineSolution)
        require_trained(solution.status, f"`algorithm` = {solution.algorithm}")
        self.solution_ = solution
        self.X_fit_ = solution.centers if isinstance(solution, MachineSolution) else x
        self.dual_coef_ = solution.coefficients[:, 0] if y.ndim == 1 else solution.coefficients
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predictions at `X` (m, d), in the shape of `y`."""
        x = new_inputs(self, X)
        return self.solution_.predict(x).mean
