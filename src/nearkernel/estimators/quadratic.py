"""A regressor that learns features; held-out data choose the strength of feature learning."""

import warnings
from collections.abc import Callable
from typing import Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from .._base.check import finite_number, numeric, one_of, whole
from .._base.types import ArrayLike
from ..dynamics.algorithms.spectral import Ridge
from ..dynamics.orders.feature_learning import FeatureLearning
from ..dynamics.solving import solve
from ..models.expansion.quadratic import QuadraticModel
from .data import converged, new_inputs, regression_data, sorted_rows
from .estimator import Estimator
from .features import FEATURES, META_FEATURES, Fourier, Linear, Polynomial

_FARTHEST = 0.5  # of |z^F| / |z^I| on held-out data: beyond, orders are no longer small
_TRIED = np.concatenate([[0.0], np.outer([1, -1], np.geomspace(0.02, 1, 12)).ravel()])
_RIDGE = 1e-3
_HALVINGS = 30


class QuadraticRegressor(MultiOutputMixin, RegressorMixin, Estimator):
    r"""A quadratic model, $z = W \phi(x) + \frac{\epsilon}{2} W W \psi(x)$, solved order by order: `nk.solve(...,
    order)`.

    $\epsilon$ sets the strength of feature learning. Every order is a polynomial in $\epsilon$, so one solution per
    fold serves all values:

    $$z(\epsilon) = z^{F} + \epsilon z^{I} + \epsilon^2 z^{II}, \qquad
    \epsilon_* = -\frac{\sum (z^{F} - y)\, z^{I}}{\sum [(z^{I})^2 + 2 (z^{F} - y)\, z^{II}]}.$$

    The mean of the targets is subtracted before fitting and added afterwards. Inputs are not scaled: scale them in a
    pipeline.

    **Arguments:**

    - `features`: "fourier" (random features of an RBF kernel of length $\sqrt d$), "polynomial" (of second degree),
      "linear", or a JAX function (n, d) -> (n, f).
    - `meta_features`: "diagonal" ($\psi_{jk} = \delta_{jk} \phi_j$, so features that are used grow), "square"
      ($\psi_{jk} = \phi_j \phi_k$), or a JAX function x -> (n, f, f) or (x, u) -> (n, f), same as
      `nk.QuadraticModel`.
    - `eps`: "cv", the best of `eps_grid` by cross-validation; "optimal", $\epsilon_*$ over all held-out folds, halved
      until it lowers their loss; or a number.
    - `algorithm`: the training algorithm, `nk.Ridge(1e-3)` by default.
    - `order`: order of the prediction, 1 or 2.
    - `n_features`: number of "fourier" features.
    - `eps_grid`: values to try; by default 0 and 12 values of each sign, up to the value at which $|z^{I}|$ is half
      of $|z^{F}|$. $\epsilon_*$ is restricted to the same range.
    - `cv`: number of folds.
    - `random_state`: the seed of random features and folds. Folds do not depend on the order of the rows.

    **Fitted:** `eps_`; `model_`, the `nk.QuadraticModel`; `solution_`; `target_mean_`; `held_out_loss_`, the loss of
    `eps_` and of 0 on the folds (None if `eps` was given); `n_features_in_`.

    ```python
    model = make_pipeline(StandardScaler(), QuadraticRegressor("polynomial", eps="optimal"))
    model.fit(x, y).predict(x_new)
    ```
    """

    def __init__(
        self,
        features="fourier",
        meta_features="diagonal",
        eps="cv",
        algorithm=None,
        order=2,
        n_features=200,
        eps_grid=None,
        cv=5,
        random_state=0,
    ):
        self.features = features
        self.meta_features = meta_features
        self.eps = eps
        self.algorithm = algorithm
        self.order = order
        self.n_features = n_features
        self.eps_grid = eps_grid
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose `eps`, then solve for `X` (n, d) and `y` (n,) or (n, out)."""
        x, targets = regression_data(self, X, y)
        if whole(self.order, "order", 1) > 2:
            raise ValueError(f"`order` must be 1 or 2; got {self.order}.")
        if isinstance(self.eps, str):
            one_of(self.eps, "eps", ("cv", "optimal"))
        else:
            finite_number(self.eps, "eps")
        random = check_random_state(self.random_state)
        phi, psi = self._functions(int(random.randint(2**31 - 1)))
        self.target_mean_ = targets.mean(axis=0)
        targets = targets - self.target_mean_
        self._algorithm = Ridge(_RIDGE) if self.algorithm is None else self.algorithm
        self.held_out_loss_: tuple[float, float] | None = None
        self.eps_ = (
            self._chosen(phi, psi, x, targets, random) if isinstance(self.eps, str) else float(self.eps)
        )
        self.model_ = QuadraticModel(
            phi, psi, self.eps_, out_dim=1 if targets.ndim == 1 else targets.shape[1]
        )
        self.solution_ = converged(solve(self.model_, x, targets, self._algorithm, order=self.order))
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predictions at `X` (m, d), in the shape of `y`."""
        x = new_inputs(self, X)
        with warnings.catch_warnings():
            if isinstance(self.eps, str):  # held-out data have seen how large the correction is
                warnings.filterwarnings("ignore", r"\|z\^I\|")
            return self.solution_.predict(x).mean + self.target_mean_

    def _functions(self, seed: int) -> tuple[Callable, Callable]:
        phi = self.features
        if not callable(phi):
            one_of(phi, "features", FEATURES)
            named = {"linear": Linear(), "polynomial": Polynomial()}
            phi = named.get(phi) or Fourier(whole(self.n_features, "n_features", 1), seed)
        psi = self.meta_features
        if not callable(psi):
            psi = META_FEATURES[one_of(psi, "meta_features", tuple(META_FEATURES))](phi)
        return phi, psi

    def _chosen(
        self, phi: Callable, psi: Callable, x: np.ndarray, y: np.ndarray, random: np.random.RandomState
    ) -> float:
        """The best eps on held-out folds; 0 if there is nothing to choose by."""
        folds = min(whole(self.cv, "cv", 2), len(x))
        if folds < 2:
            return 0.0
        held_out, order = [], sorted_rows(x, y)
        x, y = x[order], y[order]
        for rows, left in KFold(folds, shuffle=True, random_state=random).split(x):
            model = QuadraticModel(phi, psi, 1.0, out_dim=1 if y.ndim == 1 else y.shape[1])
            solution = converged(solve(model, x[rows], y[rows], self._algorithm, order=2))
            held_out.append((solution.feature_learning(x[left], y[left]), y[left].reshape(len(left), -1)))
        sizes = [np.sqrt(sum((f.terms[k] ** 2).sum() for f, _ in held_out)) for k in range(2)]
        if not all(0 < size < np.inf for size in sizes):
            return 0.0
        farthest = _FARTHEST * sizes[0] / sizes[1]
        grid = farthest * _TRIED if self.eps_grid is None else numeric(self.eps_grid, "eps_grid").ravel()
        if self.eps == "optimal":
            eps = _optimal([f for f, _ in held_out], grid.min(), grid.max())
            for _ in range(_HALVINGS):  # where the loss to second order is no guide, nearer to 0 it is
                if self._loss(held_out, eps) <= self._loss(held_out, 0.0):
                    break
                eps /= 2
        else:
            eps = float(min(grid, key=lambda e: self._loss(held_out, e)))
        self.held_out_loss_ = (self._loss(held_out, eps), self._loss(held_out, 0.0))
        return eps

    def _loss(self, held_out: list, eps: float) -> float:
        total = 0.0
        for found, y in held_out:
            z = sum(eps**k * term for k, term in enumerate(found.terms[: self.order + 1]))
            total += 0.5 * float(((z - y) ** 2).sum())
        return total


def _optimal(folds: list[FeatureLearning], least: float, most: float) -> float:
    """Where the loss to second order, over all folds, is least within bounds: eps* if that is a minimum."""
    slope, curvature = sum(f.slope for f in folds), sum(f.curvature for f in folds)
    inside = [-slope / curvature] if curvature > 0 and least <= -slope / curvature <= most else []
    return float(min([least, most, *inside], key=lambda e: e * slope + e**2 / 2 * curvature))
