"""The picture of an inspection: the predicted loss with its verdicts, and the target along the tangent kernel."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .._look.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, png_and_svg
from ..dynamics import Inspection, Verdict

COLORS = {Verdict.trust: GREEN, Verdict.care: BLUE, Verdict.distrust: ORANGE}


def paint(figure: Figure, found: Inspection) -> None:
    """Three panels on `figure`."""
    losses, checks, modes = figure.subplots(1, 3)
    losses.plot([1, *found.moments], [found.loss_before, *found.loss], color=GREY, lw=1)
    checks.plot(found.moments, np.clip(found.check, 1e-4, 1e2), color=GREY, lw=1)
    for verdict, color in COLORS.items():
        here = np.array([each is verdict for each in found.verdicts])
        losses.plot(found.moments[here], found.loss[here], "o", color=color, label=verdict.value)
        checks.plot(found.moments[here], np.clip(found.check[here], 1e-4, 1e2), "o", color=color)
    losses.set(title="predicted loss", xlabel="step", xscale="log")
    checks.set(title="self-check", xlabel="step", xscale="log", yscale="log")
    count = np.arange(1, len(found.eigenvalues) + 1)
    modes.plot(
        count, found.eigenvalues / found.eigenvalues[0], color=GREY, label="eigenvalue, of the largest"
    )
    modes.plot(count, 1 - np.cumsum(found.alignment), color=PURPLE, label="residual not along these")
    modes.set(title="tangent kernel", xlabel="direction", xscale="log", yscale="log", ylim=(1e-6, 2))
    modes.legend(loc="lower left")
    losses.legend()


def picture(found: Inspection) -> tuple[bytes, str]:
    """As PNG and as SVG."""
    return png_and_svg((10.5, 3.6), paint, found)
