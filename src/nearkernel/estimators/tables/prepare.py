"""Turns any table into numbers: a transformer, fitted on the training rows, that reports what it did."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..._base.types import ArrayLike
from ..estimator import Estimator
from .columns import Category, Plan, Remark, planned
from .frames import Frame, Readings, frame_of, is_frame
from .reading import Column, Reading


class PrepareTable(TransformerMixin, Estimator):
    """Turns any table into columns of numbers: handles missing values, dates, categories, ids, constant and repeated
    columns.

    | column | becomes |
    |---|---|
    | numbers, true/false | unchanged; missing or infinite values are filled with the median and flagged in a column |
    | text with few values | one column of 0 and 1 per level; rare and unseen levels share one column |
    | dates and times | days since the first, and the sine and cosine of the year, week and day, where they vary |
    | text that is nearly all different, row numbers, ids | left out |
    | constant, empty or repeated columns | left out |

    Text that contains numbers (decimal comma, thousands separator, percent) or dates is parsed. The kind and the format
    of each column are found in the training rows and used for new rows, so a row is encoded in the same way alone and
    among others. New values of another kind or format are missing values, and `surprises` lists them.

    **Fitted:** `columns_`, the encoding of each column that is used; `remarks_`, what was found in each column and how
    it was handled; `names_in_`, the names of all columns; `n_features_in_`; `get_feature_names_out()`.

    ```python
    model = make_pipeline(PrepareTable(), AutoRegressor()).fit(frame, y)  # pandas, polars, Arrow, dict or array
    print(*model[0].remarks_, sep="\\n")
    ```
    """

    columns_: list[Plan]
    remarks_: list[Remark]
    _readings: dict[str, Reading] | None = None  # None in model files that were written without them

    def fit(self, X: ArrayLike | Frame, y: ArrayLike | None = None) -> Self:
        """Choose an encoding for each column of `X`, a table of n rows; `y` is ignored."""
        frame = frame_of(X)
        self.names_in_, self.n_features_in_ = list(frame), len(frame)
        self._named = is_frame(X)
        rows = len(next(iter(frame.values())).values) if frame else 0
        if rows < 1:
            what = f"{rows} sample(s)" if frame else "0 feature(s)"
            raise ValueError(
                f"`X` has {what} (shape=({rows}, {len(frame)})) while a minimum of 1 is required."
            )
        self.columns_, self.remarks_ = [], []
        self._readings = {name: column.reading for name, column in frame.items()}
        seen: dict[bytes, str] = {}
        for name, column in frame.items():
            first = seen.setdefault(_print_of(column), name)
            if first != name:
                self.remarks_.append(Remark(name, f"the same as {first}", "left out"))
                continue
            plan, remarks = planned(name, column)
            self.remarks_ += remarks
            if plan is not None:
                self.columns_.append(plan)
        if not self.columns_:  # an estimator behind it learns the mean
            self.remarks_.append(
                Remark("all columns", "nothing to learn from", "replaced with one column of zeros")
            )
        return self

    def transform(self, X: ArrayLike | Frame) -> np.ndarray:
        """The columns (m, k) of `get_feature_names_out()` for `X`; columns that `fit` did not see are ignored."""
        check_is_fitted(self)
        frame = self._checked(X)
        if not self.columns_:
            return np.zeros((max((len(column.values) for column in frame.values()), default=0), 1))
        return np.concatenate([plan.encoded(frame[plan.name]) for plan in self.columns_], axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """The names of the columns that `transform` returns; `input_features` is ignored."""
        check_is_fitted(self)
        names = [name for plan in self.columns_ for name in plan.features]
        return np.array(names or ["nothing"], dtype=object)

    def sources_(self) -> np.ndarray:
        """For each column that `transform` returns, the index in `columns_` of the column it comes from."""
        return np.concatenate([[i] * len(plan.features) for i, plan in enumerate(self.columns_)]).astype(int)

    def surprises(self, X: ArrayLike | Frame) -> list[str]:
        """Messages on missing values, values of another kind or format, and category levels in new rows `X` that the
        training rows did not have."""
        check_is_fitted(self)
        frame, surprises = self._checked(X), []
        if self._readings is None:
            surprises.append(
                "the model file does not say how its columns are written, so new rows are read by themselves: fit and "
                "save the model again"
            )
        for plan in self.columns_:
            column = frame[plan.name]
            unseen = plan.unseen(column) if isinstance(plan, Category) else 0
            missing = 0 if plan.flag else int(column.missing.sum()) - column.unread
            for count, what in (
                (column.unread, f"are not {column.reading.what} as in the training rows, taken as missing"),
                (missing, "are missing"),
                (unseen, "belong to unseen or rare levels"),
            ):
                if count:
                    surprises.append(f"{plan.name}: {count} of {len(column.values)} values {what}")
        return surprises

    def formats(self) -> dict[str, Reading | None]:
        """How each column of new rows is to be read; None where that has to be found out."""
        if self._readings is not None:
            return {**self._readings}
        levels = {plan.name: Reading("text") for plan in self.columns_ if isinstance(plan, Category)}
        return {name: levels.get(name) for name in self.names_in_}

    def _checked(self, X: ArrayLike | Frame) -> Frame:
        named, formats = self._named and is_frame(X), self.formats()
        known: Readings = [*formats.values()]
        if named:
            known = {plan.name: formats[plan.name] for plan in self.columns_} or None
        frame = frame_of(X, readings=known)
        if not named:
            if len(frame) != self.n_features_in_:
                count = self.n_features_in_
                raise ValueError(
                    f"X has {len(frame)} features, but PrepareTable is expecting {count} features as input."
                )
            frame = dict(zip(self.names_in_, frame.values(), strict=True))
        lacking = [plan.name for plan in self.columns_ if plan.name not in frame]
        if lacking:
            shown = ", ".join(map(repr, lacking[:8])) + (
                f" and {len(lacking) - 8} more" if len(lacking) > 8 else ""
            )
            raise ValueError(
                f"the new rows lack the column{'s' * (len(lacking) > 1)} {shown} of the training rows: add "
                f"{'them' if len(lacking) > 1 else 'it'}."
            )
        return frame | {plan.name: plan.taking(frame[plan.name]) for plan in self.columns_}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _print_of(column: Column) -> bytes:
    """Equal for equal columns."""
    if column.kind in ("text", "other"):
        return repr(column.values.tolist()).encode()
    return column.kind.encode() + column.values.tobytes()
