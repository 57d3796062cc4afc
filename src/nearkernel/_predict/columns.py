"""The figures people read: their order, titles, formats and meaning, for the terminal and the report alike."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from .finite import FiniteAnswer
from .job import Answer
from .scores import BINS, Score

UNDEFINED = "-"


@dataclasses.dataclass(frozen=True)
class Column:
    key: str
    title: str
    meaning: str
    show: Callable[[Score | float | None], str]


def cells(answer: Answer | FiniteAnswer, task: str, trained: bool = False) -> list[str]:
    """One row of the table: name, figures, distance from the trained network if there is one, seconds."""
    distance = getattr(answer, "distance", None)
    return [
        answer.name,
        *(column.show(answer.figures[column.key]) for column in COLUMNS[task]),
        *([UNDEFINED if distance is None else f"{distance:.2g}"] if trained else []),
        f"{answer.seconds:.2f}",
    ]


def titles(task: str, trained: bool = False) -> list[str]:
    return [
        "method",
        *(column.title for column in COLUMNS[task]),
        *(["from trained"] if trained else []),
        "seconds",
    ]


def _plain(figure: Score | float | None) -> str:
    """Value ± standard error, with as many digits as the error justifies."""
    if figure is None:
        return UNDEFINED
    if not isinstance(figure, Score):
        return f"{figure:.3f}"
    if not figure.sem > 0:
        return f"{figure.value:.4g}"
    digits = max(0, 1 - math.floor(math.log10(figure.sem)))
    return f"{figure.value:.{digits}f} ± {figure.sem:.{digits}f}"


def _percent(figure: Score | float | None) -> str:
    if figure is None:
        return UNDEFINED
    if not isinstance(figure, Score):
        return f"{100 * figure:.1f} %"
    return f"{100 * figure.value:.1f} ± {100 * figure.sem:.1f} %"


COLUMNS = {
    "classification": (
        Column(
            "error",
            "test error",
            "The share of test rows given the wrong class, ± one standard error.",
            _percent,
        ),
        Column(
            "log_likelihood",
            "log-likelihood",
            "Mean log of the probability given to the true class: 0 is perfect, and confident mistakes cost most.",
            _plain,
        ),
        Column(
            "calibration_error",
            "calibration error",
            f"How far confidence and share of right answers lie apart, over {BINS} bins of confidence: 0 is honest.",
            _percent,
        ),
    ),
    "regression": (
        Column(
            "rmse", "test RMSE", "Root mean squared error on the test rows, in units of the target.", _plain
        ),
        Column(
            "r2",
            "R²",
            "The share of the target's variance explained; 0 is no better than the mean.",
            _plain,
        ),
        Column(
            "log_likelihood",
            "log-likelihood",
            "Mean log density of the true value under the predicted bell curve: larger is better.",
            _plain,
        ),
    ),
}
