"""A kernel regressor that learns the metric of its kernel."""

from typing import Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from .._base.check import positive, whole
from .._base.types import ArrayLike
from ..dynamics.algorithms.spectral import Ridge
from ..dynamics.features.recursive import recursive_features
from ..dynamics.features.subspace import top_directions
from ..kernels.base import AbstractKernel
from .data import converged, new_inputs, regression_data, sorted_rows
from .estimator import Estimator

_HELD_OUT = 0.25
_FEWEST = 8  # below, nothing is held out and all rounds are made


class RecursiveFeatureMachine(MultiOutputMixin, RegressorMixin, Estimator):
    """Kernel regression in a learned metric $k(M^{1/2} x, M^{1/2} y)$, with $M$ the average outer product of gradients
    of $f$.

    $M$ is learned in rounds (`nk.theory.recursive_features`); a held-out quarter of the data chooses the number of
    rounds. The mean of the targets is subtracted before fitting and added afterwards. Inputs are not scaled: scale
    them in a pipeline.

    **Arguments:**

    - `kernel`: any of `nk.kernels`; by default `nk.kernels.Laplace(sqrt(2 d))`, the typical distance between inputs
      of unit variance.
    - `rounds`: maximum number of rounds; 0 is the plain kernel.
    - `ridge`: strength of `nk.Ridge`.
    - `random_state`: the seed of the held-out quarter, which does not depend on the order of the rows.

    **Fitted:** `solution_`; `matrix_`, $M$ (d, d) with trace d; `rounds_`, the number of rounds that were run;
    `held_out_loss_`, mean squared error after each round, in units of the variance (None for fewer than 8 points);
    `target_mean_`; `n_features_in_`.

    ```python
    model = make_pipeline(StandardScaler(), RecursiveFeatureMachine()).fit(x, y)
    model[-1].directions(2)
    ```
    """

    def __init__(self, kernel=None, rounds=5, ridge=1e-3, random_state=0):
        self.kernel = kernel
        self.rounds = rounds
        self.ridge = ridge
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the metric and the coefficients for `X` (n, d) and `y` (n,) or (n, out)."""
        if not isinstance(self.kernel, AbstractKernel | None):
            raise TypeError(
                f"`kernel` must be a kernel, e.g. nk.kernels.RBF(1.0); got {type(self.kernel).__name__}."
            )
        x, targets = regression_data(self, X, y)
        most = whole(self.rounds, "rounds", 0)
        algorithm = Ridge(positive(self.ridge, "ridge", zero=True))
        self.target_mean_ = targets.mean(axis=0)
        targets = targets - self.target_mean_
        self.held_out_loss_: np.ndarray | None = None
        if most and len(x) >= _FEWEST:
            random = check_random_state(self.random_state)
            kept, left = train_test_split(sorted_rows(x, targets), test_size=_HELD_OUT, random_state=random)
            tried = recursive_features(self.kernel, x[kept], targets[kept], algorithm, most)
            scale = max(float(np.mean(targets[left] ** 2)), np.finfo(float).tiny)
            losses = [
                np.mean((s.predict(x[left]).mean - targets[left]) ** 2) / scale for s in tried.solutions
            ]
            self.held_out_loss_ = np.array(losses)
            most = int(np.argmin(losses))
        learned = recursive_features(self.kernel, x, targets, algorithm, most)
        self.rounds_, self.matrix_ = len(learned.matrices) - 1, learned.matrix
        self.solution_ = converged(learned.solution)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predictions at `X` (m, d), in the shape of `y`."""
        x = new_inputs(self, X)
        return self.solution_.predict(x).mean + self.target_mean_

    def directions(self, count: int) -> np.ndarray:
        """The leading `count` eigenvectors (count, d) of `matrix_`, along which the function varies most."""
        return top_directions(self.matrix_, count)
