"""Infinitely wide networks as regressors and classifiers."""

import abc
import math
from typing import Literal, Self, overload

import numpy as np
from scipy.special import ndtr
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from .._base.check import positive, whole
from .._base.types import ArrayLike
from ..activations.base import AbstractActivation
from ..dynamics.algorithms.spectral import Ridge
from ..dynamics.linear.tune import tune
from ..forecasts.infinite_width.trained_gaussian import TrainedLaw
from ..forecasts.outputs.class_probabilities import log_class_probabilities
from ..forecasts.outputs.kernel_pair import pair_of
from ..kernels.wide.network import NNGP, NTK
from ..models.networks.mlp import MLP
from ..models.networks.network import AbstractNetwork
from .auto.tuned import chosen
from .data import class_data, converged, deviation, new_inputs, pooled, regression_data
from .estimator import Estimator

_WIDTH = 1  # of the hidden layers; the kernels are those of infinite width, whatever it is
_LEAST_VARIANCE = np.finfo(float).eps ** 0.5  # of the start's; where data fix an output, the rest is rounding
_LEAST_STD = 1e-150  # for outputs that cannot vary at all: those of x = 0 without biases


class Units:
    """The scales of features and targets that were seen."""

    def __init__(self, x: np.ndarray, y: np.ndarray):
        self.location, spread = x.mean(axis=0), deviation(x)
        self.scale = np.where(spread > 0, spread, 1.0)
        # One scale for all outputs, so that they share their variance.
        self.target = pooled(deviation(y.reshape(len(y), -1))) or 1.0

    def inputs(self, x: np.ndarray) -> np.ndarray:
        return (x - self.location) / self.scale


class _Network(Estimator, abc.ABC):
    """What the four network estimators share: centered targets, learned by the law of trained networks."""

    depth: int
    activation: str | AbstractActivation
    weight_var: float
    bias_var: float
    network: AbstractNetwork | None
    standardize: bool

    @abc.abstractmethod
    def _law_of(self, net: AbstractNetwork, x: np.ndarray, y: np.ndarray) -> TrainedLaw: ...

    def _learn(self, x: np.ndarray, y: np.ndarray) -> None:
        net = self._net(x.shape[1])
        self.target_mean_ = y.mean(axis=0)
        self._units = Units(x, y) if self.standardize else None
        y = y - self.target_mean_
        if self._units is not None:
            x, y = self._units.inputs(x), y / self._units.target
        self._law = self._law_of(net, x.reshape(-1, *net.in_shape), y)
        self.solution_ = converged(self._law.solution)

    def _net(self, features: int) -> AbstractNetwork:
        if self.network is None:
            widths = (_WIDTH,) * whole(self.depth, "depth", 0)
            return MLP(features, widths, 1, self.activation, self.weight_var, self.bias_var)
        if not isinstance(self.network, AbstractNetwork):
            raise TypeError(f"`network` must be an nk.MLP or nk.Network; got {type(self.network).__name__}.")
        if math.prod(self.network.in_shape) != features:
            raise ValueError(
                f"`network` takes inputs of shape {self.network.in_shape}; got `X` with {features} numbers per row."
            )
        return self.network

    def _rows(self, X: ArrayLike) -> ArrayLike:
        """Images as rows, which scikit-learn's checks expect."""
        if self.network is None or np.ndim(X) <= 2:
            return X
        images = np.asarray(X)
        return images.reshape(len(images), -1)

    def _new(self, X: ArrayLike) -> np.ndarray:
        """Checked new inputs, in the shape of the network's."""
        x = new_inputs(self, self._rows(X))
        x = x if self._units is None else self._units.inputs(x)
        return x.reshape(-1, *self._law.x.shape[1:])

    def _mean(self, x: np.ndarray) -> np.ndarray:
        mean = self.solution_.predict(x).mean
        return (mean if self._units is None else mean * self._units.target) + self.target_mean_

    def _std(self, x: np.ndarray, least: float = 0.0) -> np.ndarray:
        """(m,); the variance is at least `least` times that at initialization."""
        floor = least * self._law.pair.start.diag(x) if least else 0.0
        std = np.sqrt(np.maximum(self._law.variance(x), floor))
        return std if self._units is None else std * self._units.target


class _NTK(_Network):
    def __init__(
        self,
        depth=2,
        activation="relu",
        weight_var=2.0,
        bias_var=0.1,
        algorithm=None,
        network=None,
        standardize=False,
    ):
        self.depth = depth
        self.activation = activation
        self.weight_var = weight_var
        self.bias_var = bias_var
        self.algorithm = algorithm
        self.network = network
        self.standardize = standardize

    def _law_of(self, net: AbstractNetwork, x: np.ndarray, y: np.ndarray) -> TrainedLaw:
        algorithm = chosen(self.algorithm, NTK(net), x, y)
        return TrainedLaw(pair_of(net), x, y.reshape(len(x), -1), algorithm, y.ndim == 1)


class _NNGP(_Network):
    def __init__(
        self,
        depth=2,
        activation="relu",
        weight_var=2.0,
        bias_var=0.1,
        noise=0.0,
        network=None,
        standardize=False,
    ):
        self.depth = depth
        self.activation = activation
        self.weight_var = weight_var
        self.bias_var = bias_var
        self.noise = noise
        self.network = network
        self.standardize = standardize

    def _law_of(self, net: AbstractNetwork, x: np.ndarray, y: np.ndarray) -> TrainedLaw:
        if isinstance(self.noise, str) and self.noise in ("loo", "auto"):
            noise = tune(NNGP(net), x, y, "ridge").value
        else:
            noise = positive(self.noise, "noise", zero=True)
        kernel = NNGP(net)
        pair = pair_of((kernel, kernel))
        return TrainedLaw(pair, x, y.reshape(len(x), -1), Ridge(noise), y.ndim == 1, noise=noise)


class _NetworkRegressor(MultiOutputMixin, RegressorMixin, _Network):
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Factor the kernel matrix of `X` (n, d) and learn `y` (n,) or (n, out)."""
        self._learn(*regression_data(self, self._rows(X), y))
        return self

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(self, X: ArrayLike, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean at `X` (m, d), in the shape of `y`; with `return_std` also their standard deviation."""
        x = self._new(X)
        mean = self._mean(x)
        if not return_std:
            return mean
        std = self._std(x)
        return mean, std if mean.ndim == 1 else np.repeat(std[:, None], mean.shape[1], axis=1)


class _NetworkClassifier(ClassifierMixin, _Network):
    classes_: np.ndarray

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Factor the kernel matrix of `X` (n, d) and learn the classes `y` (n,), with one output per class."""
        x, one_hot, self.classes_ = class_data(self, self._rows(X), y)
        self._learn(x, one_hot)
        return self

    def _in_deviations(self, x: np.ndarray) -> np.ndarray:
        std = np.maximum(self._std(x, least=_LEAST_VARIANCE), _LEAST_STD)
        return self._mean(x) / std[:, None]

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Mean outputs m in units of their standard deviation s, (m, classes); `predict_proba` depends only on them.

        For two classes (m_1 - m_0) / (sqrt(2) s), (m,); Phi of it is the probability of the second class.
        """
        outputs = self._in_deviations(self._new(X))
        return (outputs[:, 1] - outputs[:, 0]) / np.sqrt(2) if len(self.classes_) == 2 else outputs

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class with the largest mean output, which is also the most probable one, (m,)."""
        x = self._new(X)
        return self.classes_[self._mean(x).argmax(axis=1)]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """For each class, the fraction of networks that predict it, (m, classes)."""
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return ndtr(np.column_stack([-decision, decision]))
        return np.exp(log_class_probabilities(decision, np.ones(len(decision))))


class NTKRegressor(_NetworkRegressor, _NTK):
    r"""Infinitely wide networks with all layers trained: the mean and standard deviation over initializations.

    Let $\Theta$ be the tangent kernel, $K$ the covariance of the outputs at initialization, $A$ the training points
    and $B$ the new points. With $R = \Theta_{BA}\, g(\Theta_{AA})$,

    $$\text{mean} = R\,(y - \bar y) + \bar y, \qquad
    \text{variance} = \operatorname{diag}(K_{BB} - 2 R K_{AB} + R K_{AA} R^\top),$$

    where $g$ is the filter of the algorithm, $\Theta_{AA}^{-1}$ at the end of training. The mean $\bar y$ of the
    targets is subtracted before fitting and added afterwards, so constants are learned. Inputs are not scaled: scale
    them in a pipeline.

    **Arguments:**

    - `depth`: number of hidden layers.
    - `activation`: a name, such as "relu", "erf", "gelu", "tanh", or a JAX function.
    - `weight_var` $C_W > 0$ and `bias_var` $C_b \ge 0$: same as `nk.MLP`.
    - `algorithm`: the training algorithm, which is also the regularization. `nk.GradientFlow()` to convergence by
      default; `nk.GradientFlow(time)` or `nk.GradientDescent(lr, steps)` stop early; `nk.Ridge(strength)` adds weight
      decay; "ridge" or "flow" choose the strength or the time with the smallest leave-one-out error
      (`nk.dynamics.tune`).
    - `network`: an `nk.MLP` or `nk.Network` that replaces the arguments before it, e.g. `nk.CNN((8, 8, 1))`; `X` may
      then be an array of images (n, 8, 8, 1), or one row of pixels per image.
    - `standardize`: standardize features and targets; predictions are in the units of `y`.

    **Fitted:** `solution_`, the `Solution` for the centered targets; `target_mean_`; `n_features_in_`.

    ```python
    model = make_pipeline(StandardScaler(), NTKRegressor(depth=3, algorithm=nk.Ridge(0.1)))
    mean, std = model.fit(x, y).predict(x_new, return_std=True)
    ```
    """


class NNGPRegressor(_NetworkRegressor, _NNGP):
    r"""Infinitely wide networks with random weights as a prior: the Gaussian-process posterior.

    Let $K$ be the covariance of the outputs at initialization, $A$ the training points and $B$ the new points. With
    $R = K_{BA} (K_{AA} + \sigma^2)^{-1}$,

    $$\text{mean} = R\,(y - \bar y) + \bar y, \qquad \text{variance} = \operatorname{diag}(K_{BB} - R K_{AB}),$$

    the variance of the function, without the noise of a new observation. Without noise this is also the distribution
    of networks in which only the last layer is trained. Targets are centered. Inputs are not scaled.

    **Arguments:**

    - `depth`, `activation`, `weight_var`, `bias_var`, `network`, `standardize`: same as `NTKRegressor`.
    - `noise`: the variance $\sigma^2 \ge 0$ of the observations around the function, in units of `y` squared (0:
      interpolate), or in units of the variance of `y` with `standardize`; "auto" or "loo" choose the value with the
      smallest leave-one-out error.

    **Fitted:** `solution_`, the `Solution` for the centered targets; `target_mean_`; `n_features_in_`.

    ```python
    search = GridSearchCV(NNGPRegressor(), {"depth": [1, 2, 4], "noise": [1e-3, 1e-2, 1e-1]})
    mean, std = search.fit(x, y).best_estimator_.predict(x_new, return_std=True)
    ```
    """


class NTKClassifier(_NetworkClassifier, _NTK):
    r"""Infinitely wide networks with all layers trained on one-hot targets with the squared loss.

    Over initializations the outputs are independent Gaussians. Output $c$ has mean $m_c$, and all outputs have the
    same variance $s^2$; `NTKRegressor` gives both for the centered one-hot targets. The fraction of trained
    networks that predict class $c$ is then

    $$P(c) = \mathbb{E} \prod_{k \ne c} \Phi\!\left(z + \frac{m_c - m_k}{s}\right), \qquad z \sim \mathcal{N}(0, 1).$$

    `predict_proba` returns it, by quadrature to 1e-12. It measures how much the predicted class depends on the
    initialization, not how noisy the labels are.

    **Arguments:** `depth`, `activation`, `weight_var`, `bias_var`, `algorithm`, `network`, `standardize`: same as
    `NTKRegressor`.

    **Fitted:** `classes_`; `solution_`, the `Solution` for the centered one-hot targets; `target_mean_`, the
    frequency of each class; `n_features_in_`.

    ```python
    model = NTKClassifier(activation="erf").fit(x, labels)
    model.predict(x_new), model.predict_proba(x_new)
    ```
    """


class NNGPClassifier(_NetworkClassifier, _NNGP):
    r"""Infinitely wide networks with random weights as a prior, conditioned on one-hot targets.

    Output $c$ has the posterior mean $m_c$ and variance $s^2$, same as `NNGPRegressor`. `predict_proba` is the fraction
    of networks of the posterior that predict class $c$,

    $$P(c) = \mathbb{E} \prod_{k \ne c} \Phi\!\left(z + \frac{m_c - m_k}{s}\right), \qquad z \sim \mathcal{N}(0, 1).$$

    **Arguments:** `depth`, `activation`, `weight_var`, `bias_var`, `noise`, `network`, `standardize`: same as
    `NNGPRegressor`.

    **Fitted:** same as `NTKClassifier`.

    ```python
    NNGPClassifier(depth=1, noise=0.1).fit(x, labels).predict_proba(x_new)
    ```
    """
