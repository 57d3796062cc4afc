"""Figures of what kernels cannot learn and what networks can; `gallery.py` runs them."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, axes_row, figure

sys.path.append(
    str(Path(__file__).parents[1] / "benchmarks")
)  # the experiments; last: `rich` there is no package
import _adaptivity as adaptivity
import _separation as separation

COLORS = {
    "one step": ORANGE,
    "AGOP kernel": GREEN,
    "trained network": PURPLE,
    "NTK": BLUE,
    "RBF": SKY,
    "random features": GRAY,
}


def row(name: str, numbers) -> None:
    print(f"  {name}: {'  '.join(f'{number:.3g}' for number in numbers)}")


@figure
def separation_errors() -> plt.Figure:
    """Test error over n on a polynomial of two directions, and the n that an error needs over d."""
    d, sizes = 16, (250, 500, 1000, 2000, 4000)
    found = separation.errors_over_n(d, sizes, list(separation.LEARNERS))
    drawn, axes = axes_row(2, 3.7)
    print(f"  d = {d}, n = {sizes}: error, then overlap")
    for name, color in COLORS.items():
        mean = np.exp(np.log(found[name]).mean(axis=1))
        axes[0].plot(sizes, mean, "o-", color=color, ms=4, label=name)
        row(name, mean)
        row(f"{name}, overlap", found[f"{name}, overlap"].mean(axis=1))
    axes[0].set(xscale="log", yscale="log", xlabel="training points n", ylabel="test error / variance")
    axes[0].set_title(f"d = {d}, two directions, degree 4")
    axes[0].set_ylim(8e-3, 1.2)
    axes[0].minorticks_off()
    axes[0].set_xticks(sizes, list(map(str, sizes)))
    axes[0].legend(fontsize=8, loc="lower left")
    level = 0.3
    for name, dims, sizes in (
        ("one step", (8, 12, 16, 24), (125, 250, 500, 1000, 2000, 4000)),
        ("RBF", (6, 8, 10, 12, 14), (125, 250, 500, 1000, 2000, 4000)),
    ):
        needed = []
        for d in dims:
            errors = np.mean([_errors(name, d, sizes, seed, level) for seed in range(3)], axis=0)
            needed.append(separation.crossing(sizes, errors, level))
        exponent = separation.power(dims, needed)
        row(f"n for an error of {level}, {name}, d = {dims}, power {exponent:.2f}", needed)
        axes[1].plot(dims, needed, "o", color=COLORS[name], ms=5, label=f"{name}: power {exponent:.1f}")
        fit = np.exp(np.nanmean(np.log(needed) - exponent * np.log(dims)))
        ends = np.array([dims[0], dims[-1]])
        axes[1].plot(ends, fit * ends**exponent, color=COLORS[name], lw=1)
    axes[1].set(xscale="log", yscale="log", xlabel="dimension d", ylabel=f"n for an error of {level}")
    axes[1].minorticks_off()
    axes[1].set_xticks((6, 8, 12, 16, 24), ("6", "8", "12", "16", "24"))
    axes[1].set_yticks((250, 500, 1000, 2000), ("250", "500", "1000", "2000"))
    axes[1].set_title("what the dimension costs")
    axes[1].legend()
    return drawn


def _errors(name: str, d: int, sizes, seed: int, level: float) -> list[float]:
    """Errors over n, not computed any more once they are far below the level."""
    found: list[float] = []
    for n in sizes:
        if len(found) > 1 and max(found[-2:]) < level / 2:
            found.append(found[-1])
            continue
        f = separation.target(d, seed)
        x, y, new, values = separation.draw(f, d, n, seed)
        if name == "RBF":
            predictors = separation.ridged(separation.nk.kernels.RBF(d**0.5), x, y)
        else:
            predictors = separation.one_step(x, y, seed, width=400)
        found.append(separation.best(predictors, new, values)[0] / values.var())
    return found


@figure
def separation_share() -> plt.Figure:
    """How much of the neurons lies in the true subspace after the step, with and without an average Hessian."""
    drawn, axes = axes_row(2, 3.5, sharey=True)
    ratios = np.array([0.125, 0.25, 0.5, 1, 2, 4, 8, 16])
    grid = np.geomspace(ratios[0], ratios[-1], 60)
    for panel, k in zip(axes, (2, 4), strict=True):
        for d, color in ((16, SKY), (32, BLUE), (64, PURPLE)):
            f = separation.hermite(d, k)
            share = separation.share_over_n(f, d, [int(r * d * d) for r in ratios])
            panel.plot(ratios, share, "o", color=color, ms=4.5, label=f"d = {d}")
            noise = (2 * k + 1) / (2 * k + d)
            if k == 4:
                panel.axhline(noise, color=color, lw=1)
            row(f"He{k}, d = {d}, fluctuations {noise:.3f}, n/d^2 = {ratios}", share)
        panel.set(xscale="log", xlabel="n / d²", ylim=(0, 1.02))
    signal = 2 / np.pi * np.sum(separation.hermite(16, 2).hessian ** 2) * grid
    axes[0].plot(grid, signal / (1 + signal), color=GRAY, label="theory, isotropic noise")
    axes[1].plot([], [], color=GRAY, label="(2k + 1)/(2k + d), k = 4")
    axes[1].legend(loc="upper left")
    axes[0].set(title="He₂: the average Hessian sees the direction", ylabel="share of |W|² in the subspace")
    axes[1].set(title="He₄: it is 0, and only noise points there")
    axes[0].legend(loc="lower right")
    return drawn


@figure
def nearly_kernel_sees() -> plt.Figure:
    """Whether the kernel after training looks at the true directions: order 1, and networks really trained."""
    alphas = (2.0, 8.0, 32.0)
    found = separation.nearly_kernel(10, 400, alphas)
    for alpha, numbers in found.items():
        print(f"  alpha = {alpha:g}: " + ", ".join(f"{key} {value:.3g}" for key, value in numbers.items()))
    drawn, axes = axes_row(2, 3.5)
    get = lambda key: [found[alpha][key] for alpha in alphas]
    for key, color in (("order 0", BLUE), ("order 1", ORANGE), ("trained", "black")):
        axes[0].plot(alphas, get(key), "o-", color=color, ms=4, label=key)
    axes[0].set(xscale="log", xlabel="lazy scale α", ylabel="test error / variance", ylim=(0, 2))
    axes[0].set_title("prediction")
    axes[0].legend()
    for key, color, label in (
        ("k^E, drift", ORANGE, "order 1, one network"),
        ("k trained, drift", GRAY, "trained, one network"),
        ("k trained, mean drift", "black", "trained, mean of networks"),
    ):
        axes[1].plot(alphas, get(key), "o-", color=color, ms=4, label=label)
    axes[1].axhline(0.2, color=GRAY, ls=":", label="random directions")
    axes[1].set(xscale="log", xlabel="lazy scale α", ylabel="overlap with the subspace", ylim=(0, 1.02))
    axes[1].set_title("what training adds to the kernel")
    axes[1].legend(fontsize=8.5, loc="center right", bbox_to_anchor=(1, 0.67))
    for panel in axes:
        panel.minorticks_off()
        panel.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
    return drawn


@figure
def adaptive() -> plt.Figure:
    """Four kinds of structure, and who makes use of it."""
    drawn, axes = plt.subplots(2, 2, figsize=(8.6, 6.4), layout="constrained")
    dims = (2, 4, 8, 16, 32)
    for name, errors in adaptivity.support(dims).items():
        color = SKY if name.startswith("RBF") else PURPLE
        axes[0, 0].plot(
            dims, errors, "o" + ("-" if "surface" in name else ":"), color=color, ms=4, label=name
        )
        row(f"support, d = {dims}, {name}", errors)
    axes[0, 0].set(
        xscale="log", yscale="log", xlabel="ambient dimension d", title="support of low dimension: both"
    )
    axes[0, 0].minorticks_off()
    axes[0, 0].set_xticks(dims, list(map(str, dims)))
    sizes = (100, 200, 400, 800)
    for name, errors in adaptivity.smooth((1, 3), sizes).items():
        color = SKY if name.startswith("RBF") else PURPLE
        axes[0, 1].plot(sizes, errors, "o" + ("-" if "3" in name else ":"), color=color, ms=4, label=name)
        row(f"smoothness, n = {sizes}, {name}", errors)
    axes[0, 1].set(xscale="log", yscale="log", xlabel="training points n", title="smoothness: both")
    axes[0, 1].minorticks_off()
    axes[0, 1].set_xticks(sizes, list(map(str, sizes)))
    jumps = [adaptivity.step(seed=seed) for seed in range(5)]
    grid, curves, _ = jumps[0]
    for name, color in (("RBF", SKY), ("Laplace", GREEN), ("NTK", BLUE), ("network", PURPLE)):
        numbers = np.mean([each[2][name] for each in jumps], axis=0)
        axes[1, 0].plot(grid, curves[name], color=color, lw=1.4, label=name)
        row(f"step, {name}: error, overshoot", numbers)
    axes[1, 0].set(xlabel="x", ylim=(-1.5, 1.5), title="a step: smooth kernels overshoot")
    dims = (6, 10, 16, 24)
    for name, errors in adaptivity.latent(dims).items():
        axes[1, 1].plot(dims, errors, "o-", color=COLORS[name], ms=4, label=name)
        row(f"latent variables, d = {dims}, {name}", errors)
    axes[1, 1].set(
        xscale="log", yscale="log", xlabel="dimension d", title="latent variables: not fixed kernels"
    )
    axes[1, 1].minorticks_off()
    axes[1, 1].set_xticks(dims, list(map(str, dims)))
    for panel in axes.flat:
        panel.legend(fontsize=8)
        if panel is not axes[1, 0]:
            panel.set_ylabel("test error / variance")
    return drawn


@figure
def curse() -> plt.Figure:
    """Error over n of the best possible kernel machine, in 2, 4, 8 and 16 dimensions."""
    sizes = (60, 125, 250, 500, 1000, 2000, 4000)
    drawn, (panel,) = axes_row(1, 3.6)
    for d, color in ((2, GREEN), (4, SKY), (8, BLUE), (16, PURPLE)):
        expected, measured = adaptivity.curse(d, sizes)
        power = separation.power(sizes[-4:], expected[-4:])
        panel.plot(sizes, expected, color=color, label=f"d = {d}: power {power:.2f}, limit {-1 / d:.2f}")
        panel.plot(sizes, measured, "o", color=color, ms=4.5)
        row(f"d = {d}, power {power:.3f}: expected", expected)
        row(f"d = {d}: measured", measured)
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="training points n",
        ylabel="test error / variance",
        xlim=(50, 12000),
    )
    panel.minorticks_off()
    panel.set_yticks((0.02, 0.05, 0.1, 0.2, 0.5), ("0.02", "0.05", "0.1", "0.2", "0.5"))
    panel.legend(loc="lower left")
    return drawn
