"""A two-layer network whose features come from one large gradient step, as a regressor."""

from typing import Self

import jax
import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from .._base.check import one_of, positive, whole
from .._base.types import ArrayLike
from ..dynamics.algorithms.spectral import GradientDescent
from ..dynamics.features.last_layer import RidgeHead
from ..dynamics.features.one_step import OneStepFeaturesResult, one_step_features
from .data import deviation, new_inputs, regression_data, require_trained, sorted_rows
from .estimator import Estimator

_RIDGES = np.geomspace(1e-6, 1.0, 13)  # per training point
_HEADS = ("closed_form", "gradient_descent")


class OneStepNetworkRegressor(MultiOutputMixin, RegressorMixin, Estimator):
    r"""A two-layer ReLU network, trained layer by layer: `nk.theory.one_step_features`, then ridge regression.

    It finds the few directions $u$ of a target $f_*(x) = g(u_1 \cdot x, \ldots, u_r \cdot x)$ from about $d^2$
    points, if the average Hessian of $f_*$ depends on all of them. A kernel without feature learning needs $d^p$
    points for a polynomial of degree $p$. Inputs are standardized feature by feature, and targets are divided by
    their standard deviation. The constant and linear parts are fitted by least squares.

    **Arguments:**

    - `width`: number of neurons $m$, even.
    - `lr`: learning rate of the one step, in standardized units; the default makes the mean square of $w \cdot x$
      equal to $0.5^2$ after the step.
    - `ridge`: strength of `nk.Ridge` on the head per training point,
      $\frac12\, \text{mean}\,(f - y)^2 + \frac{\text{ridge}}{2} |a|^2$; by default the best of 13 values from 1e-6 to
      1, with features and head relearned on each fold.
    - `head`: "closed_form"; "gradient_descent", run to convergence; or an `nk.GradientDescent(lr, steps)` for the sum
      over points.
    - `cv`: number of folds.
    - `random_state`: the seed of the weights and folds.

    **Fitted:** `network_`, an `nk.theory.OneStepNetwork` in standardized units; `features_`, its
    `OneStepFeaturesResult` (weights, estimated Hessian, `directions(r)`); `ridge_`; `held_out_loss_`, mean squared
    error on the folds for each ridge tried, in units of the variance (None if `ridge` was given); `location_`,
    `scale_` of the inputs; `target_scale_`; `n_features_in_`.

    ```python
    model = OneStepNetworkRegressor(width=800).fit(x, y)
    model.predict(x_new), model.directions(2)
    ```
    """

    def __init__(self, width=800, lr=None, ridge=None, head="closed_form", cv=4, random_state=0):
        self.width = width
        self.lr = lr
        self.ridge = ridge
        self.head = head
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn features, then the head, for `X` (n, d) and `y` (n,) or (n, out)."""
        x, targets = regression_data(self, X, y)
        if not isinstance(self.head, GradientDescent):
            one_of(self.head, "head", _HEADS)
        if self.ridge is not None:
            positive(self.ridge, "ridge", zero=True)
        folds = whole(self.cv, "cv", 2)
        self.location_, self.scale_ = x.mean(axis=0), _unit(x)
        self.target_scale_ = _unit(targets)
        x, targets = (x - self.location_) / self.scale_, targets / self.target_scale_
        random = check_random_state(self.random_state)
        key = jax.random.key(int(random.randint(2**31 - 1)))
        self.held_out_loss_: np.ndarray | None = None
        self.ridge_ = (
            self._chosen(x, targets, key, min(folds, len(x)), random)
            if self.ridge is None
            else float(self.ridge)
        )
        self.features_ = self._features(x, targets, key)
        descent = self.head == "gradient_descent" if isinstance(self.head, str) else self.head
        self.network_ = self.features_.fit(x, targets, len(x) * self.ridge_, descent)
        require_trained(self.network_.status, f"`head` = {self.head}")
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Outputs at `X` (m, d), in the shape of `y`."""
        x = (new_inputs(self, X) - self.location_) / self.scale_
        return self.network_.predict(x) * self.target_scale_

    def directions(self, count: int) -> np.ndarray:
        """The first `count` learned directions (count, d) in the units of `X`, of length 1, along which f varies."""
        rows = self.features_.directions(count) / self.scale_
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _features(self, x: np.ndarray, y: np.ndarray, key: jax.Array) -> OneStepFeaturesResult:
        return one_step_features(x, y, self.width, key, lr=self.lr)

    def _chosen(
        self, x: np.ndarray, y: np.ndarray, key: jax.Array, folds: int, random: np.random.RandomState
    ) -> float:
        """The ridge that does best on points that neither features nor head have seen."""
        if folds < 2:
            return 1.0
        losses, order = np.zeros(len(_RIDGES)), sorted_rows(x, y)
        x, y = x[order], y[order]
        for rows, left in KFold(folds, shuffle=True, random_state=random).split(x):
            features = self._features(x[rows], y[rows], key)
            seen, unseen = (y[i].reshape(len(i), -1) - features.removed(x[i]) for i in (rows, left))
            problem, new = RidgeHead(features(x[rows]), seen), features(x[left])
            for k, ridge in enumerate(_RIDGES):
                losses[k] += np.sum((new @ problem.exact(len(rows) * ridge) - unseen) ** 2) / y.size
        self.held_out_loss_ = losses
        return float(_RIDGES[losses.argmin()])


def _unit(values: np.ndarray) -> np.ndarray:
    """Standard deviation of each column, 1 where a column is constant."""
    spread = deviation(values)
    return np.where(spread > 0, spread, 1.0)
