"""The picture of the advice: signals and gradients over the layers, and how likely a bad draw is over the width."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...._look.drawing import GRAY, SERIES
from ..advice import BAD_FACTOR, Advice, bad_draw, network
from ..inputs import Inputs
from ..options import Options

SIZE = (10.5, 3.9)  # inches


def paint(figure: Figure, options: Options, inputs: Inputs, advice: Advice) -> None:
    """Three panels on `figure`."""
    panels = figure.subplots(1, 3)
    for panel, name, title in zip(
        panels, ("signal", "gradient"), ("size of the signal", "size of a small change"), strict=False
    ):
        _over_layers(panel, advice, name)
        panel.set(title=title, xlabel="hidden layer", yscale="log")
    _over_width(panels[2], options, inputs, advice)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _over_layers(panel: Axes, advice: Advice, name: str) -> None:
    for i, (outcome, color) in enumerate(zip(advice.outcomes, SERIES, strict=False)):
        theory, found = (np.sqrt(getattr(flow, name)) for flow in (outcome.predicted, outcome.measured))
        layers = np.arange(1, len(theory) + 1)
        # Flax and Keras agree in square layers: both must be seen.
        line = "-" if i < len(advice.outcomes) - 1 else (0, (4, 3))
        panel.plot(layers, theory, color=color, ls=line, label=outcome.start.name)
        shown = np.unique(np.linspace(0, len(layers) - 1, 12).astype(int))
        panel.plot(layers[shown], found[shown], "o", color=color, ms=4, alpha=0.8)
    panel.plot([], [], "o", color=GRAY, ms=4, label="random networks")


def _over_width(panel: Axes, options: Options, inputs: Inputs, advice: Advice) -> None:
    widths = np.unique(np.geomspace(min(16, options.width), max(4096, options.width), 25).astype(int))
    hidden = 0.0 if advice.spread.exact else (advice.spread.variance - 2 / inputs.in_dim) * options.width
    law = [
        100 * bad_draw(network(options, advice.critical, inputs.in_dim, int(n)), hidden / n) for n in widths
    ]
    panel.plot(widths, law, color=SERIES[0])
    panel.plot([options.width], [100 * advice.spread.bad_draw], "D", color=SERIES[1], ms=7)
    panel.set(
        title=f"gradients off by {BAD_FACTOR:g}, % of draws",
        xlabel=f"width, at {options.depth} layers",
        xscale="log",
        ylim=(0, None),
    )
