"""`report.html`: one file with its pictures and style inside, readable offline, on paper and on a phone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .... import _look
from ...._base.printable import escape
from ...._look import Html
from ...._look.drawing import SERIES
from ...curve.job import ScaledCurve
from ...curve.picture import SIZE
from ...curve.picture import draw as draw_curve
from ...report import flags, page
from ..auto import Chosen
from ..finite import FiniteAnswer
from ..job import PredictionRun
from ..reading.columns import COLUMNS, HEADLINE, cells, loss_of, plain, titles
from ..reading.data import LabeledData
from ..reading.tables import listed
from ..scores import confidence
from . import pictures
from .answers import Answer
from .summary import target_scaling
from .verdict import headline, rows_in_words, verdict

_COLUMNS = 15  # shown, of those that matter
UNCERTAIN = 12  # pictures shown, of the rows that the trained network is least sure of
_LARGE, _SMALL = (4.6, 3.7), (3.3, 3.1)  # inches, alone or three abreast


def report_html(
    run: PredictionRun,
    options: Mapping[str, Any],
    grown: ScaledCurve | None = None,
    next_commands: Sequence[str] = (),
) -> str:
    """The whole page."""
    asked = {
        **options,
        "weight_var": run.network.weight_var,
        "algorithm": f"{options['algorithm']} ({run.network.training})",
    }
    del asked["data"]
    given = {name: value for name, value in asked.items() if value is not False}
    prepared = {"inputs": run.split.input_scaling, "target": target_scaling(run.data)}
    remarks = [*run.split.notes, *run.notes]
    if remarks:
        prepared["remarks"] = "; ".join(remarks)
    return page(
        f"nearkernel: {run.data.name}",
        f"nearkernel predict · {run.data.name}",
        headline(run),
        f"{verdict(run)} {_lead(run)}",
        *(_look.warning(leak.warning(run.data)) for leak in run.leaks),
        _table(run),
        *_matters(run),
        *_more_rows(grown),
        _look.section("What to do next", _look.code("\n".join(next_commands))),
        _look.section("Pictures", _look.pictures(*_figures(run))),
        _look.section("Rows of the table", _look.definitions(_methods(run))),
        _look.section(
            "Columns of the table",
            _look.definitions({column.title: column.meaning for column in COLUMNS[run.data.task]}),
        ),
        _look.section("How the data were prepared", _look.definitions(prepared), *_repairs(run.data)),
        settings={"data": options["data"], **flags(given, None, ())},
    )


def _more_rows(grown: ScaledCurve | None) -> Iterator[Html]:
    """Whether more rows would help."""
    if grown is None:
        return
    yield _look.section(
        "Would more rows help?",
        _look.paragraphs(grown.sentence),
        _look.pictures(
            _look.figure(
                "The error over the number of rows",
                f"NTK, {grown.training}; predicted from one kernel matrix of the rows to learn from.",
                pictures.draw("curve", SIZE, draw_curve, grown),
            )
        ),
        _look.paragraphs(*grown.remarks),
    )


def _lead(run: PredictionRun) -> str:
    trained = run.network.finite is not None and run.network.finite.train
    what = "Only the last row of the table was trained." if trained else "No network was trained."
    return (
        f"{run.data.name}, column {run.data.target}: {rows_in_words(run.split)}. Everything below was chosen on the "
        f"rows to learn from. NNGP and NTK are infinitely wide networks of {run.network.words}, by exact theory. {what}"
    )


def _matters(run: PredictionRun) -> Iterator[Html]:
    """Which columns matter."""
    if run.auto is None or not run.auto.importance:
        return
    text = (
        f"Importance: how much {loss_of(run.data)} when a column is shuffled, which removes its information, ± one "
        "standard error. All rows take part: five times, four fifths are learned from and the others tried."
    )
    head, weights = ["column", "importance"], _metric_weights(run.auto)
    if weights:
        head.append("weight in the metric")
        text += " Weight: the weight of the column in the learned metric, relative to the largest."
    matter = [one for one in run.auto.importance if one.matters]
    rows = [
        [one.column, plain(one.cost), *([f"{weights[one.column]:.2f}"] if weights else [])]
        for one in matter[:_COLUMNS]
    ]
    more = len(matter) - len(rows)
    if more > 0:
        text += f" {more} columns of less importance are in result.json."
    others = [one.column for one in run.auto.importance if not one.matters]
    rest = f"Not beyond chance: {listed(others, quote=False, most=_COLUMNS)}." if others else ""
    shown = [_look.table(head, rows)] if rows else []
    yield _look.section("Which columns matter", _look.paragraphs(text), *shown, _look.paragraphs(rest))


def _metric_weights(auto: Chosen) -> dict[str, float]:
    """The weight of each column in the learned metric: the largest of those it became; empty without one."""
    prepare, model = auto.pipeline[0], auto.pipeline[-1]
    if model.column_weights_ is None:
        return {}
    sources = prepare.sources_()
    return {
        plan.name: float(model.column_weights_[sources == i].max()) for i, plan in enumerate(prepare.columns_)
    }


def _repairs(data: LabeledData) -> Iterator[Html]:
    """What was found in each column, and what was done."""
    if data.remarks:
        rows = [[remark.column, remark.found, remark.done] for remark in data.remarks]
        yield _look.table(["column", "found", "done"], rows, words=True)


def _table(run: PredictionRun) -> Html:
    trained = any(answer.distance is not None for answer in run.finite)
    everything: list[Answer | FiniteAnswer] = [*run.answers, *run.finite]
    rows = []
    for answer in everything:
        name, *figures = cells(answer, run.data.task, trained)
        color = pictures.COLORS.get(name)
        spot = _look.dot(SERIES.index(color) + 1) if color else ""
        rows.append([Html(f"{spot}{escape(name)}"), *figures])
    return _look.table(titles(run.data.task, trained), rows)


def _methods(run: PredictionRun) -> dict[str, str]:
    """What the rows of the table are."""
    here = {*(answer.name for answer in run.answers), *(answer.name for answer in run.finite)}
    return {name: text for name, text in _all_methods(run).items() if name in here}


def _all_methods(run: PredictionRun) -> dict[str, str]:
    noise = {answer.name: answer.details.get("noise") for answer in run.answers}
    auto = run.named("Auto").details
    kernels = "; ".join(f"{each['kernel']} ({each['weight']:.2f})" for each in auto["kernels"])
    logarithm = " It learned the logarithm of the target." if auto.get("target") == "log" else ""
    return {
        "Auto": "An average of kernel machines. The ridge of each and the weights of the average have the smallest "
        f"leave-one-out error on the training rows: {kernels}.{logarithm}",
        "NNGP": "The Bayesian posterior: random, infinitely wide networks, weighted by how well they "
        f"explain the training rows. The noise variance is {noise['NNGP']:.2g} times the target's, the most "
        "likely value given the training rows.",
        "NTK": f"The result of training: the mean output of infinitely wide networks after {run.network.training}, "
        "and its spread over random initializations. It assumes data without noise.",
        "Linear": "A linear baseline: Bayesian ridge regression on the same inputs. "
        f"The noise variance is {noise['Linear']:.2g} times the target's, chosen in the same way.",
        "Boosting": "Histogram gradient boosting of scikit-learn with default settings, for comparison.",
        "Majority": "The most frequent class of the training rows, for every row.",
        "Mean": "The mean of the training rows, for every row.",
        **_finite_methods(run),
    }


def _finite_methods(run: PredictionRun) -> dict[str, str]:
    """What the rows of the finite network are."""
    if run.network.finite is None:
        return {}
    net = f"One network of width {run.network.finite.width}, initialized with seed {run.network.finite.seed}"
    training = run.finite_training or run.network.training
    words = {
        "order 0": f"{net}, linearized, after {training}: no features are learned. Nothing is trained.",
        "order 1": "The same network with feature learning to first order.",
        "order 2": "The same network to second order.",
        "trained": f"The same network, actually trained by {training}. The column 'from trained' is the relative "
        "distance of each prediction from its outputs.",
    }
    return {answer.name: words[answer.name] for answer in run.finite}


def _figures(run: PredictionRun) -> Iterator[Html]:
    answers = [run.named(name) for name in pictures.SHOWN]
    truth = run.split.truth
    if run.data.classes:
        yield _look.figure(
            "Confusion matrices",
            "Rows are true classes, columns are predicted classes; the diagonal is correct.",
            *(
                pictures.draw(
                    f"confusion {answer.name}", _SMALL, pictures.confusion, answer, truth, run.data.classes
                )
                for answer in answers
            ),
        )
        yield _look.figure(
            "Calibration of probabilities",
            "On the diagonal, predictions made with 80\u00a0% confidence are right 80\u00a0% of the time. Below it the "
            "model is overconfident, above it underconfident. Larger points contain more rows.",
            pictures.draw("reliability", _LARGE, pictures.reliability, answers, truth),
        )
    else:
        values = np.concatenate([truth, *(answer.mean[:, 0] for answer in answers)])
        margin = 0.05 * np.ptp(values)
        limits = (values.min() - margin, values.max() + margin)
        yield _look.figure(
            f"Predicted and true {run.data.target}",
            "One point per test row, with its 90\u00a0% interval.",
            *(
                pictures.draw(
                    f"true {answer.name}", _SMALL, pictures.predicted_against_true, answer, truth, limits
                )
                for answer in answers
            ),
        )
        yield _look.figure(
            "Calibration of intervals",
            "On the diagonal, 80\u00a0% intervals contain 80\u00a0% of the true values. Below it they are too narrow. "
            "The intervals are those of the table: quantiles of leave-one-out errors for Auto, Gaussian for others. "
            "Those of the NTK include the randomness of the initialization only, not the noise of the data.",
            pictures.draw("coverage", _LARGE, pictures.coverage, answers, truth),
        )
    if run.curve is not None:
        error = HEADLINE[run.data.task]
        yield _look.figure(
            "When to stop training",
            "Leave-one-out error of the average trained network during training; no test rows are used. "
            + _sentence(run.curve.advice or "early stopping would not help beyond chance"),
            pictures.draw(
                "training",
                _LARGE,
                pictures.along_training,
                run.curve,
                answers,
                error,
                "error (%)" if run.data.classes else f"RMSE of {run.data.target}",
            ),
        )
    if run.data.image_shape and run.data.classes:
        yield _uncertain(run)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _uncertain(run: PredictionRun) -> Html:
    """The test pictures whose class the trained networks agree on least."""
    ntk = run.named("NTK")
    assert ntk.log_probs is not None and run.data.image_shape is not None
    sure = confidence(ntk.log_probs)
    wall = []
    for i in np.argsort(sure)[:UNCERTAIN]:
        answer, truth = run.data.classes[ntk.label[i]], run.data.classes[run.split.truth[i]]
        verdict = "right" if answer == truth else f"true {truth}"
        picture = pictures.thumbnail(run.data.x[run.split.rows[i]].reshape(run.data.image_shape))
        wall.append(
            f'<div><img src="{picture}" alt="test row {run.split.rows[i]}">'
            f"{escape(answer)}, {100 * sure[i]:.0f}\u00a0%<br>{escape(verdict)}</div>\n"
        )
    return _look.figure(
        "Rows on which trained networks disagree most",
        "The class that most of them predict, the fraction that predicts it, and whether it is correct.",
        Html(f'<div class="wall">\n{"".join(wall)}</div>'),
        wide=True,
    )
