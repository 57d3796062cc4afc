"""What every estimator does with the arrays it is given."""

import datetime
from typing import TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._base.check import LARGEST, require_unmasked, shown
from .._base.status import Status, StatusKind
from .._base.types import ArrayLike
from .._base.warning import warn
from ..dynamics.linear.base import AbstractSolution

_S = TypeVar("_S", bound=AbstractSolution)


def regression_data(estimator: BaseEstimator, X: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Checked copies, so that later changes of the caller's arrays do not change what was learned."""
    _require_numbers(X, y)
    x, given = validate_data(estimator, X, y, dtype=np.float64, multi_output=True, y_numeric=True, copy=True)
    targets: np.ndarray = check_array(given, dtype=np.float64, ensure_2d=False, input_name="y")
    _require_moderate(x, targets)
    return x, targets


def class_data(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Checked inputs, one-hot targets (n, classes), and the classes."""
    _require_numbers(X, y)
    x, y = validate_data(estimator, X, y, dtype=np.float64, copy=True)
    _require_moderate(x)
    check_classification_targets(y)
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"`y` must have at least two classes; got one class, {classes.tolist()[0]!r}.")
    return x, np.eye(len(classes))[index], classes


def new_inputs(estimator: BaseEstimator, X: ArrayLike) -> np.ndarray:
    check_is_fitted(estimator)
    _require_numbers(X)
    return validate_data(estimator, X, dtype=np.float64, reset=False)


def vector_data(estimator: BaseEstimator, X: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Same as `regression_data`, for one output."""
    _require_numbers(X, y)
    x, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True)
    y = np.asarray(y, dtype=np.float64)
    _require_moderate(x, y)
    return x, y


def deviation(values: np.ndarray) -> np.ndarray:
    """Standard deviation of each column, 0 where it is rounding. Squares neither overflow nor vanish."""
    size = np.abs(values).max(axis=0)
    _, power = np.frexp(size)  # a power of 2 changes no digit
    spread = np.ldexp(np.ldexp(values, -power).std(axis=0), power)
    return np.where(spread > 1e-12 * size, spread, 0.0)


def pooled(spreads: np.ndarray) -> float:
    """Root mean square of deviations, under the same condition."""
    unit = np.ldexp(1.0, np.frexp(spreads.max())[1])
    return float(unit * np.sqrt(np.mean((spreads / unit) ** 2)))


def sorted_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n,) places of the rows, sorted by values: folds drawn in this order do not depend on that of the table."""
    return np.lexsort((*y.reshape(len(y), -1).T, *x.T))


def _require_numbers(X: ArrayLike, y: ArrayLike | None = None) -> None:
    """scikit-learn would compute with what is masked, and with dates as counts of their unit."""
    for value, name in ((X, "X"), (y, "y")):
        require_unmasked(value, name)
        date = _first_date(value)
        if date is not None:
            instead = ", or use `PrepareTable`, which encodes dates" if name == "X" else ""
            raise TypeError(
                f"`{name}` must hold numbers; got dates or times such as {shown(str(date))}: convert them, e.g. "
                f'`(dates - dates.min()) / np.timedelta64(1, "D")`{instead}.'
            )


def _first_date(value: object) -> object:
    """One of the dates, times or durations among values; None if there is none."""
    try:
        array = np.asarray(value)
    except Exception:  # what is no array is named by scikit-learn
        return None
    if array.dtype.kind in "mM":
        return array.ravel()[0] if array.size else array.dtype
    kinds = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
    if array.dtype.kind != "O":
        return None
    return next((each for each in array.ravel() if isinstance(each, kinds)), None)


def _require_moderate(x: np.ndarray, y: np.ndarray | None = None) -> None:
    """Raises if squares would overflow."""
    for array, name in ((x, "X"), (y, "y")):
        largest = 0.0 if array is None else float(np.abs(array).max(initial=0.0))
        if largest > LARGEST:
            raise ValueError(
                f"`{name}` holds values up to {largest:.3g}, whose squares overflow: scale it towards 1."
            )


def converged(solution: _S) -> _S:
    """`solution`, refused if training diverges; a tolerance that was not reached is a warning."""
    require_trained(solution.status, f"`algorithm` = {solution.algorithm}")
    return solution


def require_trained(status: Status, argument: str) -> None:
    """Raises if training diverged, and warns if it did not converge; `argument` as the user typed it."""
    if status.kind is StatusKind.not_converged:
        warn(status.message, ConvergenceWarning)
    elif not status.ok:
        raise ValueError(f"{argument} {status}.")
