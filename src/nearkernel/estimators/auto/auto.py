"""Estimators for tables that choose their kernels, ridges and scales automatically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self, overload

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from ..._base.check import one_of, real_number, whole
from ..._base.types import ArrayLike
from ..data import class_data, deviation, new_inputs, regression_data
from ..estimator import Estimator
from ..tables.views import Views
from .blend import Blend, blended
from .calibration import Errors, Softmax
from .members import Kernel, Member, matrices
from .ridge_path import Spectrum

_TARGETS = ("auto", "plain", "log")
_SKEWED = 1.0  # skewness from which a logarithm is tried
_MOST_ROWS = 500  # on which it is tried
_GAIN = 0.98  # of the squared error, below which it is kept


class _Auto(Estimator):
    blend_: Blend

    def _sizes(self) -> tuple[int, int]:
        one_of(self.scale, "scale", ("columns", "shared"))
        return whole(self.most_exact, "most_exact", 2), whole(self.centers, "centers", 2)

    @property
    def kernels_(self) -> list[tuple[str, float, float]]:
        """The name, weight and ridge (in units of the mean of k(x, x)) of each kernel in the average."""
        parts = sorted(self.blend_.parts, key=lambda part: -part.weight)
        return [(part.kernel.member.name, part.weight, part.ridge) for part in parts]

    @property
    def column_weights_(self) -> np.ndarray | None:
        """Column weights (d,) of the learned metric, scaled to a maximum of 1; None if it is not in the average."""
        metric = self.blend_.metric
        if metric is None:
            return None
        weights = np.zeros(self.n_features_in_)
        weights[self.blend_.views.varies] = metric / metric.max()
        return weights


class AutoRegressor(MultiOutputMixin, RegressorMixin, _Auto):
    r"""Regression on a table without settings: an average of kernel machines, chosen by leave-one-out error.

    Columns are standardized and, as a second view, transformed to a normal distribution by their ranks. New rows are
    clipped to the range of the training rows. On these views it fits tangent kernels (NTK) and Gaussian processes
    (NNGP) of ReLU networks, product-Laplace kernels $\exp(-\lVert x - z\rVert_1 / s)$, and an NTK with one weight per
    column, learned by maximum marginal likelihood. Each kernel gets the ridge $\lambda$ with the smallest
    leave-one-out error,

    $$e_i = \frac{[(K + \lambda)^{-1} y]_i}{[(K + \lambda)^{-1}]_{ii}},$$

    and the non-negative weights of the average minimize the same error. No rows are held out.

    **Arguments:**

    - `target`: "plain", learn `y` itself; "log", learn the logarithm of a positive target; "auto", use the logarithm
      if the target is positive and skewed and its leave-one-out error is smaller.
    - `scale`: "columns", divide each column by its standard deviation; "shared", divide all columns by one standard
      deviation, for columns in the same unit (such as pixels).
    - `most_exact`: with at most this many rows, all rows are centers of the kernels; with more rows, `centers` of
      them are.
    - `centers`: the number of centers for larger tables.
    - `random_state`: the seed for drawing centers and, beyond 400 rows, the rows on which kernels are compared: there
      predictions depend slightly on the order of the rows.

    **Fitted:** `kernels_`, the name, weight and ridge of each kernel in the average; `column_weights_` of the learned
    metric, or None; `target_`, "plain" or "log"; `left_out_`, leave-one-out predictions of the training rows, in the
    shape of `y`; `n_features_in_`.

    ```python
    model = AutoRegressor().fit(x, y)
    model.predict(x_new), model.predict_interval(x_new, coverage=0.9)
    ```
    """

    def __init__(self, target="auto", scale="columns", most_exact=6000, centers=1500, random_state=0):
        self.target = target
        self.scale = scale
        self.most_exact = most_exact
        self.centers = centers
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose the kernels and learn `y` (n,) or (n, out) from `X` (n, d)."""
        x, y = regression_data(self, X, y)
        most_exact, centers = self._sizes()
        random = check_random_state(self.random_state)
        self._vector = y.ndim == 1
        targets = y.reshape(len(y), -1)
        self.target_ = self._chosen_target(x, targets, random)
        learned = np.log(targets) if self.target_ == "log" else targets
        spread = deviation(learned)
        self.target_mean_ = np.where(spread > 0, learned.mean(axis=0), learned[0])
        self.target_scale_ = np.where(spread > 0, spread, 1.0)
        scaled = np.where(spread > 0, (learned - self.target_mean_) / self.target_scale_, 0.0)
        made = blended(x, scaled, True, self.scale == "shared", most_exact, centers, random)
        self.blend_ = made.blend
        self._errors = [Errors(made, each, random) for each in (scaled - made.left_out).T]
        left_out = made.left_out * self.target_scale_ + self.target_mean_
        self._factor = np.ones(targets.shape[1])
        if self.target_ == "log":
            left_out = np.exp(np.minimum(left_out, np.log(targets).max(axis=0)))
            self._factor = _best_factor(left_out, targets)
        self.left_out_ = self._shaped(left_out * self._factor)
        return self

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(self, X: ArrayLike, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean at `X` (m, d), in the shape of `y`; with `return_std` also the deviation of a new observation."""
        if return_std:
            return self.law(X)[:2]
        x = new_inputs(self, X)  # which says if it is not fitted
        return self._shaped(self.mean_of(self.blend_.outputs(x)))

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> np.ndarray:
        """Lower and upper bounds (m, 2), or (m, out, 2), that contain a new observation with probability `coverage`.

        The bounds are quantiles of leave-one-out errors, scaled by the typical size of errors near `X`.
        """
        if not 0 < real_number(coverage, "coverage") < 1:
            raise ValueError(f"`coverage` must be between 0 and 1; got {coverage}.")
        return self.law(X, coverage)[2]

    def law(self, X: ArrayLike, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, deviation and interval of new observations at `X`, which contains them with probability `coverage`."""
        mean, std, intervals = self.laws(X, [coverage])
        return mean, std, intervals[0]

    def laws(self, X: ArrayLike, coverages: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Same as `law` for several `coverages`, with each kernel of `X` computed once."""
        x = new_inputs(self, X)
        terms = [errors.terms() for errors in self._errors]
        outputs, values = self.blend_.outputs_and(x, [term for each in terms for term in each])
        left = iter(values)
        sizes = [
            errors.sizes([next(left) for _ in each], len(x))
            for errors, each in zip(self._errors, terms, strict=True)
        ]
        mean = self.mean_of(outputs)
        std = np.stack(
            [size * errors.deviation() for size, errors in zip(sizes, self._errors, strict=True)], 1
        )
        std = std * self.target_scale_
        # One (coverages, 2, m) per output.
        bounds = [
            np.multiply.outer([errors.quantiles(coverage) for coverage in coverages], size) + column
            for column, size, errors in zip(outputs.T, sizes, self._errors, strict=True)
        ]
        intervals = np.moveaxis(np.stack(bounds, axis=-1), 1, -1)  # (coverages, m, out, 2)
        intervals = intervals * self.target_scale_[:, None] + self.target_mean_[:, None]
        if self.target_ == "log":
            std, intervals = mean * np.sqrt(np.expm1(np.minimum(std**2, 50.0))), np.exp(intervals)
        return self._shaped(mean), self._shaped(std), intervals[:, :, 0] if self._vector else intervals

    def mean_of(self, outputs: np.ndarray) -> np.ndarray:
        """The mean, (m, out), in units of the targets, from the blend's `outputs` (m, out)."""
        mean = outputs * self.target_scale_ + self.target_mean_
        return (np.exp(mean) if self.target_ == "log" else mean) * self._factor

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._vector else values

    def _chosen_target(self, x: np.ndarray, y: np.ndarray, random: np.random.RandomState) -> str:
        chosen = one_of(self.target, "target", _TARGETS)
        if chosen == "log" and y.min() <= 0:
            raise ValueError(
                f'`target` = "log" needs `y` greater than 0; got a smallest value of {y.min():g}.'
            )
        if chosen != "auto" or y.min() <= 0 or len(y) < 20 or np.ptp(y) == 0:
            return "plain" if chosen == "auto" else chosen
        y = y / _power_of_2(y)  # squares neither overflow nor vanish
        spread = deviation(y)
        centered = (y - y.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        if np.mean(centered**3, axis=0).min() < _SKEWED:
            return "plain"
        rows = random.permutation(len(y))[:_MOST_ROWS]
        x, y = x[rows], y[rows]
        kernel = Kernel(Member("ntk", 3, "normal"), Views(x))
        spectrum, logs = Spectrum(next(matrices([kernel], x))[1]), np.log(y)
        plain = spectrum.fit(y - y.mean(axis=0)).left_out + y.mean(axis=0)
        by_log = spectrum.fit(logs - logs.mean(axis=0)).left_out + logs.mean(axis=0)
        by_log = np.exp(np.minimum(by_log, logs.max(axis=0)))
        by_log *= _best_factor(by_log, y)
        return "log" if np.mean((by_log - y) ** 2) < _GAIN * np.mean((plain - y) ** 2) else "plain"


def _best_factor(found: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(out,) that brings positive predictions (n, out) closest to y."""
    unit = _power_of_2(y)
    found, y = found / unit, y / unit
    return (y * found).sum(axis=0) / (found**2).sum(axis=0)


def _power_of_2(y: np.ndarray) -> np.ndarray:
    """Near the largest value of each column: dividing by it changes no digit."""
    return np.ldexp(1.0, np.frexp(np.abs(y).max(axis=0))[1] - 1)


class AutoClassifier(ClassifierMixin, _Auto):
    r"""Classification of a table without settings: an average of kernel machines, chosen by leave-one-out error.

    Works like `AutoRegressor` on one-hot targets, without the learned metric. The probabilities are
    $\mathrm{softmax}(a f + b)$ of the outputs $f$; $a$ and $b$ maximize the likelihood of the leave-one-out outputs,
    so the probabilities are calibrated without held-out rows.

    **Arguments:**

    - `class_weight`: None, predict the most probable class; "balanced", predict the class with the largest ratio of
      probability to frequency, which finds more of the rare classes at the cost of false alarms; or a dict, class ->
      cost of missing it. The predicted probabilities do not depend on it.
    - `scale`, `most_exact`, `centers`, `random_state`: same as `AutoRegressor`.

    **Fitted:** `classes_`; `kernels_`; `left_out_proba_` (n, classes), leave-one-out probabilities of the training
    rows; `n_features_in_`.

    ```python
    model = AutoClassifier().fit(x, labels)
    model.predict(x_new), model.predict_proba(x_new)
    ```
    """

    classes_: np.ndarray

    def __init__(self, class_weight=None, scale="columns", most_exact=6000, centers=1500, random_state=0):
        self.class_weight = class_weight
        self.scale = scale
        self.most_exact = most_exact
        self.centers = centers
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose the kernels and learn the classes `y` (n,) from `X` (n, d)."""
        x, one_hot, self.classes_ = class_data(self, X, y)
        self._preference = self._preferences(y)
        most_exact, centers = self._sizes()
        random = check_random_state(self.random_state)
        self.target_mean_ = one_hot.mean(axis=0)
        centered = one_hot - self.target_mean_
        made = blended(x, centered, False, self.scale == "shared", most_exact, centers, random)
        self.blend_, left_out = made.blend, made.left_out + self.target_mean_
        self._softmax = Softmax(left_out, one_hot.argmax(axis=1))
        self.left_out_proba_ = self._softmax.probabilities(left_out)
        return self

    def _preferences(self, y: ArrayLike) -> np.ndarray:
        """(classes,) logarithms of the costs of missing each."""
        weight = self.class_weight
        if weight is not None and weight != "balanced" and not isinstance(weight, dict):
            raise ValueError(f'`class_weight` must be None, "balanced" or a dict; got {weight!r}.')
        weights = compute_class_weight(weight, classes=self.classes_, y=np.asarray(y))
        if not np.all(weights > 0):
            raise ValueError(f"`class_weight` must be greater than 0 for each class; got {weight!r}.")
        return np.log(weights)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """The probability of each class for each row of `X`, (m, classes)."""
        x = new_inputs(self, X)
        return self.probabilities_of(self.blend_.outputs(x))

    def probabilities_of(self, outputs: np.ndarray) -> np.ndarray:
        """Class probabilities (m, classes) of the blend's `outputs` (m, classes)."""
        return self._softmax.probabilities(outputs + self.target_mean_)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Log probabilities (m, classes) for the rows of `X`; for two classes their difference, (m,)."""
        return self._decision(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The predicted classes of the rows of `X`, (m,)."""
        return self.classes_of(self.predict_proba(X))

    def _decision(self, probabilities: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            logs = np.log(probabilities) + self._preference
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def classes_of(self, probabilities: np.ndarray) -> np.ndarray:
        """The predicted class, (m,), for each row of `probabilities` (m, classes)."""
        decision = self._decision(probabilities)
        index = (decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
        return self.classes_[index]
