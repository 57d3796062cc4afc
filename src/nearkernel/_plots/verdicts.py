"""A predicted loss, and how far it may be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._look.drawing import BLUE, GRAY, GREEN, ORANGE
from .axes import given_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"trust": GREEN, "with care": BLUE, "do not trust": ORANGE}


def draw_verdicts(
    moments: np.ndarray, losses: np.ndarray, before: float, verdicts: Sequence[str], axes: Axes | None
) -> Axes:
    """The loss over the steps, each moment in the color of its verdict."""
    axes = given_or_new(axes)
    axes.plot([1, *moments], [before, *losses], color=GRAY, linewidth=1)
    for verdict, color in COLORS.items():
        here = np.array([each == verdict for each in verdicts])
        axes.plot(moments[here], losses[here], "o", color=color, label=verdict)
    axes.set(xlabel="step", ylabel="loss on the training set", xscale="log")
    axes.legend()
    return axes
