"""Figures of infinitely wide networks and their kernels; `gallery.py` runs them."""

from functools import partial

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import mpmath
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, axes_row, figure

import nearkernel as nk


@figure
def band() -> plt.Figure:
    """Forty really trained networks under the band that was forecast for them."""
    x = np.array([-2.2, -1.5, -0.4, 0.3, 1.4, 2.0])[:, None]
    y = np.array([-0.6, 0.5, 0.9, -0.3, -0.8, 0.4])
    grid = np.linspace(-3, 3, 121)[:, None]
    net = nk.MLP(1, (512, 512), 1, "erf", weight_var=4.0, bias_var=0.5)
    steps, moments = 400, (0, 10, 400)
    lr = 1.0 / np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1]

    keep = nk.Record({"z": lambda params: net(params, grid)[:, 0]}, every=10)
    descent = nk.GradientDescent(lr=lr, steps=steps)
    runs = [
        nk.simulate(net, net.init(jax.random.key(seed)), x, y, descent, keep).history for seed in range(40)
    ]
    trained = np.stack([run["z"] for run in runs])  # (network, record, grid)

    drawn, axes = axes_row(3, 3.2, sharey=True)
    forecast = nk.forecast(net, x, y, descent, grid)
    for panel, moment in zip(axes, moments, strict=True):
        now = forecast.at(moment)
        networks = trained[:, int(np.flatnonzero(runs[0]["time"] == moment)[0])]
        inside = np.abs(networks - now.mean) < 2 * now.std
        error = np.abs(networks.mean(0) - now.mean)
        print(
            f"  step {moment}: {inside.mean():.1%} of the values within two deviations; the mean of 40",
            end=" ",
        )
        print(
            f"is off by {np.median(error / now.std):.2f} deviations (median over x), at most {error.max():.3f}"
        )
        panel.plot(grid, networks.T, color=GRAY, lw=0.6, alpha=0.45)
        low, high = now.mean - 2 * now.std, now.mean + 2 * now.std
        panel.fill_between(grid[:, 0], low, high, color=SKY, alpha=0.4, lw=0)
        panel.plot(grid, now.mean, color=BLUE, lw=2.2)
        panel.plot(x, y, "o", color=ORANGE, ms=6, mec="white", zorder=5)
        panel.set(title=f"after {moment} steps" if moment else "before training", xlabel="input x")
        panel.set(xlim=(-3, 3), ylim=(-5, 5))
    axes[0].set_ylabel("output z")
    axes[0].plot([], [], color=GRAY, lw=0.9, label="40 trained networks")
    axes[0].plot([], [], color=BLUE, lw=2.2, label="forecast: mean")
    axes[0].fill_between([], [], color=SKY, alpha=0.4, lw=0, label="forecast: ± 2 deviations")
    axes[0].plot([], [], "o", color=ORANGE, ms=6, mec="white", label="data")
    drawn.legend(loc="outside lower center", ncols=4)
    return drawn


@figure
def loss_curve() -> plt.Figure:
    """The loss over the steps: expected by theory, and of one trained network, in one call."""
    x = np.linspace(-1, 1, 12)[:, None]
    y, x_new = np.sin(3 * x[:, 0]), np.linspace(-1.5, 1.5, 61)[:, None]
    net = nk.MLP(1, (256,), activation="erf", weight_var=2.0, bias_var=0.2)
    descent = nk.GradientDescent(lr=0.02, steps=400)
    law = nk.forecast(net, x, y, descent, x_new)
    run = nk.simulate(net, net.init(0), x, y, descent)
    drawn, (panel,) = axes_row(1, 3.2)
    run.plot(panel, theory=law)
    return drawn


@figure
def digits() -> plt.Figure:
    """Test error on handwritten digits over training: forecast, and eight networks that were trained."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(pixels))[:700]
    pixels, labels = (pixels[order] - pixels.mean()) / pixels.std(), labels[order]
    x, x_new, truth = pixels[:200], pixels[200:], labels[200:]
    y = np.eye(10)[labels[:200]] - 0.1
    net = nk.MLP(64, (512,), 10, "relu", weight_var=2.0)
    lr = 1.0 / np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1]

    keep, count = {"z": lambda params: net(params, x_new)}, 8
    records = []
    for seed in range(count):
        start = net.init(jax.random.key(seed))
        early = nk.simulate(net, start, x, y, nk.GradientDescent(lr, 20), nk.Record(keep, 1))
        late = nk.simulate(net, early.params, x, y, nk.GradientDescent(lr, 980), nk.Record(keep, 20))
        records.append(np.concatenate([early.history["z"], late.history["z"][1:]]))
    steps = np.concatenate([early.history["time"], 20 + late.history["time"][1:]])
    shown = np.unique(np.searchsorted(steps, np.geomspace(1, steps[-1], 30)))

    def error(outputs):
        return 100 * np.mean(outputs.argmax(-1) != truth, axis=-1)

    one, together = error(np.stack(records)).mean(0), error(np.mean(records, axis=0))

    moments = np.geomspace(1, 1e5, 41).round()
    forecast = nk.forecast(net, x, y, nk.GradientDescent(lr, 1), x_new)
    of_one, of_few, of_all = [], [], []
    for moment in moments:
        law = forecast.at(moment)
        draws = law.sample(50, jax.random.key(0))
        of_one.append(error(draws).mean())
        of_few.append(error(law.mean + (draws - law.mean) / np.sqrt(count)).mean())
        of_all.append(error(law.mean))
    at = np.argmin(np.abs(moments - steps[-1]))
    print(
        f"  trained, step {steps[-1]:.0f}: one network {one[-1]:.1f} %, eight together {together[-1]:.1f} %"
    )
    print(
        f"  forecast, step {moments[at]:.0f}: {of_one[at]:.1f} % and {of_few[at]:.1f} %; all {of_all[at]:.1f} %"
    )

    drawn, (panel,) = axes_row(1, 3.7)
    rows = (("one network", of_one, one, BLUE), ("average of 8 networks", of_few, together, ORANGE))
    for name, predicted, found, color in rows:
        panel.plot(moments, predicted, color=color, label=f"{name}: forecast")
        panel.plot(steps[shown], found[shown], "o", color=color, ms=4.5, label=f"{name}: trained")
    panel.plot(moments, of_all, color=GRAY, ls="--", label="average of all networks: forecast")
    panel.set(xscale="log", xlabel="steps of gradient descent", ylabel="test error (%)", ylim=(0, 100))
    panel.legend()
    return drawn


@figure
def width() -> plt.Figure:
    """How wide is wide: the kernel settles, and networks become their linearization, as the width grows."""
    x, x_new = (np.random.default_rng(seed).normal(size=(n, 5)) for seed, n in ((0, 6), (1, 10)))
    y, settings = np.sin(x.sum(1)), dict(activation="tanh", weight_var=1.5, bias_var=0.1)
    limit = nk.kernels.NTK(nk.MLP(5, (1, 1), 1, **settings))(x)
    descent = nk.GradientDescent(lr=0.3 / np.linalg.eigvalsh(limit)[-1], steps=400)

    def kernel_distance(net, params):
        return jnp.mean((nk.kernels.EmpiricalNTK(net, params)(jnp.asarray(x)) - limit) ** 2) / np.mean(
            limit**2
        )

    def departure(net, params):
        line = nk.expand(net, params)
        real = net(nk.simulate(net, params, x, y, descent).params, x_new)
        straight = line(nk.simulate(line, params, x, y, descent).params, x_new)
        return jnp.mean((real - straight) ** 2)

    drawn, axes = axes_row(2)
    rows = (
        (kernel_distance, (16, 32, 64, 128, 256, 512), 200, -0.5, BLUE, (0.05, 0.1, 0.2, 0.4)),
        (departure, (16, 32, 64, 128, 256), 60, -1.0, ORANGE, (0.003, 0.01, 0.03, 0.1)),
    )
    for panel, (quantity, widths, size, power, color, ticks) in zip(axes, rows, strict=True):
        root, bar = [], []
        for n in widths:
            net = nk.MLP(5, (n, n), 1, **settings)
            found = nk.measure(partial(quantity, net), net, size, jax.random.key(0))
            root.append(float(np.sqrt(found.mean)))
            bar.append(float(found.sem / root[-1]))  # two standard errors of a root: 2 sem / (2 root)
        slope = np.polyfit(np.log(widths), np.log(root), 1)[0]
        print(f"  {quantity.__name__}: power {slope:.2f} of the width; at width {widths[-1]} {root[-1]:.4f}")
        panel.errorbar(
            widths, root, bar, fmt="o", color=color, ms=6, capsize=3, label="measured, ± 2 standard errors"
        )
        guide = root[-1] * (np.array(widths) / widths[-1]) ** power
        panel.plot(widths, guide, color=GRAY, ls="--", label=f"∝ width$^{{{power:g}}}$")
        panel.set(xscale="log", yscale="log", xlabel="width of both hidden layers")
        panel.set_xticks(widths, [str(n) for n in widths])
        panel.set_yticks(ticks, [str(tick) for tick in ticks])
        panel.minorticks_off()
        panel.legend()
    axes[0].set(title="tangent kernel against its limit", ylabel="relative distance")
    axes[1].set(title="trained network against its linearization", ylabel="distance of test outputs")
    return drawn


@figure
def filters() -> plt.Figure:
    """What each algorithm has learned of a direction, by the eigenvalue of that direction."""
    plain = nk.GradientDescent(lr=0.01, steps=100)
    panels = (
        (
            (nk.GradientFlow(time=1.0), "GradientFlow(1)", BLUE, "-"),
            (plain, "GradientDescent(0.01, 100)", ORANGE, "--"),
            (nk.Ridge(strength=1.0), "Ridge(1)", GREEN, "-."),
            (nk.DirectOptimization(), "DirectOptimization()", GRAY, ":"),
        ),
        (
            (plain.at(20), "GradientDescent(0.01, 20)", ORANGE, "-"),
            (nk.GradientDescent(0.01, 20, momentum=0.9), "… with momentum=0.9", PURPLE, "-"),
            (nk.GradientFlow(2.0, friction=1.0), "GradientFlow(2, friction=1)", BLUE, "--"),
        ),
    )
    drawn, axes = axes_row(2, sharey=True)
    for panel, algorithms, top in zip(axes, panels, (1e3, 1e2), strict=True):
        lam = np.geomspace(1e-2, top, 800)
        for algorithm, name, color, line in algorithms:
            stable = lam < 0.99 * algorithm.limit()
            panel.plot(lam[stable], 1 - algorithm.decay(lam[stable]), ls=line, color=color, label=name)
        panel.set(
            xscale="log", xlabel="eigenvalue λ of the kernel matrix", xlim=(1e-2, top), ylim=(-0.05, 2.0)
        )
        panel.legend(loc="upper left")
    axes[0].axvspan(plain.limit(), 1e3, color=ORANGE, alpha=0.12, lw=0)
    axes[0].text(plain.limit() * 1.1, 0.03, "λ > 2/lr\ndescent\ndiverges", fontsize=8.5, color=ORANGE)
    axes[0].set(ylabel="share learned, λ g(λ)", title="large eigenvalues first")
    axes[1].set_title("inertia overshoots")
    return drawn


@figure
def diagonal() -> plt.Figure:
    """Digits kept by the relu tangent kernel where the recursion as printed loses them."""
    x = np.random.default_rng(0).normal(size=(20, 10))
    depths = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
    angles = np.geomspace(1e-9, 1.0, 28)
    first = np.sqrt(10 / 2) * np.array([[1.0, 0.0] + [0.0] * 8])
    others = np.sqrt(10 / 2) * np.column_stack([np.cos(angles), np.sin(angles), np.zeros((28, 8))])
    exact = np.array([_exact_tangent(50, angle) for angle in angles])

    def library(depth: int, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
        return nk.kernels.NTK(nk.MLP(10, (1,) * depth, 1, "relu", weight_var=2.0))(x1, x2)

    drawn, axes = axes_row(2, sharey=True)
    for name, compute, color, mark in (
        ("recursion as printed", _printed_tangent, ORANGE, "s"),
        ("nearkernel", library, BLUE, "o"),
    ):
        # At equal inputs each layer adds the same: the tangent kernel is (depth + 1) K, here for a copy of x.
        on = [
            np.abs(np.diagonal(compute(L, x, x.copy())) / (0.2 * (L + 1) * (x * x).sum(1)) - 1).max()
            for L in depths.tolist()
        ]
        near = np.abs(compute(50, first, others)[0] / exact - 1)
        axes[0].plot(depths, on, mark, color=color, ms=5, label=name)
        axes[1].plot(angles, np.maximum(near, 1e-17), mark, color=color, ms=5, label=name)
        print(f"  {name}: worst error {max(on):.1e} at equal inputs, {near.max():.1e} near them")
    axes[0].set(
        title="equal inputs", xlabel="hidden layers", xscale="log", ylabel="relative error of the NTK"
    )
    axes[1].set(title="nearly parallel inputs, 50 hidden layers", xlabel="angle (rad)", xscale="log")
    axes[0].set(yscale="log", ylim=(3e-18, 1e-5))
    axes[0].set_xticks(depths[[0, 1, 3, 5, 7, 9, 11]], [str(L) for L in depths[[0, 1, 3, 5, 7, 9, 11]]])
    axes[0].minorticks_off()
    axes[0].legend(loc="center left")
    return drawn


def _printed_tangent(depth: int, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """The arc-cosine recursion as papers print it, in float64; C_W = 2, so variances stay as they are."""
    kernel = tangent = 2 * x1 @ x2.T / x1.shape[1]
    size = 2 * np.sqrt(np.outer((x1 * x1).sum(1), (x2 * x2).sum(1))) / x1.shape[1]
    for _ in range(depth):
        cosine = np.clip(kernel / size, -1.0, 1.0)
        phi = np.arccos(cosine)
        kernel = size * (np.sqrt(1 - cosine**2) + (np.pi - phi) * cosine) / np.pi
        tangent = kernel + (1 - phi / np.pi) * tangent
    return tangent


def _exact_tangent(depth: int, angle: float) -> float:
    """The relu tangent kernel of unit vectors to 50 digits."""
    with mpmath.workdps(50):
        phi = mpmath.mpf(float(angle))
        tangent = mpmath.cos(phi)
        for _ in range(depth):
            kernel = (mpmath.sin(phi) + (mpmath.pi - phi) * mpmath.cos(phi)) / mpmath.pi
            tangent = kernel + (1 - phi / mpmath.pi) * tangent
            phi = mpmath.acos(kernel)
        return float(tangent)
