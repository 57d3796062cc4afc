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
from ..reading.prepare import Split
from ..reading.spreadsheet import as_csv
from ..scores import confidence
from .verdict import verdict


def result_json(
    data: LabeledData,
    split: Split,
    network: HypotheticalNetwork,
    result: PredictionRun,
    options: dict[str, Any],
    grown: ScaledCurve | None = None,
) -> str:
    """`options` are the command's own, as typed or by default; everything derived from them stands beside."""
    figures = {
        "data": {
            "name": data.name,
            "task": data.task,
            "target": data.target,
            "classes": list(data.classes),
            "features": split.x.shape[1],
            "training_rows": len(split.x),
            "test_rows": len(split.x_new),
            "input_scaling": split.input_scaling,
            "target_scaling": target_scaling(data),
        },
        "settings": options,
        "network": {**_network_fields(network), "width": "infinite"},
        "versions": versions(),
        "figures": {
            answer.name: {**answer.figures, "seconds": answer.seconds, **answer.details}
            for answer in result.answers
        },
        "finite_network": {
            answer.name: {
                **answer.figures,
                "seconds": answer.seconds,
                "correction": answer.correction,
                "distance_from_trained": answer.distance,
            }
            for answer in result.finite
        },
        "regime": result.regime,
        "along_training": result.curve,
        "learning_curve": None if grown is None else grown.fields(),
        "columns": [
            {
                "column": each.column,
                "importance": each.cost.value,
                "standard_error": each.cost.sem,
                "matters": each.matters,
            }
            for each in (result.auto.importance if result.auto else ())
        ],
        "leaks": [*result.leaks],
        "warnings": [leak.warning(data) for leak in result.leaks],
        "preparation": [*data.remarks],
        "verdict": verdict(data, result),
        "notes": [*data.notes, *split.notes, *result.notes],
    }
    return document(figures)


def predictions_csv(data: LabeledData, split: Split, result: PredictionRun) -> str:
    """One line per test row: its number (in a spreadsheet, or from 0), the truth, and each method's prediction.

    Beside each prediction stands its spread.

    Regression: the predictive standard deviation. Classification: the probability of the predicted class.
    """
    spread = "probability" if data.classes else "std"
    columns: dict[str, Any] = {"row": _numbers(data)[split.rows], "true": _named(split.truth, data)}
    for answer in result.answers:
        if answer.log_probs is not None:
            columns[answer.name] = _named(answer.label, data)
            columns[f"{answer.name}_{spread}"] = confidence(answer.log_probs)
            if answer.name == AUTO:
                for c, name in enumerate(data.classes):
                    columns[f"{AUTO}_p({name})"] = np.exp(answer.log_probs[:, c])
        else:
            columns[answer.name] = answer.mean[:, 0]
            columns[f"{answer.name}_{spread}"] = [""] * len(split.truth) if answer.std is None else answer.std
            if answer.name == AUTO and answer.interval is not None:
                columns[f"{answer.name}_low"], columns[f"{answer.name}_high"] = answer.interval.T
    for one in result.finite:
        columns[f"finite {one.name}"] = (
            _named(one.mean.argmax(axis=1), data) if data.classes else one.mean[:, 0]
        )
    return as_csv(columns)


def _numbers(data: LabeledData) -> np.ndarray:
    """(n,) of the rows: as a spreadsheet counts them, or from 0."""
    return np.arange(len(data.x)) if data.numbers is None else data.numbers


def _named(values: np.ndarray, data: LabeledData) -> np.ndarray:
    return np.array(data.classes)[values] if data.classes else values


def _network_fields(network: HypotheticalNetwork) -> dict[str, Any]:
    fields = {field.name: getattr(network, field.name) for field in dataclasses.fields(network)}
    finite = dataclasses.asdict(network.finite) if network.finite else None
    return {**fields, "algorithm": repr(network.algorithm), "finite": finite}


def target_scaling(data: LabeledData) -> str:
    kind = "one-hot, centered by class" if data.classes else "centered"
    return f"{kind}, divided by one standard deviation (training rows); undone in every figure"
