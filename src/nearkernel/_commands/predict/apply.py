"""`nearkernel apply`: new rows through a saved model, into one file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.files import write_alone
from ..._base.npz import npz_arrays
from ..._saved.file import read_model
from ...estimators import AutoClassifier, AutoRegressor, PrepareTable
from ...estimators.tables.reading import Reading
from ..streams import console, print_json, progress
from . import scores
from .reading.columns import for_people
from .reading.kept import ROW, beside, ids
from .reading.spreadsheet import as_csv, distinct
from .reading.tables import Table, read_table
from .reporting.output import written_to


def apply_and_write(
    file: Path, source: str, out: Path, coverage: float, strict: bool, as_json: bool, keep: Sequence[str] = ()
) -> None:
    """The whole command; writes nothing unless everything went well."""
    with progress() as shown:
        shown.say("reading the model")
        model, about = read_model(file)
        if not hasattr(model, "predict"):
            raise ValueError(f"{file} contains {type(model).__name__}, which cannot predict.")
        shown.say("reading the rows")
        rows = _read(Path(source), about.get("target"), _how(model, about))
        inputs, surprises = _inputs(model, rows, source)
        if strict and surprises:
            raise ValueError(f"--strict: {Path(source).name}: {'; '.join(surprises)}.")
        shown.say("predicting")
        columns = _predictions(model, inputs, about, coverage)
        found = _score(rows, columns, about)
        columns = {**_beside(model, rows, Path(source), about, keep, list(columns)), **columns}
        text = as_csv(columns)
        with written_to("--out", out):
            write_alone(out, text.encode("utf-8", "replace"))
    _show(out, columns, found, surprises, as_json)


def _how(model: Any, about: dict) -> Callable[[str], Reading | None]:
    """How a column of new rows is written: as in the training rows, where the model file says it."""
    prepare, target = _preparation(model), about.get("target")
    known = {} if prepare is None else prepare.formats()
    if target is not None:
        known[target] = _reading(about.get("target_reading"))
    # Without a preparation nobody knows whether 1,500 is a thousand: only plain numbers are read.
    other = Reading("number") if prepare is None else None
    return lambda name: known.get(name, other)


def _reading(fields: object) -> Reading | None:
    """As a model file says it; None for files that do not."""
    names = {field.name for field in dataclasses.fields(Reading)}
    if not isinstance(fields, dict) or set(fields) != names:
        return None
    return Reading(**fields)


def _preparation(model: Any) -> PrepareTable | None:
    return model[0] if hasattr(model, "steps") and isinstance(model[0], PrepareTable) else None


def _read(path: Path, target: str | None, how: Callable[[str], Reading | None]) -> Table | np.ndarray:
    if path.suffix.lower() == ".npz":
        x = npz_arrays(path, path.name, {"x": ""})["x"]
        if x.ndim < 2 or x.dtype.kind not in "biuf" or 0 in x.shape:
            raise ValueError(f"array 'x' of {path.name} must hold numbers (n, d); got {x.dtype} {x.shape}.")
        return x.reshape(len(x), -1).astype(np.float64)
    table = read_table(path, None, how=how)
    known = table.frame.pop(target, None) if target is not None and len(table.frame) > 1 else None
    return Table(table.frame, known, table.remarks)


def _inputs(model: Any, rows: Table | np.ndarray, source: str) -> tuple[Any, list[str]]:
    """Inputs as the model takes them, and what is new about them."""
    prepare = _preparation(model)
    name = Path(source).name
    if prepare is None:
        return _numbers(model, rows, name), []
    frame = rows.frame if isinstance(rows, Table) else rows
    try:
        return frame, prepare.surprises(frame)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _numbers(model: Any, rows: Table | np.ndarray, name: str) -> np.ndarray:
    """A model without its own preparation takes the columns in their order."""
    if isinstance(rows, Table):
        wrong = [key for key, column in rows.frame.items() if column.unread]
        if wrong:
            raise ValueError(
                f"{name}: this model takes numbers, but the column {wrong[0]!r} does not contain numbers."
            )
        rows = np.stack([column.values for column in rows.frame.values()], axis=1)
    if rows.shape[1] != model.n_features_in_:
        raise ValueError(f"{name} has {rows.shape[1]} columns; the model takes {model.n_features_in_}.")
    return rows


def _predictions(model: Any, inputs: Any, about: dict, coverage: float) -> dict[str, np.ndarray]:
    """The predictions under the name of the target, first; beside them bounds or probabilities, whose names make way:
    those of a target `low` are `low (2)` and `high`."""
    name = about.get("target", "prediction")
    last, earlier = (model[-1], model[:-1]) if hasattr(model, "steps") else (model, None)
    x = inputs if earlier is None or not len(earlier) else earlier.transform(inputs)
    beside: dict[str, np.ndarray] = {}
    if isinstance(last, AutoClassifier):
        probabilities = last.predict_proba(x)
        found, beside = last.classes_of(probabilities), _by_class(last, probabilities)
    elif isinstance(last, AutoRegressor):
        found, _, interval = last.law(x, coverage)
        beside = {"low": interval[:, 0], "high": interval[:, 1]} if found.ndim == 1 else {}
    else:
        found = last.predict(x)
        beside = _by_class(last, last.predict_proba(x)) if hasattr(last, "predict_proba") else {}
    if found.ndim > 1:
        return {f"{name}_{i}": each for i, each in enumerate(found.T)}
    return dict(zip(distinct([name, *beside]), [found, *beside.values()], strict=True))


def _by_class(model: Any, probabilities: np.ndarray) -> dict[str, np.ndarray]:
    return {f"p({label})": each for label, each in zip(model.classes_, probabilities.T, strict=True)}


def _score(rows: Table | np.ndarray, columns: dict[str, np.ndarray], about: dict) -> str:
    """How good the predictions are, if the truth is in the file."""
    if not isinstance(rows, Table) or rows.target is None or not about:
        return ""
    known = ~rows.target.missing
    found, truth = columns[about["target"]][known], rows.target.values[known]
    if not len(truth):
        return ""
    if about["task"] == "classification":
        if rows.target.kind == "flag":
            truth = truth.astype(bool)
        elif rows.target.kind == "number" and np.all(truth == np.rint(truth)):
            truth = truth.astype(np.int64)
        wrong = np.mean(found.astype(str) != truth.astype(str))
        return (
            f"errs on {100 * wrong:.1f} % of the {len(truth):,} rows whose {about['target']} is in the file"
        )
    if rows.target.kind != "number":
        return ""
    r2 = scores.r2(found, truth)
    mae = for_people(float(np.mean(np.abs(found - truth))))
    explained = "" if r2 is None else f", R2 {r2:.3f}"
    return f"misses {about['target']} by {mae} on average{explained}, on {len(truth):,} rows that have it"


def _beside(
    model: Any, rows: Table | np.ndarray, path: Path, about: dict, keep: Sequence[str], taken: Sequence[str]
) -> dict[str, Any]:
    """What tells the rows apart, to be written before the predictions: their numbers, ids, and what users ask for."""
    if not isinstance(rows, Table):
        if keep:
            raise ValueError(f"--keep {keep[0]} is for tables; {path.name} holds arrays.")
        return {ROW: np.arange(len(rows))}
    known = about.get("ids")
    if known is None:  # a model that was saved in Python
        prepare = model[0] if hasattr(model, "steps") else None
        used = [plan.name for plan in prepare.columns_] if isinstance(prepare, PrepareTable) else rows.frame
        known = ids(rows.frame, list(used), least=2)
    return beside(path, known, keep, taken)


def _show(out: Path, columns: dict[str, np.ndarray], found: str, surprises: list[str], as_json: bool) -> None:
    count = len(next(iter(columns.values())))
    if as_json:
        print_json(
            {"rows": count, "columns": list(columns), "file": str(out), "score": found, "notes": surprises}
        )
        return
    page = console()
    page.print(f"{count:,} rows predicted: {', '.join(columns)}")
    if found:
        page.print(f"The model {found}.")
    for line in surprises:
        page.print(f"Note: {line}.")
    page.print(f"Wrote {out}")
