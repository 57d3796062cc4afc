"""A run as data: `result.json` (settings, versions, figures) and `predictions.csv` (every test row)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ...._base.versions import versions
from ...curve.job import ScaledCurve
from ...report import document
from ..auto import NAME as AUTO
from ..job import PredictionRun
from ..network import HypotheticalNetwork
from ..reading.data import LabeledData
from ..reading.spreadsheet import as_csv
from ..scores import confidence
from .verdict import verdict


def result_json(run: PredictionRun, options: dict[str, object], grown: ScaledCurve | None = None) -> str:
    """`options` are the command's own, as typed or by default; everything derived from them stands beside."""
    figures = {
        "data": {
            "name": run.data.name,
            "task": run.data.task,
            "target": run.data.target,
            "classes": list(run.data.classes),
            "features": run.split.x.shape[1],
            "training_rows": len(run.split.x),
            "test_rows": len(run.split.x_new),
            "input_scaling": run.split.input_scaling,
            "target_scaling": target_scaling(run.data),
        },
        "settings": options,
        "network": {**_network_fields(run.network), "width": "infinite"},
        "versions": versions(),
        "figures": {
            answer.name: {**answer.figures, "seconds": answer.seconds, **answer.details}
            for answer in run.answers
        },
        "finite_network": {
            answer.name: {
                **answer.figures,
                "seconds": answer.seconds,
                "correction": answer.correction,
                "distance_from_trained": answer.distance,
            }
            for answer in run.finite
        },
        "regime": run.regime,
        "along_training": run.curve,
        "learning_curve": None if grown is None else grown.fields(),
        "columns": [
            {
                "column": each.column,
                "importance": each.cost.value,
                "standard_error": each.cost.sem,
                "matters": each.matters,
            }
            for each in (run.auto.importance if run.auto else ())
        ],
        "leaks": [*run.leaks],
        "warnings": [leak.warning(run.data) for leak in run.leaks],
        "preparation": [*run.data.remarks],
        "verdict": verdict(run),
        "notes": [*run.data.notes, *run.split.notes, *run.notes],
    }
    return document(figures)


def predictions_csv(run: PredictionRun) -> str:
    """One line per test row: its number (in a spreadsheet, or from 0), the truth, and each method's prediction.

    Beside each prediction stands its spread.

    Regression: the predictive standard deviation. Classification: the probability of the predicted class.
    """
    spread = "probability" if run.data.classes else "std"
    columns: dict[str, Any] = {
        "row": _numbers(run.data)[run.split.rows],
        "true": _named(run.split.truth, run.data),
    }
    for answer in run.answers:
        if answer.log_probs is not None:
            columns[answer.name] = _named(answer.label, run.data)
            columns[f"{answer.name}_{spread}"] = confidence(answer.log_probs)
            if answer.name == AUTO:
                for c, name in enumerate(run.data.classes):
                    columns[f"{AUTO}_p({name})"] = np.exp(answer.log_probs[:, c])
        else:
            columns[answer.name] = answer.mean[:, 0]
            columns[f"{answer.name}_{spread}"] = (
                [""] * len(run.split.truth) if answer.std is None else answer.std
            )
            if answer.name == AUTO and answer.interval is not None:
                columns[f"{answer.name}_low"], columns[f"{answer.name}_high"] = answer.interval.T
    for one in run.finite:
        columns[f"finite {one.name}"] = (
            _named(one.mean.argmax(axis=1), run.data) if run.data.classes else one.mean[:, 0]
        )
    return as_csv(columns)


def _numbers(data: LabeledData) -> np.ndarray:
    """(n,) of the rows: as a spreadsheet counts them, or from 0."""
    return np.arange(len(data.x)) if data.numbers is None else data.numbers


def _named(values: np.ndarray, data: LabeledData) -> np.ndarray:
    return np.array(data.classes)[values] if data.classes else values


def _network_fields(network: HypotheticalNetwork) -> dict[str, object]:
    fields = {field.name: getattr(network, field.name) for field in dataclasses.fields(network)}
    finite = dataclasses.asdict(network.finite) if network.finite else None
    return {**fields, "algorithm": repr(network.algorithm), "finite": finite}


def target_scaling(data: LabeledData) -> str:
    kind = "one-hot, centered by class" if data.classes else "centered"
    return f"{kind}, divided by one standard deviation (training rows); undone in every figure"
