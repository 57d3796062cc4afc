"""Draws every figure of the documentation from the library itself.

    python docs/gallery.py              # all of them
    python docs/gallery.py band width   # only these

Each function below is one figure: it computes, draws, and prints the numbers that `gallery.md` quotes.
"""

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import mpmath
import numpy as np
from PIL import Image

import nearkernel as nk
from nearkernel._ladder.job import Settings, cases, climb, slopes
from nearkernel._ladder.picture import draw as draw_ladder

sys.path.insert(0, str(Path(__file__).parent))  # so that this file can also be loaded from elsewhere
import gallery_exact
import gallery_features
import gallery_regimes
import gallery_regions
import gallery_scale
from drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, STYLE, axes_row

FOLDER = Path(__file__).parent / "figures"
FIGURES: dict[str, Callable[[], plt.Figure]] = {}


def figure(draw: Callable[[], plt.Figure]) -> Callable[[], plt.Figure]:
    """Registers a function under its own name."""
    FIGURES[draw.__name__] = draw
    return draw


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
        panel.plot(grid, networks.T, color=GREY, lw=0.6, alpha=0.45)
        low, high = now.mean - 2 * now.std, now.mean + 2 * now.std
        panel.fill_between(grid[:, 0], low, high, color=SKY, alpha=0.4, lw=0)
        panel.plot(grid, now.mean, color=BLUE, lw=2.2)
        panel.plot(x, y, "o", color=ORANGE, ms=6, mec="white", zorder=5)
        panel.set(title=f"after {moment} steps" if moment else "before training", xlabel="input x")
        panel.set(xlim=(-3, 3), ylim=(-5, 5))
    axes[0].set_ylabel("output z")
    axes[0].plot([], [], color=GREY, lw=0.9, label="40 trained networks")
    axes[0].plot([], [], color=BLUE, lw=2.2, label="forecast: mean")
    axes[0].fill_between([], [], color=SKY, alpha=0.4, lw=0, label="forecast: ± 2 deviations")
    axes[0].plot([], [], "o", color=ORANGE, ms=6, mec="white", label="data")
    drawn.legend(loc="outside lower center", ncols=4)
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
    for name, predicted, found, colour in rows:
        panel.plot(moments, predicted, color=colour, label=f"{name}: forecast")
        panel.plot(steps[shown], found[shown], "o", color=colour, ms=4.5, label=f"{name}: trained")
    panel.plot(moments, of_all, color=GREY, ls="--", label="average of all networks: forecast")
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
    for panel, (quantity, widths, size, power, colour, ticks) in zip(axes, rows, strict=True):
        root, bar = [], []
        for n in widths:
            net = nk.MLP(5, (n, n), 1, **settings)
            found = nk.measure(partial(quantity, net), net, size, jax.random.key(0))
            root.append(float(np.sqrt(found.mean)))
            bar.append(float(found.sem / root[-1]))  # two standard errors of a root: 2 sem / (2 root)
        slope = np.polyfit(np.log(widths), np.log(root), 1)[0]
        print(f"  {quantity.__name__}: power {slope:.2f} of the width; at width {widths[-1]} {root[-1]:.4f}")
        panel.errorbar(
            widths, root, bar, fmt="o", color=colour, ms=6, capsize=3, label="measured, ± 2 standard errors"
        )
        guide = root[-1] * (np.array(widths) / widths[-1]) ** power
        panel.plot(widths, guide, color=GREY, ls="--", label=f"∝ width$^{{{power:g}}}$")
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
    """What each algorithm has learnt of a direction, by the eigenvalue of that direction."""
    plain = nk.GradientDescent(lr=0.01, steps=100)
    panels = (
        (
            (nk.GradientFlow(time=1.0), "GradientFlow(1)", BLUE, "-"),
            (plain, "GradientDescent(0.01, 100)", ORANGE, "--"),
            (nk.Ridge(strength=1.0), "Ridge(1)", GREEN, "-."),
            (nk.DirectOptimization(), "DirectOptimization()", GREY, ":"),
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
        for algorithm, name, colour, line in algorithms:
            stable = lam < 0.99 * algorithm.limit()
            panel.plot(lam[stable], 1 - algorithm.decay(lam[stable]), ls=line, color=colour, label=name)
        panel.set(
            xscale="log", xlabel="eigenvalue λ of the kernel matrix", xlim=(1e-2, top), ylim=(-0.05, 2.0)
        )
        panel.legend(loc="upper left")
    axes[0].axvspan(plain.limit(), 1e3, color=ORANGE, alpha=0.12, lw=0)
    axes[0].text(plain.limit() * 1.1, 0.03, "λ > 2/lr\ndescent\ndiverges", fontsize=8.5, color=ORANGE)
    axes[0].set(ylabel="share learnt, λ g(λ)", title="large eigenvalues first")
    axes[1].set_title("inertia overshoots")
    return drawn


@figure
def gradients() -> plt.Figure:
    """Squared input gradients of random relu networks: drawn, by their exact law, and by the normal law."""
    d, size, colours = 64, 4000, (BLUE, ORANGE)
    x = jnp.asarray(np.random.default_rng(0).normal(size=d))

    def squares(net):
        def one(index):
            params = net.init(jax.random.fold_in(jax.random.key(0), index))
            return jax.grad(lambda row: net(params, row[None])[0, 0])(x) ** 2

        with jax.enable_x64(True):
            return np.asarray(jax.jit(lambda i: jax.lax.map(one, i, batch_size=16))(np.arange(size)))

    drawn, axes = axes_row(2)
    for (depth, n), colour in zip(((10, 64), (40, 64)), colours, strict=True):
        net = nk.MLP(d, (n,) * depth, 1, "relu", weight_var=2.0)
        found = squares(net)
        for panel, coordinates in zip(axes, (d, 1), strict=True):
            law = nk.statistics.input_gradient(net, coordinates)
            logs = np.log(found[:, :coordinates].sum(axis=1))
            (low, high), (mean, variance) = np.quantile(logs, [0.0005, 0.9995]), law.normal
            y = np.linspace(low, high, 300)
            normal = np.exp(-((y - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
            panel.hist(logs, np.linspace(low, high, 41), density=True, color=colour, alpha=0.3)
            panel.plot(y, law.pdf(y), color=colour, label=f"depth/width = {depth}/{n}: exact law")
            panel.plot(y, normal, color=colour, ls="--", lw=1.2, label="normal law")
            away = np.abs(np.sort(law.cdf(logs)) - (np.arange(size) + 0.5) / size).max()
            print(
                f"  depth {depth}, {coordinates} coordinates: draws are {away:.4f} from the exact law "
                f"(chance: below {1.63 / np.sqrt(size):.4f} in 99 %); the mean of the logarithm is {logs.mean():.2f} "
                f"(exact {law.log_mean:.2f}, normal law {mean:.2f}), its variance {logs.var():.2f} "
                f"(exact {law.log_var:.2f}, normal law {variance:.2f})"
            )
    axes[0].set(title="whole gradient", xlabel=r"$\ln\,|dz/dx|^2$", ylabel="density over networks")
    axes[1].set(title="one coordinate", xlabel=r"$\ln\,(dz/dx_1)^2$")
    axes[0].legend(loc="upper left", fontsize=8)
    return drawn


@figure
def advise() -> plt.Figure:
    """The picture of `nearkernel advise --activation gelu --depth 20 --width 512`."""
    from nearkernel._advise.advice import advise as advice_for
    from nearkernel._advise.options import Options
    from nearkernel._advise.picture import paint

    options = Options("gelu", 20, 512, None, None, (), 0)
    inputs = options.inputs()
    advice = advice_for(options, inputs, lambda what: None)
    for outcome in advice.outcomes:
        theory, found = outcome.predicted, outcome.measured
        print(
            f"  {outcome.start.name}: gradient factor {theory.gradient_factor:.2g}, measured "
            f"{found.gradient_factor:.2g} +- {found.gradient_factor_sem:.1g} on {found.networks} networks"
        )
    print(f"  bad draws: {advice.spread.bad_draw:.2%}")
    drawn = plt.figure(figsize=(8.6, 3.3), layout="constrained")
    paint(drawn, options, inputs, advice)
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
    for name, compute, colour, mark in (
        ("recursion as printed", _printed_tangent, ORANGE, "s"),
        ("nearkernel", library, BLUE, "o"),
    ):
        # At equal inputs each layer adds the same: the tangent kernel is (depth + 1) K, here for a copy of x.
        on = [
            np.abs(np.diagonal(compute(L, x, x.copy())) / (0.2 * (L + 1) * (x * x).sum(1)) - 1).max()
            for L in depths.tolist()
        ]
        near = np.abs(compute(50, first, others)[0] / exact - 1)
        axes[0].plot(depths, on, mark, color=colour, ms=5, label=name)
        axes[1].plot(angles, np.maximum(near, 1e-17), mark, color=colour, ms=5, label=name)
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


@figure
def shapes() -> plt.Figure:
    """Kernels as functions of the angle between two inputs of unit variance."""
    angle = np.linspace(0, np.pi, 181)
    circle = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])
    rows = (
        ("relu", 2.0, BLUE, "-"),
        ("erf", 1.7, ORANGE, "--"),
        ("gelu", 2.0, GREEN, "-."),
        ("tanh", 1.5, PURPLE, (0, (5, 1, 1, 1, 1, 1))),
        ("sin", 1.5, GREY, ":"),
    )
    drawn, axes = axes_row(2, sharey=True)
    for name, weight_var, colour, line in rows:
        net = nk.MLP(2, (1,) * 3, 1, name, weight_var=weight_var, bias_var=0.05)
        for panel, kernel in zip(axes, nk.kernels.nngp_and_ntk(net, circle[:1], circle), strict=True):
            panel.plot(np.degrees(angle), kernel[0] / kernel[0, 0], ls=line, color=colour, label=name)
    for panel, title in zip(axes, ("NNGP: alike before training", "NTK: how training spreads"), strict=True):
        panel.set(title=title, xlabel="angle between the inputs (degrees)", xticks=range(0, 181, 45))
    axes[0].set_ylabel("kernel / kernel at angle 0")
    axes[1].legend(ncols=2)
    return drawn


def _line_model(eps: float) -> nk.QuadraticModel:
    """In one dimension: 60 random waves; meta-features that let the waves in use grow."""
    rng = np.random.default_rng(3)
    waves, phases = 1.6 * rng.normal(size=(1, 60)), rng.uniform(0, 2 * np.pi, 60)

    def phi(x):
        return np.sqrt(2 / 60) * jnp.cos(x @ waves + phases)

    return nk.QuadraticModel(phi, lambda x, u: 8 * phi(x) * u, eps)


_LINE_X = np.array([-2.6, -1.9, -0.9, -0.2, 0.8, 1.5, 2.4])[:, None]
_LINE_Y = np.array([-0.5, 0.6, 0.8, -0.2, -0.7, 0.1, 0.6])


@figure
def nearly() -> plt.Figure:
    """A fit by the kernel, by orders 1 and 2, and by really training the quadratic model."""
    grid = np.linspace(-3, 3, 241)[:, None]
    drawn, axes = axes_row(2, 3.4)
    model, zero = _line_model(0.1), np.zeros((1, 60))
    lr = 1.0 / nk.solve(model, _LINE_X, _LINE_Y).lambda_max
    descent = nk.GradientDescent(lr)
    run = nk.simulate(model, zero, _LINE_X, _LINE_Y, descent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture shows how large the correction is
        terms = nk.solve(model, _LINE_X, _LINE_Y, descent, order=2).predict(grid).terms
    exact = np.asarray(model(run.params, grid))[:, 0]
    rows = (
        ("kernel (order 0)", GREY, "--"),
        ("nearly-kernel (order 1)", BLUE, "-"),
        ("order 2", GREEN, ":"),
    )
    axes[0].plot(grid, exact, color=ORANGE, lw=4, alpha=0.45, label="really trained")
    for k, (name, colour, line) in enumerate(rows):
        z = sum(terms[1 : k + 1], terms[0])
        axes[0].plot(grid, z, color=colour, ls=line, label=name)
        print(f"  eps = 0.1, {name}: largest error {np.abs(z - exact).max():.4f}")
    axes[0].plot(_LINE_X, _LINE_Y, "o", color="black", ms=5, zorder=5)
    axes[0].set(title="seven points, eps = 0.1", xlabel="input x", ylabel="output z", xlim=(-3, 3))
    axes[0].set_ylim(-1.35, 1.15)
    axes[0].legend(loc="lower center", ncols=2, fontsize=8.5)

    eps = np.geomspace(0.004, 0.2, 8)
    errors = []
    for each in eps:
        model = _line_model(each)
        exact = np.asarray(model(nk.simulate(model, zero, _LINE_X, _LINE_Y, descent).params, grid))[:, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            terms = nk.solve(model, _LINE_X, _LINE_Y, descent, order=2).predict(grid).terms
        errors.append([np.abs(sum(terms[1 : k + 1], terms[0]) - exact).max() for k in range(3)])
    for k, (name, colour, line) in enumerate(rows):
        column = np.array(errors)[:, k]
        slope = np.polyfit(np.log(eps[:4]), np.log(column[:4]), 1)[0]
        print(f"  {name}: error falls as eps^{slope:.2f}")
        axes[1].plot(eps, column, "o", ls=line, color=colour, ms=4, label=f"{name}: eps$^{{{slope:.2f}}}$")
    axes[1].set(xscale="log", yscale="log", xlabel="eps", ylabel="largest error on the line")
    axes[1].set(title="error against real training")
    axes[1].legend()
    return drawn


@figure
def drift() -> plt.Figure:
    """The kernel of one point before and after training, as predicted and as trained."""
    grid, model = np.linspace(-3, 3, 241)[:, None], _line_model(0.1)
    lr = 1.0 / nk.solve(model, _LINE_X, _LINE_Y).lambda_max
    run = nk.simulate(model, np.zeros((1, 60)), _LINE_X, _LINE_Y, nk.GradientDescent(lr))
    solution = nk.solve(model, _LINE_X, _LINE_Y, nk.GradientDescent(lr), order=1)
    drawn, axes = axes_row(2, 3.3)
    before = nk.kernels.FeatureKernel(model.phi)
    after = nk.kernels.EmpiricalNTK(model, run.params)
    for at, colour in ((2, BLUE), (5, GREEN)):
        point = _LINE_X[at : at + 1]
        axes[0].plot(grid, before(point, grid)[0], color=GREY, ls="--", lw=1.2)
        axes[0].plot(grid, after(point, grid)[0], color=ORANGE, lw=4, alpha=0.45)
        axes[0].plot(grid, solution.effective_kernel(point, grid)[0], color=colour)
        axes[0].axvline(point[0, 0], color=colour, lw=0.8, ls=":")
    for line, name in (
        ({"color": GREY, "ls": "--"}, "before training"),
        ({"color": ORANGE, "lw": 4, "alpha": 0.45}, "after real training"),
        ({"color": BLUE}, "effective kernel, first order"),
    ):
        axes[0].plot([], [], label=name, **line)
    axes[0].set(title="kernel of two training points", xlabel="input x", ylabel="k(x, x')", xlim=(-3, 3))
    axes[0].set_ylim(axes[0].get_ylim()[0], 1.45 * axes[0].get_ylim()[1])
    axes[0].legend(loc="upper left", fontsize=8.5)

    record = nk.Record(["kernel"], every=1)
    early = nk.simulate(
        model, np.zeros((1, 60)), _LINE_X, _LINE_Y, nk.GradientDescent(lr, steps=400), record
    ).history["kernel"][:, :, 0, :, 0]
    start = early[0]
    moved = np.linalg.norm(early - start, axis=(1, 2)) / np.linalg.norm(start)
    end = np.linalg.norm(solution.effective_kernel(_LINE_X) - start) / np.linalg.norm(start)
    exact = np.linalg.norm(after(_LINE_X) - start) / np.linalg.norm(start)
    print(f"  the kernel matrix moved by {exact:.3f} of its norm; first order says {end:.3f}")
    axes[1].plot(np.arange(1, 401), moved[1:], color=ORANGE, lw=3, alpha=0.7, label="real training")
    axes[1].axhline(end, color=BLUE, ls="--", label="first order, end of training")
    axes[1].set(xscale="log", xlabel="steps of gradient descent", ylabel="|k(t) - k(0)| / |k(0)|")
    axes[1].set(title="how far the kernel matrix moves", ylim=(0, None))
    axes[1].legend(loc="lower right")
    return drawn


_TERMS, _FEATURES, _TRAIN, _TEST = 4, 40, 30, 200
_DIRECTIONS = np.linalg.qr(np.random.default_rng(0).normal(size=(_FEATURES, _TERMS)))[0].T


def regularized_problem(seed: int, useful: bool) -> tuple[np.ndarray, ...]:
    """Noisy targets of a quadratic model with eps = 0.3, whose meta-features the learner has (`useful`) or not."""
    rng = np.random.default_rng(seed)
    count = _TRAIN + _TEST
    features, shapes = rng.normal(size=(count, _FEATURES)), rng.normal(size=(count, _TERMS))
    w = 2 * _DIRECTIONS.sum(0) + 0.3 * rng.normal(size=_FEATURES) / np.sqrt(_FEATURES)
    y = features @ w + 0.5 * 0.3 * (shapes * (_DIRECTIONS @ w) ** 2).sum(1)
    if not useful:
        shapes = rng.normal(size=(count, _TERMS))
    y[:_TRAIN] += 0.3 * rng.normal(size=_TRAIN)
    x = np.concatenate([features, shapes], axis=1)
    return x[:_TRAIN], y[:_TRAIN], x[_TRAIN:], y[_TRAIN:]


def regularized_model(eps: float) -> nk.QuadraticModel:
    return nk.QuadraticModel(
        lambda x: x[:, :_FEATURES],
        lambda x, u: (x[:, _FEATURES:] * (_DIRECTIONS @ u)) @ _DIRECTIONS,
        eps,
    )


@figure
def helps() -> plt.Figure:
    """The test loss over eps: exact, to second order, and its best eps, for useful and for random meta-features."""
    drawn, axes = axes_row(2, 3.4, sharey=True)
    eps = np.linspace(-0.2, 0.5, 25)
    for panel, useful in zip(axes, (True, False), strict=True):
        x, y, x_new, y_new = regularized_problem(0, useful)
        solution = nk.solve(regularized_model(0.1), x, y, nk.DirectOptimization(), order=2)
        found = solution.feature_learning(x_new, y_new)
        exact, scale = found.curve(eps), 2 / _TEST
        best, least = found.best_eps, eps[np.nanargmin(exact)]
        print(f"  useful {useful}: eps* {best:.3f}, exact minimum near {least:.3f}; ", end="")
        print(f"loss {found.loss * scale:.2f} at 0, {found.curve([best])[0] * scale:.2f} at eps*")
        panel.plot(eps, exact * scale, color=ORANGE, lw=4, alpha=0.45, label="exact, trained at each eps")
        panel.plot(eps, found.predicted(eps) * scale, color=BLUE, label="to second order at eps = 0")
        panel.axvline(best, ymax=0.55, color=GREEN, ls="--", label=f"eps* = {best:.2f}")
        panel.plot([0], [found.loss * scale], "o", color=GREY, ms=6, label="kernel, eps = 0")
        panel.set(title="useful meta-features" if useful else "random meta-features", xlabel="eps")
        panel.legend(loc="upper left", fontsize=8.5)
    axes[0].set(ylabel="mean squared error on test data", ylim=(0, 42))
    return drawn


@figure
def phases() -> plt.Figure:
    """Ordered and chaotic phases of deep networks, and the line between them."""
    drawn, axes = axes_row(2, 3.6)
    for panel, name, most_weight, most_bias in zip(
        axes, ("tanh", "gelu"), (4.0, 3.0), (1.0, 0.4), strict=True
    ):
        weight_vars, bias_vars = np.linspace(0.05, most_weight, 60), np.linspace(0.0, most_bias, 50)
        found = nk.phase_diagram(name, weight_vars, bias_vars)
        levels = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6]
        norm = matplotlib.colors.TwoSlopeNorm(1.0, 0.0, 1.6)
        shown = np.clip(found.chi_perp, 0.0, 1.59).T
        mesh = panel.contourf(weight_vars, bias_vars, shown, levels, cmap="RdBu_r", norm=norm, alpha=0.8)
        line = found.critical_line[found.critical_line[:, 0] <= most_weight]
        panel.plot(*line.T, color="black", lw=2.0, label="χ⊥ = 1")
        exploding = np.isinf(found.kernel)
        if exploding.any():
            panel.contourf(
                weight_vars, bias_vars, exploding.T, levels=[0.5, 1.5], colors="none", hatches=["//"]
            )
        point = nk.critical(name)
        panel.plot(
            point.weight_var, point.bias_var, "o", color=ORANGE, ms=8, mec="white", clip_on=False, zorder=5
        )
        print(
            f"  {name}: critical at C_W = {point.weight_var:.6f}, C_b = {point.bias_var:.6f}; {point.message}"
        )
        panel.set(
            title=name,
            xlabel="weight variance $C_W$",
            xlim=(weight_vars[0], most_weight),
            ylim=(0, most_bias),
        )
        panel.grid(False)
        panel.text(0.12, 0.85, "ordered", transform=panel.transAxes, fontsize=11)
        panel.text(0.72, 0.12 if name == "tanh" else 0.85, "chaotic", transform=panel.transAxes, fontsize=11)
    axes[0].set_ylabel("bias variance $C_b$")
    axes[0].legend(loc="center left")
    bar = drawn.colorbar(mesh, ax=axes, shrink=0.9, ticks=[0.0, 0.4, 0.8, 1.0, 1.2, 1.6])
    bar.set_label("χ⊥ deep in the network")
    return drawn


@figure
def flow() -> plt.Figure:
    """The variance of a neuron over depth: at the critical point it falls by a power, off it exponentially or not."""
    depth, x = 300, np.ones((1, 2))
    layers = np.arange(1, depth + 2)
    drawn, axes = axes_row(2)
    rows = {
        "tanh": ((0.9, 0.0, SKY), (1.0, 0.0, BLUE), (1.2, 0.0, ORANGE)),
        "gelu": ((1.9, 0.17292239, SKY), (1.98305826, 0.17292239, BLUE), (2.05, 0.17292239, ORANGE)),
    }
    for panel, (name, settings) in zip(axes, rows.items(), strict=True):
        for weight_var, bias_var, colour in settings:
            scale = 1.0 if name == "tanh" else 2.0
            net = nk.MLP(2, (1,) * depth, 1, name, weight_var, bias_var)
            kernel = [float(layer.kernel[0, 0]) for layer in nk.propagate(net, scale * x)]
            critical = "  (critical)" if colour == BLUE else ""
            panel.plot(layers, kernel, color=colour, label=f"$C_W$ = {weight_var:g}{critical}")
            if colour == BLUE:
                print(
                    f"  {name} at criticality: K = {kernel[0]:.4f} in layer 1, {kernel[-1]:.6f} in layer {depth + 1}"
                )
        panel.set(xscale="log", yscale="log", xlabel="layer", title=name)
    law = nk.critical("tanh").kernel_law(layers[3:])
    axes[0].plot(layers[3:], law, color=GREY, ls="--", label="1/(2 layer)")
    axes[0].set(ylabel="variance K of a neuron", ylim=(1e-5, 2))
    axes[1].axhline(nk.critical("gelu").fixed_point, color=GREY, ls="--", label="K*")
    axes[1].set(ylim=(0.5, 50))
    for panel in axes:
        panel.legend()
    return drawn


@figure
def kurtosis() -> plt.Figure:
    """How far outputs are from Gaussian: excess kurtosis over depth / width, theory and drawn networks."""
    drawn, axes = axes_row(2, 3.6, sharey=True)
    rows = (("relu", 2.0, BLUE, "o"), ("tanh", 1.0, ORANGE, "s"))
    x, most = np.ones((1, 4)), 10
    for panel, width in zip(axes, (32, 128), strict=True):
        for name, weight_var, colour, mark in rows:
            net = nk.MLP(4, (width,) * most, 1, name, weight_var)
            layers = list(nk.propagate(net, x, order=1))[1:]
            theory = [
                3 * float(layer.four_point.item() / layer.kernel.item() ** 2) / width for layer in layers
            ]
            ratio = np.arange(1, most + 1) / width
            panel.plot(ratio, theory, color=colour, label=f"{name}: order 1/n")

            def moments(params, net=net):
                """E[z^2] and E[z^4] / 3 of every layer, averaged over its weights."""
                z = net.layer_outputs(params, jnp.asarray(x))[:-1]
                own = jnp.stack([net.weight_var * jnp.mean(net.activation(layer) ** 2) for layer in z])
                return own, own**2

            found = nk.measure(moments, net, 16_000 if width == 32 else 3_000, jax.random.key(0))
            second, fourth = found.mean
            excess = 3 * (fourth / second**2 - 1)
            error = 3 * found.sem[1] / second**2
            panel.errorbar(
                ratio, excess, 2 * error, fmt=mark, color=colour, ms=5, capsize=2, label=f"{name}: drawn"
            )
            if name == "relu":
                exact = 3 * ((1 + 5 / width) ** np.arange(1, most + 1) - 1)
                panel.plot(ratio, exact, color=colour, ls=":", label="relu: exact, 3 (1 + 5/n)^l - 3")
            print(
                f"  {name}, width {width}, {most} hidden layers: {theory[-1]:.3f} to order 1/n, drawn {excess[-1]:.3f}"
            )
        panel.set(title=f"width {width}", xlabel="hidden layers / width")
    axes[0].set_ylabel("excess kurtosis of a neuron")
    axes[0].legend()
    return drawn


@figure
def ladder() -> plt.Figure:
    """What `nearkernel ladder` draws: networks really trained, and their distance from each order."""
    settings = Settings(alphas=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0), widths=(64, 128, 256, 512, 1024))
    rungs = [climb(settings, case, lambda _: None) for case in cases(settings)]
    drawn = plt.figure(figsize=(8.6, 3.8), layout="constrained")
    draw_ladder(drawn, rungs, settings)
    for sweep in ("alpha", "width"):
        print(f"  slopes over {sweep}: {slopes(rungs, sweep)}")
    return drawn


FIGURES |= gallery_regimes.FIGURES
FIGURES |= gallery_exact.FIGURES
FIGURES |= gallery_regions.FIGURES
FIGURES |= gallery_features.FIGURES
FIGURES |= gallery_scale.FIGURES


def _save(drawn: plt.Figure, path: Path) -> None:
    """As a PNG of 128 colours: a third of the size, and no eye sees it."""
    drawn.canvas.draw()
    pixels = Image.fromarray(np.asarray(drawn.canvas.buffer_rgba())).convert("RGB")
    pixels.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    plt.close(drawn)


def main(names: list[str]) -> None:
    unknown = set(names) - set(FIGURES)
    if unknown:
        sys.exit(f"unknown figure {', '.join(sorted(unknown))}; there are {', '.join(FIGURES)}")
    FOLDER.mkdir(exist_ok=True)
    for name in names or FIGURES:
        start = time.perf_counter()
        print(name)
        with plt.rc_context(STYLE):
            drawn = FIGURES[name]()
            _save(drawn, FOLDER / f"{name}.png")
        size = (FOLDER / f"{name}.png").stat().st_size
        print(f"  {name}.png: {size / 1000:.0f} kB, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
