"""Figures of networks that learn features strongly; `gallery.py` runs them."""

import functools
import warnings

import jax
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, axes_row, figure
from matplotlib.colors import LogNorm

import nearkernel as nk

_STEPS, _WIDTH, _SEEDS = 80, 2048, 3
_RICHNESS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
_GRID, _WIDTHS = (0.03, 0.07, 0.15, 0.25, 0.5, 1.0, 2.0), (32, 128, 512, 2048)
_THEORIES = ("lazy: order 0", "nearly lazy: order 2", "rich: the limit")
_NAMES = {
    "infinite-width NTK": GRAY,
    "order 0": PURPLE,
    "order 1": BLUE,
    "order 2": ORANGE,
    "rich limit": GREEN,
}


@functools.cache
def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sixteen points in ten dimensions, of which the label needs one."""
    draw = np.random.default_rng(3).normal(size=(28, 10))
    x = np.sqrt(10) * draw / np.linalg.norm(draw, axis=1, keepdims=True)
    return x[:16], np.sign(x[:16, 0]), x[16:]


def _network(width: int, parametrization: str) -> nk.MLP:
    return nk.MLP(10, (width,), 1, "tanh", weight_var=2.0, parametrization=parametrization)


@functools.cache
def _rate() -> float:
    return 0.3 / float(np.linalg.eigvalsh(nk.kernels.NTK(_network(8, "ntk"))(_data()[0]))[-1])


def _rich(richness: float, x_new=None, neurons: int = 8192):
    x, y, new = _data()
    model = nk.Scaled(_network(64, "mean_field"), 1 / richness)
    clouds = nk.MeanField(neurons=neurons, scrambles=4, every=_STEPS)
    descent = nk.GradientDescent(_rate() * richness**2, _STEPS)
    return nk.forecast(model, x, y, descent, new if x_new is None else x_new, theory=clouds)


def _trained(richness: float, seed: int, width: int = _WIDTH):
    """An NTK network at the lazy scale of this richness: model, parameters before and after, what trained it."""
    alpha = 1 / (richness * width**0.5)
    model = nk.Scaled(_network(width, "ntk"), alpha)
    params = model.init(jax.random.key(seed))
    descent = nk.GradientDescent(_rate() / alpha**2, _STEPS)
    x, y, _ = _data()
    return model, params, nk.simulate(model, params, x, y, descent).params, descent


def _by_orders(richness: float, seed: int, width: int):
    """Outputs at new points of orders 0 to 2 and of the trained network; and the network."""
    x, y, new = _data()
    model, params, after, descent = _trained(richness, seed, width)
    expanded = nk.expand(model, params, degree=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # corrections are not small here
        orders = [nk.solve(expanded, x, y, descent, k).predict(new).mean for k in range(3)]
    return orders, np.asarray(model(after, new))[:, 0], model


def _distances(found, trained: np.ndarray) -> list[float]:
    return [float(np.linalg.norm(each - trained) / np.linalg.norm(trained)) for each in found]


@figure
def rich() -> plt.Figure:
    """Five theories over the richness, against the same trained networks."""
    x, y, new = _data()
    kernel = nk.forecast(_network(8, "ntk"), x, y, nk.GradientDescent(_rate(), _STEPS), new).mean
    found = np.empty((len(_RICHNESS), _SEEDS, 5))
    moved = []
    for i, richness in enumerate(_RICHNESS):
        law = _rich(richness)
        moved.append(law.kernels().moved)
        for seed in range(_SEEDS):
            orders, trained, _ = _by_orders(richness, seed, _WIDTH)
            found[i, seed] = _distances((kernel, *orders, law.mean), trained)
        shares = " ".join(f"{100 * value:.1f}" for value in found[i].mean(axis=0))
        print(
            f"  richness {richness:g}: {shares} % off (NTK, orders 0-2, rich); kernel moved {moved[-1]:.0%}"
        )
    drawn, axes = axes_row(2, 3.6, width_ratios=(2, 1))
    mean, spread = found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(_SEEDS)
    for k, (name, color) in enumerate(_NAMES.items()):
        axes[0].errorbar(
            _RICHNESS, mean[:, k], spread[:, k], fmt="o-", color=color, ms=4, capsize=2, label=name
        )
    for left, right, name in ((0.085, 0.1, ""), (0.1, 0.3, "nearly lazy"), (0.3, 2.4, "rich")):
        axes[0].axvspan(left, right, color=GREEN, alpha=0.05 if name == "rich" else 0.0, lw=0)
        axes[0].text(np.sqrt(left * right), 6.5, name, ha="center", color=GRAY, fontsize=9)
    axes[0].set(
        xscale="log", yscale="log", xlabel="richness", ylabel="distance from the trained network",
        title=f"five theories, the same networks of {_WIDTH} neurons", xlim=(0.085, 2.4), ylim=(None, 12),
    )  # fmt: skip
    axes[0].legend(fontsize=8.5)
    axes[1].plot(_RICHNESS, moved, "o-", color=GREEN)
    axes[1].set(xscale="log", yscale="log", xlabel="richness", title="how far the kernel moved")
    return drawn


@figure
def regime_map() -> plt.Figure:
    """Errors of three theories over richness and width, from trained networks, with the borders of `nk.regime`."""
    errors = np.empty((len(_WIDTHS), len(_GRID), _SEEDS, 3))
    chosen = np.empty(errors.shape[:3], int)
    for j, richness in enumerate(_GRID):
        limit = _rich(richness).mean
        for i, width in enumerate(_WIDTHS):
            for seed in range(_SEEDS):
                orders, trained, model = _by_orders(richness, seed, width)
                errors[i, j, seed] = _distances((orders[0], orders[2], limit), trained)
                named = nk.regime(model, _data()[1])
                chosen[i, j, seed] = 0 if named.narrow else ("lazy", "nearly lazy", "rich").index(named.name)
    taken = np.take_along_axis(errors, chosen[..., None], 3)[..., 0]
    near = (taken <= 1.5 * errors.min(axis=3) + 0.01).mean()
    print(
        f"  the theory that is named is the best of three, or nearly as good, for {near:.0%} of the networks"
    )
    means = errors.mean(axis=2)
    for width, row in zip(_WIDTHS, means, strict=True):
        cells = "; ".join(" ".join(f"{100 * value:.1f}" for value in cell) for cell in row)
        print(f"  width {width}: {cells} %")
    return _map(means, errors.argmin(axis=3))


def _map(means: np.ndarray, best: np.ndarray) -> plt.Figure:
    drawn, panels = axes_row(3, 2.9, sharey=True)
    for k, (panel, name) in enumerate(zip(panels, _THEORIES, strict=True)):
        panel.grid(False)
        shades = panel.imshow(
            np.maximum(100 * means[..., k], 0.03), cmap="YlOrRd", norm=LogNorm(0.03, 100), aspect="auto"
        )
        for i, j in np.ndindex(*means.shape[:2]):
            share = 100 * means[i, j, k]
            shown = "<0.1" if share < 0.1 else f"{share:.1f}" if share < 9.95 else f"{share:.0f}"
            best_here = (best[i, j] == k).mean() > 0.5
            panel.text(
                j, i, shown, ha="center", va="center", fontsize=7.5, fontweight="bold" if best_here else "normal",
                color="white" if share > 8 else "black",
            )  # fmt: skip
        for border in (1.5, 3.5):  # 0.1 and 0.3, where nk.regime changes its name
            panel.axvline(border, color=GRAY, lw=1.2, ls="--")
        panel.set_xticks(range(len(_GRID)), [f"{value:g}".lstrip("0") for value in _GRID], fontsize=8.5)
        panel.set_yticks(range(len(_WIDTHS)), [str(width) for width in _WIDTHS])
        panel.set(title=name, xlabel="richness × targets")
    panels[0].set_ylabel("width")
    drawn.colorbar(shades, ax=list(panels), label="error of one network, %", fraction=0.05)
    return drawn


@figure
def rich_neurons() -> plt.Figure:
    """The law of a neuron before and after training: the limit and a network."""
    x, _, _ = _data()
    drawn, axes = axes_row(3, 3.1, sharey=True)
    for panel, richness in zip(axes, (0.1, 1.0, 3.0), strict=True):
        cloud = _rich(richness).neurons(1)
        model, _, after, _ = _trained(richness, 0)
        with jax.enable_x64(True):
            h = np.asarray(model.model.layer_outputs(after["params"], x)[0])[0]
        bins = np.linspace(-6, 6, 61)
        for values, weights, color, name in (
            (cloud.start[:, 0], cloud.weights, GRAY, "before training"),
            (cloud.preactivations[:, 0], cloud.weights, GREEN, "after, rich limit"),
        ):
            height, _ = np.histogram(values, bins, weights=weights, density=True)
            panel.stairs(height, bins, color=color, lw=1.8, label=name)
        panel.hist(h, bins, density=True, color=BLUE, alpha=0.3, label=f"after, {_WIDTH} neurons")
        panel.set(title=f"richness {richness:g}", xlabel="preactivation of a neuron")
        spread = np.sqrt(cloud.weights @ cloud.preactivations[:, 0] ** 2)
        print(
            f"  richness {richness:g}: root mean square {spread:.2f} in the limit, {h.std():.2f} in the network"
        )
    axes[0].legend(fontsize=8.5)
    axes[0].set_ylabel("density")
    return drawn


@figure
def rich_kernels() -> plt.Figure:
    """Feature kernels before and after training, the limit beside a network; points sorted by label."""
    x, y, _ = _data()
    order = np.argsort(y, kind="stable")
    law = _rich(2.0)
    model, params, after, _ = _trained(2.0, 0)

    def network(params):
        with jax.enable_x64(True):
            s = np.tanh(np.asarray(model.model.layer_outputs(params["params"], x)[0]))
        return s @ s.T / _WIDTH

    kernels = [law.kernels(0).features[0][:16, :16], law.kernels().features[0][:16, :16]]
    kernels += [network(params), network(after)]
    drawn, axes = axes_row(4, 2.6)
    names = ("limit, before", "limit, after", f"{_WIDTH} neurons, before", f"{_WIDTH} neurons, after")
    most = max(np.abs(kernel).max() for kernel in kernels)
    for panel, kernel, name in zip(axes, kernels, names, strict=True):
        panel.imshow(kernel[np.ix_(order, order)], cmap="RdBu_r", vmin=-most, vmax=most)
        panel.set_title(name, fontsize=9.5)
        panel.set_axis_off()
    for k, name in ((0, "before"), (1, "after")):
        away = np.linalg.norm(kernels[k + 2] - kernels[k]) / np.linalg.norm(kernels[k])
        print(f"  {name}: the network is {away:.1%} off the limit")
    change = np.linalg.norm(kernels[1] - kernels[0]) / np.linalg.norm(kernels[0])
    print(f"  training moved the kernel of the limit by {change:.0%}")
    return drawn


@figure
def kernel_movement() -> plt.Figure:
    """How far the tangent kernel moves in training, over the richness: the limit, and networks of two widths."""
    (x, y, x_new), widths, seeds = _data(), (128, 2048), 4
    both, grid = np.concatenate([x, x_new]), np.array([0.03, 0.1, 0.2, 0.5, 1.0, 2.0])
    limit = [_rich(richness, neurons=4096).kernels().moved for richness in grid]
    found = np.zeros((len(widths), len(grid), seeds))
    for i, width in enumerate(widths):
        for j, richness in enumerate(grid):
            model = nk.Scaled(_network(width, "mean_field"), 1 / richness)
            descent = nk.GradientDescent(_rate() * richness**2, _STEPS)
            for seed in range(seeds):
                start = model.init(jax.random.key(seed))
                end = nk.simulate(model, start, x, y, descent, nk.Record(every=_STEPS)).params
                found[i, j, seed] = nk.theory.movement(model, start, end, both).kernel
    drawn, (panel,) = axes_row(1, 3.4)
    panel.plot(grid, limit, color=BLUE, label="theory: infinite width")
    for values, width, color, mark in zip(found, widths, (GRAY, ORANGE), ("x", "o"), strict=True):
        for column in values.T:
            panel.plot(
                grid, column, mark, color=color, ms=5, mew=1.2, label=f"trained networks of width {width}"
            )
        off = np.abs(values.mean(axis=1) / limit - 1)
        print(f"  width {width}: {values.mean(axis=1).round(3)}, off by {off.min():.0%} to {off.max():.0%}")
    print(f"  limit: {np.round(limit, 3)}")
    for border in (0.1, 0.3):
        panel.axvline(border, color=GRAY, lw=1, ls="--")
    panel.set(xscale="log", yscale="log", xlabel="richness γ₀", ylabel="kernel moved by")
    handles, labels = panel.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    panel.legend(once.values(), once.keys())
    return drawn
