"""Bayesian deep linear networks as a regressor."""

from typing import Literal, Self, overload

import numpy as np
from sklearn.base import RegressorMixin

from .._base.check import finite_result, positive, wholes
from .._base.types import ArrayLike
from ..statistics.exact.deep_linear import least_interpolant, most_probable_var
from ..statistics.exact.deep_linear_posterior import posterior_of
from .data import new_inputs, vector_data
from .estimator import Estimator


class DeepLinearBayes(RegressorMixin, Estimator):
    r"""The exact posterior of a deep linear network $z(x) = \theta \cdot x$, $\theta = W^{(L+1)} \cdots W^{(1)}$, as a
    regressor.

    The posterior mean is the minimum-norm least-squares solution $\theta_*$ at every depth. Depth and data decide the
    uncertainty in directions that the data do not cover:

    $$z(x) = \theta_* \cdot x + \lVert x_\perp \rVert \sqrt{S}\, \xi, \qquad \xi \sim \mathcal{N}(0, 1), \qquad
    p(S \mid \text{data}) \propto p(S)\, S^{-r/2} \exp\!\left(-\frac{\lVert\theta_*\rVert^2}{2 S}\right),$$

    where $x_\perp$ is the part of $x$ outside the span of the data and $r$ is the rank of the data. This is the limit
    of vanishing noise: if the data cannot be fitted (more points than features), it uses the least-squares fit, and
    no uncertainty is left.

    **Arguments:**

    - `widths`: widths of the hidden layers, () for none.
    - `prior_var`: variance of the weights times their fan-in; "best" for the value that maximizes the evidence.
    - `fit_intercept`: whether to center inputs and targets before fitting and add the means back afterwards.

    **Fitted:** `coef_` (d,), `intercept_`; `posterior_`, an `nk.results.DeepLinearPosteriorResult` of the centered
    data; `prior_var_`; `log_evidence_`; `effective_depth_` $= r \sum_l 1/N_l$; `n_features_in_`.

    ```python
    model = DeepLinearBayes(widths=(200,) * 5, prior_var="best").fit(x, y)
    mean, std = model.predict(x_new, return_std=True)
    low, high = model.quantile(x_new, [0.05, 0.95]).T
    ```
    """

    def __init__(self, widths=(100, 100), prior_var=1.0, fit_intercept=True):
        self.widths = widths
        self.prior_var = prior_var
        self.fit_intercept = fit_intercept

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn `y` (n,) from `X` (n, d)."""
        x, y = vector_data(self, X, y)
        widths = wholes(self.widths, "widths")
        if isinstance(self.prior_var, str) and self.prior_var != "best":
            raise ValueError(f'`prior_var` must be a positive number or "best"; got {self.prior_var!r}.')
        self._x_mean = x.mean(axis=0) if self.fit_intercept else np.zeros(x.shape[1])
        y_mean = y.mean() if self.fit_intercept else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            data = least_interpolant(x - self._x_mean, y - y_mean)
            finite_result((data.square, data.log_det), "`y` over `X` is")
        if data.theta.any() and data.square < np.finfo(float).tiny:
            raise ValueError("`y` over `X` is too small: its square vanishes. Scale towards 1.")
        if not isinstance(self.prior_var, str):
            self.prior_var_ = float(positive(self.prior_var, "prior_var"))
        else:  # targets that are all alike ask for no variance at all; then the plain prior is as good
            self.prior_var_ = most_probable_var(data, widths) if data.square > 0 else 1.0
        self.posterior_ = posterior_of(data, widths, self.prior_var_)
        self.log_evidence_ = self.posterior_.log_evidence
        self.effective_depth_ = data.basis.shape[1] * float(sum(1.0 / n for n in widths))
        self.coef_ = data.theta
        self.intercept_ = float(y_mean - self._x_mean @ data.theta)
        return self

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(self, X: ArrayLike, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean at `X` (m, d), (m,); with `return_std` also the standard deviation."""
        x = new_inputs(self, X)
        mean = x @ self.coef_ + self.intercept_
        return (mean, self.posterior_.std(x - self._x_mean)) if return_std else mean

    def quantile(self, X: ArrayLike, q: ArrayLike) -> np.ndarray:
        """Quantiles `q` of the posterior at `X`: (m,), or (m, k) for k values of `q`."""
        x = new_inputs(self, X) - self._x_mean
        centered = self.posterior_.quantile(x, q)
        return centered + (self.intercept_ + self._x_mean @ self.coef_)
