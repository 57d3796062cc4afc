"""A learning curve as a picture: predicted, fitted for real, extrapolated."""

import numpy as np
from matplotlib.figure import Figure

from ..._look.drawing import BLUE, GRAY, ORANGE
from .job import ScaledCurve

SIZE = (5.6, 3.8)  # inches


def draw(figure: Figure, scaled: ScaledCurve) -> None:
    curve, scale, axes = scaled.curve, scaled.scale, figure.subplots()
    error, band = scale * curve.error, 2 * scale * curve.sem
    axes.plot(curve.sizes, error, color=BLUE, label="predicted, two standard errors")
    axes.fill_between(curve.sizes, error - band, error + band, color=BLUE, alpha=0.2, linewidth=0)
    if scaled.ahead.trusted:
        ahead = curve.extrapolate(np.geomspace(curve.n, 2 * curve.n, 9))
        axes.plot(ahead.sizes, scale * ahead.error, ":", color=GRAY, label="extrapolated")
        axes.fill_between(
            ahead.sizes, scale * ahead.low, scale * ahead.high, color=GRAY, alpha=0.2, linewidth=0
        )
    if curve.trained is not None:
        spread = scale * curve.trained.spread if curve.trained.fits > 1 else None
        axes.errorbar(
            curve.sizes,
            scale * curve.trained.error,
            spread,
            fmt="o",
            markersize=4,
            color=ORANGE,
            label="real fits",
        )
    axes.set(xlabel="rows", ylabel=scaled.measure, xscale="log", yscale="log")
    axes.legend()
