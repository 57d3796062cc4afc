"""The figures people read: their order, titles, formats and meaning, for the terminal and the report alike."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from ..finite import FiniteAnswer
from ..reporting.answers import Answer
from ..scores import BINS, Score
from .data import LabeledData

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


def plain(figure: Score | float | None) -> str:
    """Value ± standard error, with as many digits as the error justifies."""
    if figure is None:
        return UNDEFINED
    if not isinstance(figure, Score):
        return f"{figure:.3f}"
    if not figure.sem > 0:
        return for_people(figure.value)
    size = math.floor(math.log10(figure.sem))
    digits = max(0, 1 - size)
    value, sem = (
        round(each, 1 - size) for each in (figure.value, figure.sem)
    )  # 1,680,000, and not 1,683,912
    return f"{value:,.{digits}f} ± {sem:,.{digits}f}"


def _mean(figure: Score | float | None) -> str:
    """The value alone."""
    if not isinstance(figure, Score):
        return plain(figure)
    return f"{figure.value:.3f}" if abs(figure.value) < 10 else for_people(figure.value)


def for_people(value: float, digits: int = 3) -> str:
    """A number with as many digits as are read, and commas between thousands: 1,680,000, 0.0123."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if size < -4:
        return f"{value:.{digits - 1}e}"
    return f"{round(value, digits - 1 - size):,.{max(0, digits - 1 - size)}f}"


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
            "The fraction of test rows given the wrong class, ± one standard error.",
            _percent,
        ),
        Column(
            "balanced_accuracy",
            "balanced",
            "Balanced accuracy: the fraction of rows found, averaged over classes. Guessing gives 1 / classes.",
            _percent,
        ),
        Column(
            "auc",
            "AUC",
            "The probability that a row of a class is ranked above one of another class: 0.5 is guessing, 1 perfect.",
            plain,
        ),
        Column(
            "log_loss",
            "log-loss",
            "Mean negative log of the probability given to the true class: 0 is perfect, confident mistakes cost most.",
            _mean,
        ),
        Column(
            "calibration_error",
            "calibration",
            f"Calibration error: the difference between confidence and accuracy, over {BINS} bins of "
            "confidence. 0 is perfectly calibrated.",
            _percent,
        ),
    ),
    "regression": (
        Column(
            "r2",
            "R²",
            "The fraction of the target's variance explained; 0 is no better than the mean.",
            plain,
        ),
        Column("mae", "MAE", "Mean absolute error on the test rows, in units of the target.", plain),
        Column(
            "rmse", "test RMSE", "Root mean squared error on the test rows, in units of the target.", plain
        ),
        Column(
            "coverage",
            "in 90 %",
            "The fraction of test rows inside their 90 % interval: it should be 90 %. The interval of Auto is made of "
            "quantiles of leave-one-out errors; the others are Gaussian.",
            _percent,
        ),
    ),
}


def loss_of(data: LabeledData) -> str:
    """What happens to the score when something is taken away."""
    return "the log-loss rises" if data.classes else "R² falls"


HEADLINE = {"classification": "error", "regression": "rmse"}


def shown(answer: Answer | FiniteAnswer, key: str, task: str) -> str:
    """One figure as the table shows it."""
    return next(column.show(answer.figures[key]) for column in COLUMNS[task] if column.key == key)
