"""Rows of the data as the network takes them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..predict.reading.data import load
from ..predict.reading.prepare import shuffled
from .options import Options


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows to train on and rows to predict; targets are one-hot for classes."""

    name: str
    x: np.ndarray
    y: np.ndarray
    x_new: np.ndarray
    y_new: np.ndarray
    labels: np.ndarray | None  # of the new rows
    classes: tuple[str, ...]
    notes: tuple[str, ...]


def read_rows(options: Options) -> Rows:
    data = load(options.data, options.target, "auto", options.drop)
    tests = min(options.new, len(data.x) // 2)
    kept = min(options.train, len(data.x) - tests) + tests
    train, new = shuffled(data, kept, tests, options.seed)
    x = data.x
    if options.standardize:
        spread = x[train].std(axis=0) if data.image_shape is None else x[train].std()
        x = (x - x[train].mean(axis=0)) / np.where(spread == 0, 1.0, spread)
    if options.in_shape is not None and math.prod(options.in_shape) != x.shape[1]:
        raise ValueError(
            f"--shape {options.shape} has {math.prod(options.in_shape)} numbers; a row of {data.name} has {x.shape[1]}."
        )
    x = x.reshape(len(x), *(options.in_shape or x.shape[1:]))
    if options.loss == "cross_entropy" and not data.classes:
        raise ValueError(f"--loss cross_entropy needs classes; {data.target!r} has real values.")
    labels = data.y[new].astype(int) if data.classes else None
    y = np.eye(len(data.classes))[data.y.astype(int)] if data.classes else data.y[:, None].astype(float)
    return Rows(data.name, x[train], y[train], x[new], y[new], labels, data.classes, data.notes)
