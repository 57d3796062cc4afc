"""Figures of what training does beyond the small step; `gallery.py` runs them."""

from collections.abc import Callable

import jax
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, axes_row

import nearkernel as nk

FIGURES: dict[str, Callable[[], plt.Figure]] = {}


def figure(draw: Callable[[], plt.Figure]) -> Callable[[], plt.Figure]:
    FIGURES[draw.__name__] = draw
    return draw


@figure
def catapult() -> plt.Figure:
    """The plane of residual and kernel, in which a quadratic model on one point moves."""
    width = 1e4
    drawn, axes = axes_row(2, 3.6)
    for ratio, colour in ((1.5, GREEN), (2.3, BLUE), (3.0, ORANGE), (3.7, PURPLE)):
        z, ntk = nk.dynamics.catapult(0.8, 1.0, 0.0, 1 / width, ratio, 400)
        print(f"  lr ntk = {ratio}: peak loss {0.5 * (z**2).max():.3g}, at the end {ratio * ntk[-1]:.3f}")
        axes[0].plot(np.abs(z) + 1e-12, ratio * ntk, ".-", color=colour, lw=0.8, ms=4)
        axes[1].plot(0.5 * z[:110] ** 2 + 1e-20, color=colour, label=f"lr · ntk(0) = {ratio}")
    axes[0].axhline(2.0, color=GREY, ls="--", lw=1)
    axes[0].text(2e-7, 2.06, "stable below", color=GREY, fontsize=9)
    axes[0].set(xscale="log", xlim=(1e-7, 3e2), ylim=(0, 4), xlabel="residual |z - y|", ylabel="lr · ntk")
    axes[0].set_title("the kernel shrinks while the residual is large")
    axes[1].set(yscale="log", ylim=(1e-12, 1e4), xlabel="step", ylabel="loss", title="loss")
    axes[1].legend(loc="upper right")
    return drawn


@figure
def phases() -> plt.Figure:
    """A sweep over the learning rate: a real network, its quadratic model, its linearization."""
    x = np.random.default_rng(0).normal(size=(6, 5))
    y = np.sin(x.sum(axis=1))
    net = nk.MLP(5, (400,), 1, "relu", weight_var=2.0)
    theta = net.init(jax.random.key(2))
    top = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, theta)(x))[-1]
    ratios = np.linspace(0.4, 5.2, 49)
    drawn, axes = axes_row(3, 3.3)
    models = (
        ("network", net, ORANGE, "-"),
        ("quadratic model", nk.expand(net, theta, degree=2), BLUE, "--"),
        ("linear model", nk.expand(net, theta, degree=1), GREEN, ":"),
    )
    for name, model, colour, line in models:
        found = [nk.phase(model, theta, x, y, ratio / top, 600) for ratio in ratios]
        names = [phase.name for phase in found]
        fine = np.array(names) != "divergent"
        kept = [phase for phase in found if phase.name != "divergent"]
        print(f"  {name}: catapult from {_first(ratios, names, 'catapult')}, divergent from", end=" ")
        print(_first(ratios, names, "divergent"))
        axes[0].plot(
            ratios[fine], [p.losses.max() / p.losses[0] for p in kept], line, color=colour, label=name
        )
        axes[1].plot(ratios[fine], [p.lr * p.moved.ntk_end for p in kept], line, color=colour)
        axes[2].plot(ratios[fine], [p.moved.correlation for p in kept], line, color=colour)
    axes[0].set(yscale="log", ylim=(0.7, 3e3), title="highest loss / first loss")
    axes[1].axhline(2.0, color=GREY, lw=1)
    axes[1].set(title="lr · λ at the end", ylim=(0, 2.4))
    axes[2].set(title="correlation of weights", ylim=(0.6, 1.01))
    for panel in axes:
        panel.axvspan(2.0, 4.0, color=SKY, alpha=0.15, lw=0)
        panel.set(xlabel="lr · λ at the start", xlim=(0.3, 5.3))
    axes[0].legend()
    return drawn


def _first(ratios, names, wanted) -> str:
    return f"{ratios[names.index(wanted)]:.1f}" if wanted in names else "nowhere"


@figure
def movement() -> plt.Figure:
    """Lazy and rich: how far weights, features and kernel move, over the width, in three scalings."""
    x = np.random.default_rng(1).normal(size=(8, 4))
    x *= 2 / np.linalg.norm(x, axis=1, keepdims=True)
    y = np.sin(2 * x[:, 0]) + x[:, 1]
    widths, seeds = (64, 128, 256, 512, 1024), 4
    drawn, axes = axes_row(3, 3.3, sharey=True)
    for scaling, colour, mark in (("ntk", BLUE, "o"), ("standard", GREEN, "s"), ("mean_field", ORANGE, "^")):
        found = np.zeros((len(widths), seeds, 3))
        for i, n in enumerate(widths):
            net = nk.MLP(4, (n,), 1, "tanh", weight_var=1.5, bias_var=0.1, parametrization=scaling)
            factors = net.lr_factors() if scaling == "mean_field" else None
            for seed in range(seeds):
                theta = net.init(jax.random.key(seed))
                top = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, theta, factors)(x))[-1]
                descent = nk.GradientDescent(1 / top, 1500)
                end = nk.simulate(net, theta, x, y, descent, nk.Record(every=1500), lr_factors=factors).params
                moved = nk.dynamics.movement(net, theta, end, x, lr_factors=factors)
                found[i, seed] = moved.weights, moved.features, moved.kernel
        typical = np.exp(np.log(found).mean(axis=1))
        slopes = np.polyfit(np.log(widths), np.log(typical), 1)[0]
        print(f"  {scaling}: powers of the width {slopes.round(2)} (weights, features, kernel)")
        for panel, values in zip(axes, typical.T, strict=True):
            panel.plot(widths, values, mark + "-", color=colour, ms=5, lw=1.2, label=scaling)
    for panel, title in zip(axes, ("weights", "features", "tangent kernel"), strict=True):
        panel.set(xscale="log", yscale="log", title=title, xlabel="width")
        panel.set_xticks(widths, [str(n) for n in widths])
        panel.minorticks_off()
    axes[0].set_ylabel("relative movement by training")
    axes[0].legend()
    return drawn
