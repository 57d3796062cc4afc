"""What the user asked for, checked; rows of the data as the network takes them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..predict.reading.data import load
from ..predict.reading.prepare import shuffled


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of `nearkernel inspect`."""

    network: str
    data: str
    target: str | None
    drop: tuple[str, ...]
    shape: str | None
    trainable: str | None
    standardize: bool
    train: int
    new: int
    loss: str
    lr: float | None
    steps: int
    pieces: int
    seed: int

    def __post_init__(self) -> None:
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ValueError(f"--lr must be positive and finite; got {self.lr}.")
        self.in_shape  # noqa: B018  refused before the data are read

    @property
    def in_shape(self) -> tuple[int, ...] | None:
        if self.shape is None:
            return None
        parts = self.shape.replace("x", ",").split(",")
        if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
            raise ValueError(f"--shape must be numbers such as 1,8,8; got {self.shape!r}.")
        return tuple(map(int, parts))

    def rows(self) -> Rows:
        data = load(self.data, self.target, "auto", self.drop)
        tests = min(self.new, len(data.x) // 2)
        kept = min(self.train, len(data.x) - tests) + tests
        train, new = shuffled(data, kept, tests, self.seed)
        x = data.x
        if self.standardize:
            spread = x[train].std(axis=0) if data.image_shape is None else x[train].std()
            x = (x - x[train].mean(axis=0)) / np.where(spread == 0, 1.0, spread)
        if self.in_shape is not None and math.prod(self.in_shape) != x.shape[1]:
            raise ValueError(
                f"--shape {self.shape} has {math.prod(self.in_shape)} numbers; a row of {data.name} has {x.shape[1]}."
            )
        x = x.reshape(len(x), *(self.in_shape or x.shape[1:]))
        if self.loss == "cross_entropy" and not data.classes:
            raise ValueError(f"--loss cross_entropy needs classes; {data.target!r} has real values.")
        labels = data.y[new].astype(int) if data.classes else None
        y = np.eye(len(data.classes))[data.y.astype(int)] if data.classes else data.y[:, None].astype(float)
        return Rows(data.name, x[train], y[train], x[new], y[new], labels, data.classes, data.notes)


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
