"""The figure of trained networks of finite width; `gallery.py` runs it."""

import jax
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, ORANGE, axes_row, figure

import nearkernel as nk

_X, _Y = np.array([[1.3, 0.8, -0.3], [0.4, 1.2, 0.5]]), np.array([1.2, 0.3])
_NEW = np.array([[1.0, -0.5, 0.9]])
_DESCENT = nk.GradientDescent(0.19, 6)


def _network(width: int, depth: int) -> nk.MLP:
    return nk.MLP(3, (width,) * depth, 1, "tanh", weight_var=1.5, bias_var=0.15)


def _forecast(net: nk.MLP):
    return nk.forecast(net, _X, _Y, _DESCENT, _NEW, theory=nk.FiniteWidth())


@figure
def finite_width() -> plt.Figure:
    """Corrections of order 1/width: over the width, with trained networks, and over depth/width."""
    drawn, axes = axes_row(3, 3.3)
    widths, line = np.array([16, 32, 64, 128]), np.geomspace(13, 160, 50)
    for depth, color, mark in ((1, BLUE, "o"), (2, ORANGE, "s")):
        theory = _forecast(_network(1000, depth))
        estimates = []
        for width in widths:
            net = _network(int(width), depth)
            observable = nk.theory.trained_observables(net, _X, _Y, _DESCENT, _NEW)
            estimates.append(nk.measure(observable, net, 4000, jax.random.key(int(width) + depth)))
        limit = nk.theory.extrapolated(estimates[1:], [int(width) for width in widths[1:]])
        exact = {"mean": 1000 * theory.terms[1], "cov": 1000 * theory.cov_terms[1]}
        for panel, name in zip(axes, ("mean", "cov"), strict=False):
            value = float(exact[name].ravel()[0])
            panel.plot(line, value / line, color=color, label=f"{depth} hidden layer{'s' * (depth > 1)}")
            found, error = (
                np.array([float(np.ravel(getattr(e, part)[name])[0]) for e in estimates])
                for part in ("mean", "sem")
            )
            panel.errorbar(widths, found / widths, 2 * error / widths, fmt=mark, color=color, ms=5, capsize=2)
            ends = float(np.ravel(limit.mean[name])[0]), float(np.ravel(limit.sem[name])[0])
            print(
                f"  {depth} hidden, {name}: {value:.4f} / width; measured limit {ends[0]:.3f} +- {ends[1]:.3f}"
            )
    for panel, title in zip(
        axes, ("mean: E f - infinite width", "variance: Var f - infinite width"), strict=False
    ):
        panel.axhline(0, color=GRAY, lw=1)
        panel.set(title=title, xlabel="width", xscale="log")
        panel.set_xticks(widths, [str(width) for width in widths])
        panel.minorticks_off()
    axes[0].legend()
    by_depth = [(depth / 128, _forecast(_network(128, depth))) for depth in range(1, 9)]
    by_width = [(4 / width, _forecast(_network(width, 4))) for width in (64, 96, 128, 256, 512)]
    for points, color, mark, label in (
        (by_depth, BLUE, "o", "width 128, depth 1 to 8"),
        (by_width, ORANGE, "s", "depth 4, width 64 to 512"),
    ):
        ratio = [point[0] for point in points]
        axes[2].plot(
            ratio, [f.expansion for _, f in points], mark + "-", color=color, ms=4, lw=1.2, label=label
        )
        axes[2].plot(ratio, [f.distance for _, f in points], mark + ":", color=color, ms=3, lw=1)
        print("  expansion at", label, [round(f.expansion, 3) for _, f in points])
        print("  distance at", label, [round(f.distance, 3) for _, f in points])
    axes[2].set(title="relative size", xlabel="depth / width", xscale="log", yscale="log")
    axes[2].set_xticks([0.01, 0.02, 0.04], ["0.01", "0.02", "0.04"])
    axes[2].minorticks_off()
    axes[2].set_ylim(2e-3, 0.7)
    axes[2].legend(loc="upper left")
    return drawn
