"""Figures of linear regions and of what a kernel makes; `gallery.py` runs them."""

import jax
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, axes_row, figure
from matplotlib.collections import PolyCollection

import nearkernel as nk


@figure
def linear_regions() -> plt.Figure:
    """All linear regions of three networks in a square, colored by the value in the middle of each."""
    box = ((-2.0, 2.0), (-2.0, 2.0))
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(120, 2))
    y = np.sign(np.sin(2.2 * np.linalg.norm(x, axis=1)))
    one = nk.MLP(2, (48,), 1, "relu", weight_var=2.0, bias_var=0.5)
    deep = nk.MLP(2, (16, 16, 16), 1, "relu", weight_var=2.0, bias_var=0.5)
    start = deep.init(jax.random.key(5))
    lr = 0.3 / nk.geometry.sharpness(deep, start, x, y)
    end = nk.simulate(deep, start, x, y, nk.GradientDescent(lr, 20_000), nk.Record(every=20_000)).params
    shown = (
        ("one layer of 48", one, one.init(jax.random.key(1))),
        ("three layers of 16, as drawn", deep, start),
        ("the same, trained on rings", deep, end),
    )
    drawn, axes = axes_row(3, 3.1, sharey=True)
    for panel, (title, net, params) in zip(axes, shown, strict=True):
        found = nk.geometry.regions(net, params, box)
        middles = np.array([region.vertices.mean(axis=0) for region in found])
        values = np.einsum("pc,pc->p", found.gradients[:, 0], middles) + found.offsets[:, 0]
        print(f"  {title}: {len(found)} polygons, {found.count} linear regions")
        limit = np.quantile(np.abs(values), 0.98)
        cells = PolyCollection(
            found.vertices, array=values, cmap="RdBu_r", clim=(-limit, limit), ec="black", lw=0.35
        )
        panel.add_collection(cells)
        panel.set(xlim=box[0], ylim=box[1], aspect="equal", title=title, xticks=(-2, 0, 2), yticks=(-2, 0, 2))
        panel.grid(False)
    return drawn


@figure
def kinks() -> plt.Figure:
    """How many pieces there can be, and how many there are."""
    drawn, axes = axes_row(2, 3.5)
    depths = np.arange(1, 11)
    bound = [nk.theory.region_bounds(nk.MLP(1, (16,) * depth)).layers for depth in depths]
    built, mean, sem = [], [], []
    for depth in depths:
        net, params = nk.theory.sawtooth(8 * int(depth)) if depth < 3 else (None, None)
        if net is not None:
            built.append(len(nk.theory.breakpoints(net, params, 0, 1)) + 1)
        net = nk.MLP(1, (16,) * depth, 1, "relu", weight_var=2.0, bias_var=1.0)
        found = nk.theory.measure_crossings(net, -1e4, 1e4, 200, jax.random.key(depth))
        mean.append(1 + 16 * found.mean.sum())
        sem.append(16 * np.sqrt(np.sum(found.sem**2)))
    neurons = np.arange(2, 42, 2)
    two = [nk.theory.region_bounds(nk.MLP(1, (2,) * (n // 2))).layers for n in neurons]
    axes[0].plot(neurons, two, color=ORANGE, ls="--", lw=1.2, label="bound, 2 neurons per layer")
    axes[0].plot(neurons, 2.0 ** (neurons / 2), color=ORANGE, label="sawtooth, 2 neurons per layer")
    axes[0].plot(16 * depths[: len(built)], built, "o", color=ORANGE, ms=5, mfc="white")
    axes[0].plot(16 * depths, bound, color=BLUE, ls="--", lw=1.2, label="bound, 16 neurons per layer")
    axes[0].errorbar(
        16 * depths, mean, sem, fmt="o", color=BLUE, ms=4, capsize=2, label="drawn, 16 neurons per layer"
    )
    axes[0].plot(16 * depths, 16 * depths + 1, color=BLUE, lw=1, label="neurons + 1")
    axes[0].set(yscale="log", ylim=(1, 1e20), xlabel="neurons", title="linear pieces on the line")
    axes[0].legend(fontsize=8.5)
    print(
        f"  10 layers of 16: {mean[-1]:.1f} +- {sem[-1]:.1f} pieces, bound {bound[-1]:.1e}; sawtooth {built}"
    )

    layers = np.arange(1, 11)
    for width, size, color, shift in (
        (16, 1500, GREEN, -0.12),
        (64, 400, PURPLE, 0.0),
        (256, 100, SKY, 0.12),
    ):
        net = nk.MLP(1, (width,) * 10, 1, "relu", weight_var=2.0, bias_var=1.0)
        found = nk.theory.measure_crossings(net, -1, 1, size, jax.random.key(width))
        axes[1].errorbar(
            layers + shift,
            found.mean / 2,
            found.sem / 2,
            fmt="o",
            color=color,
            ms=4,
            capsize=2,
            label=f"width {width}",
        )
        print(f"  width {width}, layer 10: {found.mean[-1] / 2:.4f} +- {found.sem[-1] / 2:.4f}", end="")
        theory = nk.theory.mean_crossings(net, -1, 1) / 2
        print(f", infinite width {theory[-1]:.4f}")
    axes[1].plot(layers, theory, color="black", lw=1.2, label="infinite width")
    axes[1].set(xlabel="layer", ylim=(0, None), title="kinks per neuron and unit length, on [-1, 1]")
    axes[1].legend(fontsize=8.5)
    return drawn


@figure
def kernel_processes() -> plt.Figure:
    """Mercer eigenfunctions, Gaussian process samples and a determinantal sample of one kernel each."""
    drawn, axes = axes_row(3, 3.1)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    kernel = nk.kernels.NTK(nk.MLP(1, (1, 1), 1, "relu", weight_var=2.0, bias_var=0.3))
    pairs = nk.theory.mercer(kernel, nodes[:, None], weights / 2, rank=5)
    grid = np.linspace(-1.6, 1.6, 241)
    for i, color in enumerate((BLUE, ORANGE, GREEN, PURPLE)):
        function = pairs.functions(grid[:, None])[:, i]
        axes[0].plot(grid, function * np.sign(function[-1]), color=color, label=f"λ = {pairs.values[i]:.2g}")
    axes[0].axvspan(-1, 1, color=SKY, alpha=0.15, lw=0)
    axes[0].set(xlabel="x", title="eigenfunctions of a relu NTK", ylim=(-4.5, 4.5))
    axes[0].legend(fontsize=8, ncols=2, loc="lower left")
    print(f"  eigenvalues {pairs.values}")

    for k, color, name in (
        (nk.kernels.NNGP(nk.MLP(1, (1,), 1, "erf", weight_var=20.0, bias_var=2.0)), BLUE, "erf NNGP"),
        (nk.kernels.Laplace(0.7), ORANGE, "Laplace"),
    ):
        for i, path in enumerate(nk.theory.gp_samples(k, grid[:, None], 3, jax.random.key(2))):
            spread = np.sqrt(k.diag(grid[:, None]).mean())
            axes[1].plot(grid, path / spread, color=color, lw=1.2, label=name if i == 0 else None)
    axes[1].set(xlabel="x", title="Gaussian processes", ylim=(-4.2, 2.8))
    axes[1].legend(fontsize=8.5, loc="lower left", ncols=2)

    x = np.random.default_rng(0).uniform(size=(2000, 2))
    chosen = nk.theory.DPP(nk.kernels.RBF(0.1), x).sample(jax.random.key(0), 100)
    chance = np.random.default_rng(1).choice(2000, 100, replace=False)
    for points, color, mark, name in (
        (chance, GRAY, "x", "by chance"),
        (chosen, ORANGE, "o", "determinantal"),
    ):
        gaps = np.linalg.norm(x[points][:, None] - x[points], axis=2) + 9 * np.eye(100)
        print(f"  {name}: mean distance to the nearest {gaps.min(axis=1).mean():.3f}")
        axes[2].plot(*x[points].T, mark, color=color, ms=4, label=name)
    axes[2].set(aspect="equal", xticks=(), yticks=(), title="100 of 2000 points")
    axes[2].legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2)
    axes[2].grid(False)
    return drawn
