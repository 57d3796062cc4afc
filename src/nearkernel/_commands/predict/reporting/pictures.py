"""Pictures of an answer as SVG text, to be set into the report."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imsave

from .... import _look
from ...._look import Html
from ...._look.drawing import BLUE, GRAY, GREEN, INK, ORANGE, svg
from .. import scores
from ..early import TrainingCurve
from .answers import Answer

COLORS = {"Auto": GREEN, "NNGP": BLUE, "NTK": ORANGE, "Linear": GRAY}
SHOWN = ("Auto", "NNGP", "NTK")  # in pictures
_MOST_POINTS = 500  # above, a scatter is stored as pixels
_MOST_NUMBERS = 12  # classes up to which a confusion matrix shows its counts
_MOST_LABELS = 40  # ... and its labels
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw(name: str, size: tuple[float, float], paint: Callable[..., None], *args: Any) -> Html:
    """SVG of a figure of `size` inches, painted by `paint(figure, *args)`; `name` keeps ids apart on one page."""
    return _look.inline(svg(size, paint, *args), name)


def predicted_against_true(
    figure: Figure, answer: Answer, truth: np.ndarray, limits: tuple[float, float]
) -> None:
    """One point per row, with its 90 % interval."""
    axes, mean = figure.subplots(), answer.mean[:, 0]
    axes.plot(limits, limits, color=INK, alpha=0.4, lw=1)
    look: dict[str, Any] = {
        "color": COLORS[answer.name],
        "alpha": 0.6,
        "rasterized": len(truth) > _MOST_POINTS,
    }
    if answer.interval is not None:
        axes.vlines(truth, *answer.interval.T, lw=0.7, **look)
    axes.plot(truth, mean, "o", ms=3, **look)
    axes.set(title=answer.name, xlabel="true", ylabel="predicted", xlim=limits, ylim=limits)
    axes.set_aspect("equal")
    axes.locator_params(nbins=5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: short(value))


def confusion(figure: Figure, answer: Answer, truth: np.ndarray, classes: Sequence[str]) -> None:
    """Counts of true class (down) by predicted class (across); color is the share of the row."""
    axes = figure.subplots()
    axes.grid(False)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (truth, answer.label), 1)
    _cells(axes, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), COLORS[answer.name])
    if len(classes) <= _MOST_NUMBERS:
        for i, j in zip(*np.nonzero(counts), strict=True):
            axes.text(j + 0.5, i + 0.5, str(counts[i, j]), ha="center", va="center", fontsize=9)
    axes.set(
        title=answer.name, xlabel="predicted", ylabel="true", xlim=(0, len(classes)), ylim=(len(classes), 0)
    )
    axes.set_aspect("equal")
    middle = np.arange(len(classes)) + 0.5
    names = list(classes) if len(classes) <= _MOST_LABELS else [""] * len(classes)
    tilted = max(map(len, names)) > 3
    axes.set_xticks(middle, names, rotation=45 if tilted else 0, ha="right" if tilted else "center")
    axes.set_yticks(middle, names)
    axes.tick_params(length=0)


def _cells(axes: Axes, share: np.ndarray, color: str) -> None:
    """A heat map whose empty cells show the page, so that it suits light and dark."""
    faces = np.concatenate(
        [np.broadcast_to(to_rgb(color), (*share.shape, 3)), 0.75 * share[..., None]], axis=-1
    )
    axes.pcolormesh(faces, edgecolors=(0.5, 0.5, 0.5, 0.15), linewidth=0.5)


def reliability(figure: Figure, answers: Sequence[Answer], truth: np.ndarray) -> None:
    """Share of right answers against confidence, with its standard error; a larger point holds more rows."""
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.4, lw=1)
    for answer in answers:
        assert answer.log_probs is not None
        confidence, accuracy, count = scores.reliability(
            scores.confidence(answer.log_probs), answer.label == truth
        )
        sem = scores.share_sem(accuracy, count)
        bars = np.clip([accuracy - sem, accuracy + sem], 0, 1)
        color = COLORS[answer.name]
        axes.vlines(confidence, *bars, color=color, lw=1, alpha=0.5)
        axes.scatter(confidence, accuracy, 12 + 200 * count / len(truth), color, alpha=0.75, lw=0)
        axes.scatter([], [], 25, color, lw=0, label=answer.name)  # for the legend, all of one size
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.03), ylim=(0, 1.03))
    figure.legend(loc="outside lower center", ncols=3)  # points may be anywhere inside


def coverage(figure: Figure, answers: Sequence[Answer], truth: np.ndarray) -> None:
    """Share of true values inside the predicted interval, against the interval's probability."""
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=INK, alpha=0.4, lw=1)
    for answer in answers:
        if answer.intervals is not None:
            inside = scores.coverage(answer.intervals, truth)
            axes.plot(scores.LEVELS, inside, "o-", ms=4, color=COLORS[answer.name], label=answer.name)
    axes.set(
        xlabel="probability of the interval",
        ylabel="fraction of true values inside",
        xlim=(0, 1),
        ylim=(0, 1.03),
    )
    figure.legend(loc="outside lower center", ncols=3)  # curves may be anywhere inside


def along_training(
    figure: Figure, curve: TrainingCurve, answers: Sequence[Answer], key: str, label: str
) -> None:
    """Leave-one-out error of the trained network over training; the best time; what methods reached on test rows."""
    axes = figure.subplots()
    percent = label.endswith("(%)")
    unit = 100 if percent else 1
    axes.plot(curve.at, unit * curve.error, color=COLORS["NTK"], lw=2, label="NTK, leave-one-out")
    if curve.early:
        best = curve.at[curve.best], unit * curve.error[curve.best]
        axes.plot(*best, "o", color=COLORS["NTK"], label="best time")
    for answer in answers:
        reached = answer.figures[key]
        if isinstance(reached, scores.Score):
            name = f"{answer.name}, test rows"
            axes.axhline(unit * reached.value, color=COLORS[answer.name], ls="--", lw=1.2, label=name)
    axes.set(xscale="log", xlabel=curve.axis, ylabel=label)
    axes.xaxis.set_major_formatter(lambda value, _: _power_of_ten(value))
    axes.xaxis.set_minor_formatter(lambda *_: "")
    axes.set_ylim(bottom=0 if percent else None)
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    figure.legend(loc="outside lower center", ncols=2)  # lines may be anywhere inside


def short(value: float) -> str:
    """A number at an axis: 250k, 1.4M, 0.25."""
    for unit, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1000 * unit and abs(value) >= 1e4:
            return f"{value / unit:.4g}{sign}"
    return f"{value:.4g}"


def _power_of_ten(value: float) -> str:
    """As text: Matplotlib's own formulas take longer than the rest of the picture."""
    return "10" + str(round(math.log10(value))).translate(_RAISED)


def thumbnail(picture: np.ndarray) -> str:
    """A gray picture (h, w), or one of several channels (h, w, c), as a PNG in a data address; three are colors."""
    file = io.BytesIO()
    if picture.ndim == 3:
        low, high = picture.min(), picture.max()
        scaled = (picture - low) / (high - low if high > low else 1.0)
        picture = scaled if picture.shape[2] == 3 else scaled.mean(axis=2)
    imsave(file, picture, cmap="gray", format="png")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
