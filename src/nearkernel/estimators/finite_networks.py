"""Networks of finite width, predicted order by order instead of trained, as a regressor and a classifier."""

import warnings
from typing import Literal, Self, overload

import jax
import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from .._base.check import positive, whole
from .._base.types import ArrayLike
from .._base.warning import warn
from ..dynamics.algorithms.spectral import GradientFlow, Ridge
from ..dynamics.linear.solution import Solution
from ..dynamics.orders.displacements import Unbounded
from ..dynamics.orders.solution import NearlyKernelSolution
from ..dynamics.solving import solve
from ..models.base import AbstractModel
from ..models.expansion.taylor import expand
from ..models.networks.mlp import MLP
from ..models.networks.scaled import Scaled
from .data import class_data, converged, new_inputs, regression_data
from .estimator import Estimator

_WIDTH = 256
_FAINT = 1e-10  # of the largest eigenvalue: a ridge that only data without a fit can feel


class _NearlyKernel(Estimator):
    """Several networks, each expanded around its own start and solved for the same centered targets."""

    def __init__(self, network=None, order=1, ensemble=4, scale=8.0, algorithm=None, random_state=0):
        self.network = network
        self.order = order
        self.ensemble = ensemble
        self.scale = scale
        self.algorithm = algorithm
        self.random_state = random_state

    def _learn(self, x: np.ndarray, y: np.ndarray) -> None:
        if whole(self.order, "order", 0) > 2:
            raise ValueError(f"`order` must be 0, 1 or 2; got {self.order}.")
        count = whole(self.ensemble, "ensemble", 1)
        positive(self.scale, "scale")
        self.target_mean_ = y.mean(axis=0)
        self.network_ = self._built(x.shape[1], y.reshape(len(y), -1).shape[1])
        random = check_random_state(self.random_state)
        keys = [jax.random.key(int(random.randint(2**31 - 1))) for _ in range(count)]
        self.solutions_ = [self._solved(key, x, y - self.target_mean_) for key in keys]

    def _built(self, in_dim: int, out_dim: int) -> AbstractModel:
        if self.network is None:
            return MLP(in_dim, (_WIDTH,), out_dim, activation="tanh", weight_var=1.0, bias_var=0.1)
        if isinstance(self.network, AbstractModel):
            return self.network
        if callable(self.network):
            return self.network(in_dim, out_dim)
        raise TypeError(
            "`network` must be a model, a function (in_dim, out_dim) -> model, or None; "
            f"got {type(self.network).__name__}."
        )

    def _solved(self, key: jax.Array, x: np.ndarray, y: np.ndarray) -> Solution | NearlyKernelSolution:
        model = Scaled(self.network_, self.scale)
        expanded = expand(model, model.init(key), degree=max(self.order + 1, 1))
        algorithm = GradientFlow() if self.algorithm is None else self.algorithm
        try:
            return converged(solve(expanded, x, y, algorithm, self.order))
        except Unbounded:
            if self.algorithm is not None:
                raise
        # Equal inputs with different targets: training has no end at this order, but a faint ridge has.
        largest = solve(expanded, x, y, algorithm).lambda_max
        return converged(solve(expanded, x, y, Ridge(_FAINT * largest), self.order))

    def _outputs(self, x: np.ndarray) -> np.ndarray:
        """Of each network, (ensemble, m) or (ensemble, m, out)."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\|z\^I\|")
            predictions = [solution.predict(x) for solution in self.solutions_]
        correction = max((f.correction for f in predictions if f.correction is not None), default=0.0)
        if correction > 0.1:
            warn(
                f"|z^I|/|z^F| = {correction:.2g}: the correction is too large for the expansion to be reliable; "
                "increase `scale` or the width."
            )
        return np.stack([f.mean for f in predictions]) + self.target_mean_


class NearlyKernelRegressor(MultiOutputMixin, RegressorMixin, _NearlyKernel):
    r"""Predictions of trained finite-width networks without training them: the mean over several initializations.

    Each network $\alpha\,[z(\theta) - z(\theta_0)]$ is expanded around its initialization and solved. Order 0 is the
    linearized network; order 1 adds feature learning; order 2 adds the next correction. Targets are centered. Inputs
    are not scaled: scale them in a pipeline.

    **Arguments:**

    - `network`: any `nk` model, a function (in_dim, out_dim) -> model, or None for one tanh layer of width 256.
    - `order`: 0, 1 or 2.
    - `ensemble`: number of initializations.
    - `scale`: the laziness scale $\alpha$. A large value gives a kernel machine, a small value learns features.
      `predict` warns if the correction exceeds a tenth of the linear prediction.
    - `algorithm`: `nk.GradientFlow()` to convergence by default. If equal inputs have different targets, training never
      converges; then a ridge of 1e-10 times the largest eigenvalue is used.
    - `random_state`: the seed of the initializations.

    **Fitted:** `solutions_`, one per initialization; `network_`; `target_mean_`; `n_features_in_`.

    ```python
    model = make_pipeline(StandardScaler(), NearlyKernelRegressor(order=1, ensemble=8))
    mean, std = model.fit(x, y).predict(x_new, return_std=True)
    ```
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Expand, factor and solve each network for `X` (n, d) and `y` (n,) or (n, out)."""
        self._learn(*regression_data(self, X, y))
        return self

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(self, X: ArrayLike, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean over initializations at `X` (m, d), in the shape of `y`; with `return_std` also the deviation."""
        outputs = self._outputs(new_inputs(self, X))
        if not return_std:
            return outputs.mean(axis=0)
        if len(outputs) < 2:
            raise ValueError(f"`return_std` needs `ensemble` of at least 2; got {len(outputs)}.")
        return outputs.mean(axis=0), outputs.std(axis=0, ddof=1)


class NearlyKernelClassifier(ClassifierMixin, _NearlyKernel):
    """`NearlyKernelRegressor` on one-hot targets; it predicts the class with the largest mean output.

    **Arguments:** `network`, `order`, `ensemble`, `scale`, `algorithm`, `random_state`: same as
    `NearlyKernelRegressor`.

    **Fitted:** `classes_`, and the same as `NearlyKernelRegressor`.
    """

    classes_: np.ndarray

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Expand, factor and solve each network for `X` (n, d) and the classes `y` (n,), with one output per class."""
        x, one_hot, self.classes_ = class_data(self, X, y)
        self._learn(x, one_hot)
        return self

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Mean outputs (m, classes) for the rows of `X`; for two classes the second minus the first, (m,)."""
        outputs = self._outputs(new_inputs(self, X)).mean(axis=0)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The class with the largest mean output for each row of `X`, (m,)."""
        outputs = self._outputs(new_inputs(self, X)).mean(axis=0)
        return self.classes_[outputs.argmax(axis=1)]
