"""What every estimator does with the arrays it is given."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._check import require_unmasked
from .._status import Status, StatusKind


def regression_data(estimator: BaseEstimator, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Checked copies, so that later changes of the caller's arrays do not change what was learned."""
    _refuse_masks(X, y)
    x, y = validate_data(estimator, X, y, dtype=np.float64, multi_output=True, y_numeric=True, copy=True)
    return x, check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")


def class_data(estimator: BaseEstimator, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Checked inputs, one-hot targets (n, classes), and the classes."""
    _refuse_masks(X, y)
    x, y = validate_data(estimator, X, y, dtype=np.float64, copy=True)
    check_classification_targets(y)
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"`y` must have at least two classes; got one class, {classes.tolist()[0]!r}.")
    return x, np.eye(len(classes))[index], classes


def new_inputs(estimator: BaseEstimator, X: Any) -> np.ndarray:
    check_is_fitted(estimator)
    _refuse_masks(X)
    return validate_data(estimator, X, dtype=np.float64, reset=False)


def vector_data(estimator: BaseEstimator, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Same as `regression_data`, for one output."""
    _refuse_masks(X, y)
    x, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True)
    return x, np.asarray(y, dtype=np.float64)


def _refuse_masks(X: Any, y: Any = None) -> None:
    """scikit-learn would compute with what is masked."""
    require_unmasked(X, "X")
    require_unmasked(y, "y")


def converged(solution: Any) -> Any:
    """`solution`, refused if training diverges; a tolerance that was not reached is a warning."""
    require_trained(solution.status, f"`algorithm` = {solution.algorithm}")
    return solution


def require_trained(status: Status, argument: str) -> None:
    """Raises if training diverged, and warns if it did not converge; `argument` as the user typed it."""
    if status.kind is StatusKind.not_converged:
        warnings.warn(status.message, ConvergenceWarning, stacklevel=3)
    elif not status.ok:
        raise ValueError(f"{argument} {status}.")
