"""The theory as scikit-learn estimators: wide networks and kernels that are fitted, tuned and piped like any other.

    from nearkernel.estimators import NTKRegressor
    NTKRegressor(depth=3, activation="erf").fit(x, y).predict(x_new, return_std=True)

The only mutable classes of the library, and thin: `fit` calls `nk.solve`, which factors once; `predict` reuses it.
"""

import abc
import functools
from typing import Any, Self

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ._check import positive, whole
from ._memory import rows_that_fit
from ._predict.scores import log_class_probabilities
from .dynamics import Ridge, Solution, SpectralAlgorithm, solve
from .kernels import NNGP, NTK, RBF, AbstractKernel
from .models import MLP

__all__ = ["KernelMachine", "NNGPClassifier", "NNGPRegressor", "NTKClassifier", "NTKRegressor"]

_WIDTH = 1  # of the hidden layers; the kernels are those of infinite width, whatever it is
_LEAST_VARIANCE = np.finfo(float).eps ** 0.5  # of the start's; where data fix an output, the rest is rounding
_LEAST_STD = 1e-150  # for outputs that cannot vary at all: those of x = 0 without biases


class _Law(abc.ABC):
    """The Gaussian law of trained outputs, at any inputs: `solution` has its mean, all outputs share the variance."""

    net: MLP
    x: np.ndarray
    solution: Solution

    def std(self, x_new: np.ndarray, least: float = 0.0) -> np.ndarray:
        """(m,), in bounded memory; the variance is at least `least` times that at the start."""
        chunk = rows_that_fit(4 * 8 * len(self.x))
        reduced = [self._reduced(x_new[at : at + chunk]) for at in range(0, len(x_new), chunk)]
        start = NNGP(self.net).diag(x_new)
        return np.sqrt(np.maximum(start - np.concatenate(reduced), least * start))

    @abc.abstractmethod
    def _reduced(self, x_new: np.ndarray) -> np.ndarray:
        """What the data take away from the variance at the start, (m,)."""

    def _response(self, cross: np.ndarray) -> np.ndarray:
        """R = k g(K): the change of the outputs at the rows of k by the targets."""
        return self.solution._factor.apply(self.solution.algorithm, cross.T).T


class _Trained(_Law):
    """Over the initializations of a network of which all layers are trained."""

    def __init__(self, net: MLP, x: np.ndarray, y: np.ndarray, algorithm: SpectralAlgorithm | None):
        self.net, self.x = net, x
        self.solution = solve(NTK(net), x, y, algorithm)

    @functools.cached_property
    def _start(self) -> np.ndarray:
        """Covariance of the outputs at `x` before training, needed only where a variance is asked for."""
        return NNGP(self.net)(self.x)

    def _reduced(self, x_new: np.ndarray) -> np.ndarray:
        start = NNGP(self.net)(x_new, self.x)
        response = self._response(NTK(self.net)(x_new, self.x))
        return np.einsum("ij,ij->i", response, 2 * start - response @ self._start)


class _Bayesian(_Law):
    """The posterior of a network with random weights."""

    def __init__(self, net: MLP, x: np.ndarray, y: np.ndarray, noise: float):
        self.net, self.x = net, x
        self.solution = solve(NNGP(net), x, y, Ridge(noise))

    def _reduced(self, x_new: np.ndarray) -> np.ndarray:
        cross = NNGP(self.net)(x_new, self.x)
        return np.einsum("ij,ij->i", self._response(cross), cross)


class _Network(BaseEstimator, abc.ABC):
    """What the four network estimators share: centred targets, learnt by the `_Law` of a network."""

    depth: int
    activation: Any
    weight_var: float
    bias_var: float

    @abc.abstractmethod
    def _law_of(self, net: MLP, x: np.ndarray, y: np.ndarray) -> _Law: ...

    def _learn(self, x: np.ndarray, y: np.ndarray) -> None:
        net = MLP(
            in_dim=x.shape[1],
            widths=(_WIDTH,) * whole(self.depth, "depth", 0),
            activation=self.activation,
            weight_var=self.weight_var,
            bias_var=self.bias_var,
        )
        self.target_mean_ = y.mean(axis=0)
        self._law = self._law_of(net, x, y - self.target_mean_)
        self.solution_ = _converged(self._law.solution)

    def _mean(self, x: np.ndarray) -> np.ndarray:
        return self.solution_.predict(x).mean + self.target_mean_


class _NTK(_Network):
    def __init__(self, depth=2, activation="relu", weight_var=2.0, bias_var=0.1, algorithm=None):
        self.depth = depth
        self.activation = activation
        self.weight_var = weight_var
        self.bias_var = bias_var
        self.algorithm = algorithm

    def _law_of(self, net: MLP, x: np.ndarray, y: np.ndarray) -> _Law:
        return _Trained(net, x, y, self.algorithm)


class _NNGP(_Network):
    def __init__(self, depth=2, activation="relu", weight_var=2.0, bias_var=0.1, noise=0.0):
        self.depth = depth
        self.activation = activation
        self.weight_var = weight_var
        self.bias_var = bias_var
        self.noise = noise

    def _law_of(self, net: MLP, x: np.ndarray, y: np.ndarray) -> _Law:
        return _Bayesian(net, x, y, positive(self.noise, "noise", zero=True))


class _NetworkRegressor(MultiOutputMixin, RegressorMixin, _Network):
    def fit(self, X: Any, y: Any) -> Self:
        """Factor the kernel matrix of `X` (n, d) and learn `y` (n,) or (n, out)."""
        self._learn(*_regression_data(self, X, y))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean at `X` (m, d), in the shape of `y`; with `return_std` also the standard deviation, likewise."""
        x = _new_inputs(self, X)
        mean = self._mean(x)
        if not return_std:
            return mean
        std = self._law.std(x)
        return mean, std if mean.ndim == 1 else np.repeat(std[:, None], mean.shape[1], axis=1)


class _NetworkClassifier(ClassifierMixin, _Network):
    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> Self:
        """Factor the kernel matrix of `X` (n, d) and learn the classes `y` (n,), one output each."""
        x, y = validate_data(self, X, y, dtype=np.float64, copy=True)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"`y` has one class only, {self.classes_.tolist()[0]!r}; a classifier needs at least two."
            )
        self._learn(x, np.eye(len(self.classes_))[index])
        return self

    def _in_deviations(self, x: np.ndarray) -> np.ndarray:
        std = np.maximum(self._law.std(x, least=_LEAST_VARIANCE), _LEAST_STD)
        return self._mean(x) / std[:, None]

    def decision_function(self, X: Any) -> np.ndarray:
        """Mean outputs m in units of their standard deviation s, (m, classes): `predict_proba` depends on these alone.

        For two classes (m_1 - m_0) / (sqrt(2) s), (m,): the probability of the second is Phi of it.
        """
        outputs = self._in_deviations(_new_inputs(self, X))
        return (outputs[:, 1] - outputs[:, 0]) / np.sqrt(2) if len(self.classes_) == 2 else outputs

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest mean output, which is also the most probable one, (m,)."""
        x = _new_inputs(self, X)
        return self.classes_[self._mean(x).argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The share of networks whose largest output is that of each class, (m, classes)."""
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return ndtr(np.column_stack([-decision, decision]))
        return np.exp(log_class_probabilities(decision, np.ones(len(decision))))


class NTKRegressor(_NetworkRegressor, _NTK):
    r"""Infinitely wide networks, all layers trained: the mean over initializations and its standard deviation.

    With T the tangent kernel and K the covariance of the outputs before training, and R = T_BA g(T_AA),

        mean = R (y - ybar) + ybar,    variance = diag(K_BB - 2 R K_AB + R K_AA R^T),

    where g is the filter of the algorithm, T_AA^-1 at the end of training. The mean ybar of the targets is removed
    before and added after, so that constants are learnt; inputs are taken as they come: scale them in a pipeline.

    **Arguments:**

    - `depth`: number of hidden layers.
    - `activation`: a name, such as "relu", "erf", "gelu", "tanh", or a JAX function.
    - `weight_var` C_W > 0 and `bias_var` C_b >= 0, as of `nk.MLP`.
    - `algorithm`: how it is trained, and how it is regularized: `nk.GradientFlow()`, to the end, by default;
      `nk.GradientFlow(time)` or `nk.GradientDescent(lr, steps)` stop early, `nk.Ridge(strength)` decays weights.

    **Fitted:** `solution_`, the `Solution` of the centred targets; `target_mean_`; `n_features_in_`.

    ```python
    model = make_pipeline(StandardScaler(), NTKRegressor(depth=3, algorithm=nk.Ridge(0.1)))
    mean, std = model.fit(x, y).predict(x_new, return_std=True)
    ```
    """


class NNGPRegressor(_NetworkRegressor, _NNGP):
    r"""Infinitely wide networks with random weights as a prior: the Gaussian-process posterior.

    With K the covariance of the outputs and R = K_BA (K_AA + noise)^-1,

        mean = R (y - ybar) + ybar,    variance = diag(K_BB - R K_AB),

    the variance of the function, without the noise of a new observation. Without noise this is also the law of
    networks whose last layer alone is trained. Targets are centred, inputs taken as they come.

    **Arguments:** `depth`, `activation`, `weight_var`, `bias_var` as of `NTKRegressor`; `noise` >= 0, the variance of
    the observations around the function, in units of y squared (0: interpolate).

    **Fitted:** `solution_`, the `Solution` of the centred targets; `target_mean_`; `n_features_in_`.

    ```python
    search = GridSearchCV(NNGPRegressor(), {"depth": [1, 2, 4], "noise": [1e-3, 1e-2, 1e-1]})
    mean, std = search.fit(x, y).best_estimator_.predict(x_new, return_std=True)
    ```
    """


class NTKClassifier(_NetworkClassifier, _NTK):
    r"""Infinitely wide networks, all layers trained on one-hot targets by the squared loss.

    Output c is Gaussian over initializations, independent of the others, with mean m_c and one variance s^2 for all, as
    of `NTKRegressor` with the centred one-hot targets. The share of trained networks that answer c is then

        P(c) = E prod_{k != c} Phi(z + (m_c - m_k) / s),  z ~ N(0, 1),

    which is `predict_proba`, by quadrature to 1e-12: how much the answer depends on the initialization, not how noisy
    the labels are.

    **Arguments:** `depth`, `activation`, `weight_var`, `bias_var`, `algorithm` as of `NTKRegressor`.

    **Fitted:** `classes_`; `solution_`, the `Solution` of the centred one-hot targets; `target_mean_`, the share of
    each class; `n_features_in_`.

    ```python
    model = NTKClassifier(activation="erf").fit(x, labels)
    model.predict(x_new), model.predict_proba(x_new)
    ```
    """


class NNGPClassifier(_NetworkClassifier, _NNGP):
    r"""Infinitely wide networks with random weights as a prior, conditioned on one-hot targets.

    Output c has the posterior mean m_c and, like all others, variance s^2, as of `NNGPRegressor`; the share of networks
    of the posterior that answer c is `predict_proba`,

        P(c) = E prod_{k != c} Phi(z + (m_c - m_k) / s),  z ~ N(0, 1).

    **Arguments:** `depth`, `activation`, `weight_var`, `bias_var`, `noise` as of `NNGPRegressor`.

    **Fitted:** as `NTKClassifier`.

    ```python
    NNGPClassifier(depth=1, noise=0.1).fit(x, labels).predict_proba(x_new)
    ```
    """


class KernelMachine(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Regression with any kernel, trained in any way: f(x) = k(x, X) g(K) y, `nk.solve` as an estimator.

    It starts at 0 and removes no mean: with `nk.Ridge(strength)` it is scikit-learn's `KernelRidge`. A singular
    kernel matrix (repeated rows) gives the pseudo-inverse.

    **Arguments:**

    - `kernel`: any of `nk.kernels`, or sums and products of them; by default `nk.kernels.RBF(sqrt(d))` for d
      features, the distance at which inputs of unit variance lie.
    - `algorithm`: `nk.GradientFlow()`, to the end, by default.

    **Fitted:** `solution_`, the `Solution`; `dual_coef_` = g(K) y, in the shape of y; `X_fit_`; `n_features_in_`.
    Predictions are `kernel(x, X_fit_) @ dual_coef_`.

    ```python
    kernel = nk.kernels.Laplace(2.0) + 0.1 * nk.kernels.Linear()
    KernelMachine(kernel, nk.GradientFlow(time=100.0)).fit(x, y).predict(x_new)
    ```
    """

    def __init__(self, kernel=None, algorithm=None):
        self.kernel = kernel
        self.algorithm = algorithm

    def fit(self, X: Any, y: Any) -> Self:
        """Factor the kernel matrix of `X` (n, d) and learn `y` (n,) or (n, out)."""
        if not isinstance(self.kernel, AbstractKernel | None):
            raise TypeError(
                f"`kernel` must be a kernel, e.g. nk.kernels.RBF(1.0); got {type(self.kernel).__name__}."
            )
        self.X_fit_, y = _regression_data(self, X, y)
        kernel = RBF(self.n_features_in_**0.5) if self.kernel is None else self.kernel
        self.solution_ = _converged(solve(kernel, self.X_fit_, y, self.algorithm))
        self.dual_coef_ = -self.solution_._weights.reshape(y.shape)  # the residual at the start is 0 - y
        return self

    def predict(self, X: Any) -> np.ndarray:
        """f at `X` (m, d), in the shape of `y`."""
        x = _new_inputs(self, X)
        return self.solution_.predict(x).mean


def _regression_data(estimator: BaseEstimator, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Checked copies, so that nothing the caller does to his arrays changes what was learnt."""
    x, y = validate_data(estimator, X, y, dtype=np.float64, multi_output=True, y_numeric=True, copy=True)
    return x, check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")


def _new_inputs(estimator: BaseEstimator, X: Any) -> np.ndarray:
    check_is_fitted(estimator)
    return validate_data(estimator, X, dtype=np.float64, reset=False)


def _converged(solution: Solution) -> Solution:
    if not solution.ok:
        raise ValueError(f"`algorithm` = {solution.algorithm} {solution.status}.")
    return solution
