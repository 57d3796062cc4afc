"""The picture of an inspection: the predicted loss with its verdicts, and the target along the tangent kernel."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ..._look.drawing import GRAY, PURPLE
from ..._plots.verdicts import COLORS
from ...results import Inspection

SIZE = (10.5, 3.6)  # inches


def paint(figure: Figure, result: Inspection) -> None:
    """Three panels on `figure`."""
    losses, checks, modes = figure.subplots(1, 3)
    result.plot(losses)
    checks.plot(result.moments, np.clip(result.check, 1e-4, 1e2), color=GRAY, lw=1)
    for verdict, color in COLORS.items():
        here = np.array([each == verdict for each in result.verdicts])
        checks.plot(result.moments[here], np.clip(result.check[here], 1e-4, 1e2), "o", color=color)
    losses.set_title("predicted loss")
    checks.set(title="self-check", xlabel="step", xscale="log", yscale="log")
    count = np.arange(1, len(result.eigenvalues) + 1)
    modes.plot(
        count, result.eigenvalues / result.eigenvalues[0], color=GRAY, label="eigenvalue, of the largest"
    )
    modes.plot(count, 1 - np.cumsum(result.alignment), color=PURPLE, label="residual not along these")
    modes.set(title="tangent kernel", xlabel="direction", xscale="log", yscale="log", ylim=(1e-6, 2))
    modes.legend(loc="lower left")
