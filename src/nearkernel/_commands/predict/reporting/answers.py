"""What a method says about the test rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .. import scores


@dataclasses.dataclass(frozen=True)
class Answer:
    """Predictions of one method, in target units."""

    name: str
    mean: np.ndarray  # (m, out)
    std: np.ndarray | None  # (m,), shared by the outputs; None where the method has none
    seconds: float
    details: dict[str, Any]
    log_probs: np.ndarray | None  # (m, classes) for a classification
    figures: scores.Figures
    answered: np.ndarray | None = None  # (m,) classes, where they are not those of the largest outputs
    intervals: np.ndarray | None = None  # (levels, m, 2), one for each probability in `scores.LEVELS`

    @property
    def interval(self) -> np.ndarray | None:
        """(m, 2) of the largest of these probabilities, 90 %."""
        return None if self.intervals is None else self.intervals[-1]

    @property
    def label(self) -> np.ndarray:
        """(m,) the class that is answered."""
        return self.mean.argmax(axis=1) if self.answered is None else self.answered
