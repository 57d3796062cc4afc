"""The picture of an inspection: the predicted loss with its verdicts, and the target along the tangent kernel."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ..._look.drawing import GRAY, PURPLE, png_and_svg
from ..._plots.verdicts import COLORS
from ...results import Inspection


def paint(figure: Figure, found: Inspection) -> None:
    """Three panels on `figure`."""
    losses, checks, modes = figure.subplots(1, 3)
    found.plot(losses)
    checks.plot(found.moments, np.clip(found.check, 1e-4, 1e2), color=GRAY, lw=1)
    for verdict, color in COLORS.items():
        here = np.array([each == verdict for each in found.verdicts])
        checks.plot(found.moments[here], np.clip(found.check[here], 1e-4, 1e2), "o", color=color)
    losses.set_title("predicted loss")
    checks.set(title="self-check", xlabel="step", xscale="log", yscale="log")
    count = np.arange(1, len(found.eigenvalues) + 1)
    modes.plot(
        count, found.eigenvalues / found.eigenvalues[0], color=GRAY, label="eigenvalue, of the largest"
    )
    modes.plot(count, 1 - np.cumsum(found.alignment), color=PURPLE, label="residual not along these")
    modes.set(title="tangent kernel", xlabel="direction", xscale="log", yscale="log", ylim=(1e-6, 2))
    modes.legend(loc="lower left")


def picture(found: Inspection) -> tuple[bytes, str]:
    """As PNG and as SVG."""
    return png_and_svg((10.5, 3.6), paint, found)
