"""The inputs that the network will see."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..predict.reading.data import load
from ..predict.reading.prepare import split
from .options import Options

_MOST_ROWS = 1000  # of the data, for the largest eigenvalue of their kernel matrix


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Rows (n, d) or None, how many features they have, words on where they come from, and their targets.

    Rows that are cut into tokens are `sequences` (n, tokens, d): learning rates are for the worst of all.
    """

    rows: np.ndarray | None
    in_dim: int
    name: str
    notes: tuple[str, ...]
    targets: np.ndarray | None = None  # (n, out)
    sequences: np.ndarray | None = None
    classes: bool = False  # whether targets are one column per class

    @property
    def examples(self) -> np.ndarray | None:
        """What networks are trained on."""
        return self.rows if self.sequences is None else self.sequences

    @property
    def size(self) -> float:
        """Mean square of a feature."""
        return 1.0 if self.examples is None else float(np.mean(self.examples**2))

    def spread_rows(self, most: int) -> np.ndarray:
        """Where to find at most so many rows that differ, spread over all of them in order."""
        assert self.rows is not None
        rows, first = np.unique(self.rows, axis=0, return_index=True)
        return first[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)]


def inputs_of(options: Options) -> Inputs:
    """Standardized rows of --data, or what standardized rows have in common: a mean square of 1."""
    if options.data is None:
        return Inputs(None, options.width, "", ())
    data = load(options.data, options.target, "auto", options.drop)
    rows = split(data, 0.01 if len(data.x) > 200 else 0.25, _MOST_ROWS, options.seed)
    count, features = rows.x.shape
    name = f"{data.name}: {count} rows of {features} features, {rows.input_scaling}"
    if not options.attends:
        return Inputs(rows.x, features, name, data.notes, rows.y, classes=bool(data.classes))
    if features % options.sequence:
        raise ValueError(
            f"--tokens {options.sequence}: rows of {features} features cannot be cut into {options.sequence} "
            f"equal parts; choose a divisor of {features}."
        )
    cut = rows.x.reshape(count, options.sequence, -1)
    name += f", cut into {options.sequence} tokens of {cut.shape[2]}"
    return Inputs(None, cut.shape[2], name, data.notes, rows.y, cut, bool(data.classes))
