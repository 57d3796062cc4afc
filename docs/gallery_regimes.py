"""Figures of what training does beyond the small step; `gallery.py` runs them."""

import jax
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, axes_row, figure

import nearkernel as nk


@figure
def catapult() -> plt.Figure:
    """The plane of residual and kernel, in which a quadratic model on one point moves."""
    width = 1e4
    drawn, axes = axes_row(2, 3.6)
    for ratio, color in ((1.5, GREEN), (2.3, BLUE), (3.0, ORANGE), (3.7, PURPLE)):
        z, ntk = nk.theory.catapult(0.8, 1.0, 0.0, 1 / width, ratio, 400)
        print(f"  lr ntk = {ratio}: peak loss {0.5 * (z**2).max():.3g}, at the end {ratio * ntk[-1]:.3f}")
        axes[0].plot(np.abs(z) + 1e-12, ratio * ntk, ".-", color=color, lw=0.8, ms=4)
        axes[1].plot(0.5 * z[:110] ** 2 + 1e-20, color=color, label=f"lr · ntk(0) = {ratio}")
    axes[0].axhline(2.0, color=GRAY, ls="--", lw=1)
    axes[0].text(2e-7, 2.06, "stable below", color=GRAY, fontsize=9)
    axes[0].set(xscale="log", xlim=(1e-7, 3e2), ylim=(0, 4), xlabel="residual |z - y|", ylabel="lr · ntk")
    axes[0].set_title("the kernel shrinks while the residual is large")
    axes[1].set(yscale="log", ylim=(1e-12, 1e4), xlabel="step", ylabel="loss", title="loss")
    axes[1].legend(loc="upper right")
    return drawn


@figure
def lr_phases() -> plt.Figure:
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
    for name, model, color, line in models:
        found = [nk.theory.learning_rate_phase(model, theta, x, y, ratio / top, 600) for ratio in ratios]
        names = [phase.name for phase in found]
        fine = np.array(names) != "divergent"
        kept = [phase for phase in found if phase.name != "divergent"]
        print(f"  {name}: catapult from {_first(ratios, names, 'catapult')}, divergent from", end=" ")
        print(_first(ratios, names, "divergent"))
        axes[0].plot(
            ratios[fine], [p.losses.max() / p.losses[0] for p in kept], line, color=color, label=name
        )
        axes[1].plot(ratios[fine], [p.lr * p.moved.ntk_end for p in kept], line, color=color)
        axes[2].plot(ratios[fine], [p.moved.correlation for p in kept], line, color=color)
    axes[0].set(yscale="log", ylim=(0.7, 3e3), title="highest loss / first loss")
    axes[1].axhline(2.0, color=GRAY, lw=1)
    axes[1].set(title="lr · λ at the end", ylim=(0, 2.4))
    axes[2].set(title="correlation of weights", ylim=(0.6, 1.01))
    for panel in axes:
        panel.axvspan(2.0, 4.0, color=SKY, alpha=0.15, lw=0)
        panel.set(xlabel="lr · λ at initialization", xlim=(0.3, 5.3))
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
    for scaling, color, mark in (("ntk", BLUE, "o"), ("standard", GREEN, "s"), ("mean_field", ORANGE, "^")):
        found = np.zeros((len(widths), seeds, 3))
        for i, n in enumerate(widths):
            net = nk.MLP(4, (n,), 1, "tanh", weight_var=1.5, bias_var=0.1, parametrization=scaling)
            factors = 1.0 if scaling == "standard" else None  # one learning rate for all parameters
            for seed in range(seeds):
                theta = net.init(jax.random.key(seed))
                top = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, theta, factors)(x))[-1]
                descent = nk.GradientDescent(1 / top, 1500)
                end = nk.simulate(net, theta, x, y, descent, nk.Record(every=1500), lr_factors=factors).params
                moved = nk.theory.movement(net, theta, end, x, lr_factors=factors)
                found[i, seed] = moved.weights, moved.features, moved.kernel
        typical = np.exp(np.log(found).mean(axis=1))
        slopes = np.polyfit(np.log(widths), np.log(typical), 1)[0]
        print(f"  {scaling}: powers of the width {slopes.round(2)} (weights, features, kernel)")
        for panel, values in zip(axes, typical.T, strict=True):
            panel.plot(widths, values, mark + "-", color=color, ms=5, lw=1.2, label=scaling)
    for panel, title in zip(axes, ("weights", "features", "tangent kernel"), strict=True):
        panel.set(xscale="log", yscale="log", title=title, xlabel="width")
        panel.set_xticks(widths, [str(n) for n in widths])
        panel.minorticks_off()
    axes[0].set_ylabel("relative movement by training")
    axes[0].legend()
    return drawn


@figure
def edge() -> plt.Figure:
    """Sharpness rises to 2/lr and stays there; the flow does not know this limit."""
    x = np.linspace(-1, 1, 20)[:, None]
    y = np.cos(4 * np.arccos(x[:, 0]))
    net = nk.MLP(1, (30, 30, 30), 1, "tanh", weight_var=1.0, bias_var=0.1)
    theta = net.init(jax.random.key(1))
    first, span = nk.geometry.sharpness(net, theta, x, y), 400.0
    keep = {"sharpness": lambda p: nk.geometry.sharpness(net, p, x, y, steps=25)}
    drawn, axes = axes_row(2, 3.5)
    for factor, color in ((0.5, ORANGE), (0.25, PURPLE), (0.125, GREEN)):
        lr = factor / first
        steps = int(span / lr)
        history = nk.simulate(
            net, theta, x, y, nk.GradientDescent(lr, steps), nk.Record(keep, steps // 100)
        ).history
        late = history["sharpness"][-20:].mean()
        print(f"  lr = {lr:.4f}: 2/lr = {2 / lr:.1f}, sharpness at the end {late:.1f}")
        axes[0].plot(lr * history["time"], history["sharpness"], color=color, label=f"lr = {lr:.3f}")
        axes[0].axhline(2 / lr, color=color, ls="--", lw=1)
        axes[1].plot(lr * history["time"], history["loss"], color=color)
    history = nk.simulate(net, theta, x, y, nk.GradientFlow(span), nk.Record(keep, span / 60)).history
    print(
        f"  flow: {history['sharpness'][0]:.1f} at initialization, {history['sharpness'][-1]:.1f} at the end"
    )
    axes[0].plot(history["time"], history["sharpness"], color=GRAY, label="flow")
    axes[1].plot(history["time"], history["loss"], color=GRAY)
    axes[0].set(title="largest eigenvalue of the Hessian (dashed: 2/lr)", xlabel="lr · steps", ylim=(0, None))
    axes[0].legend(loc="upper left")
    axes[1].set(title="loss", xlabel="lr · steps", yscale="log")
    return drawn


def _few_digits(classes: int, count: int):
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    pixels, labels = pixels[labels < classes][:count], labels[labels < classes][:count]
    return (pixels - pixels.mean()) / pixels.std(), labels


@figure
def density() -> plt.Figure:
    """All eigenvalues of a Hessian: bulk, outliers, and which part of the Gauss-Newton matrix they come from."""
    classes = 5
    x, labels = _few_digits(classes, 200)
    y = np.eye(classes)[labels]
    net = nk.MLP(64, (64, 64), classes, "relu", weight_var=2.0, parametrization="standard")
    theta = net.init(jax.random.key(0))
    lr = 0.5 / nk.geometry.sharpness(net, theta, x, y, "cross_entropy")
    params = nk.simulate(
        net, theta, x, y, nk.GradientDescent(lr, 60), loss="cross_entropy", lr_factors=1.0
    ).params
    hessian = nk.geometry.Hessian(net, params, x, y, "cross_entropy")
    found = nk.geometry.spectral_density(hessian, outliers=12, probes=6)
    top = np.sort(found.outliers[found.outliers > 0])[::-1]
    print(
        f"  {hessian.size} parameters; largest eigenvalues {top[:6].round(1)}; lowest node {found.nodes.min():.1f}"
    )
    drawn, axes = axes_row(2, 3.5)
    unit = 0.01 * top[0]
    grid = np.linspace(found.nodes.min() - 5 * unit, top[0] + 5 * unit, 2000)
    axes[0].plot(grid, unit * hessian.size * found.density(grid, unit), color=BLUE, lw=1.4)
    axes[0].plot(top[: classes - 1], np.ones(classes - 1), "v", color=ORANGE, label=f"{classes - 1} outliers")
    axes[0].set(
        yscale="log", ylim=(2e-2, 1e4), xlabel="eigenvalue", ylabel="eigenvalues per 1 % of the largest"
    )
    axes[0].set_title(f"Hessian, {classes} classes")
    axes[0].legend()
    split = nk.theory.gauss_newton_classes(net, params, x, labels)._asdict()
    names = ("total", "between", "cross", "same", "within")
    colors = (GRAY, ORANGE, PURPLE, GREEN, BLUE)
    for row, (name, color) in enumerate(zip(names, colors, strict=True)):
        values = nk.geometry.top_eigenpairs(split[name], 12).values
        print(f"  {name}: {values[:6].round(1)}")
        axes[1].plot(values, np.full(12, -row), "|", color=color, ms=16, mew=1.8)
    axes[1].set_yticks(-np.arange(5), names)
    axes[1].set(xlabel="eigenvalue", title="Gauss-Newton matrix by classes", ylim=(-4.6, 0.6))
    return drawn


@figure
def collapse() -> plt.Figure:
    """Neural collapse of a classifier of digits, long after it makes no error."""
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    classes, decay = 5, 0.15
    x, labels = _few_digits(classes, 150)
    y = np.column_stack([np.eye(classes)[labels], np.zeros(len(x))])
    net = nk.MLP(64, (64, 64), classes, "relu", weight_var=2.0, parametrization="standard")

    def outputs(params, x):  # weight decay as one more output: the length of the parameters
        size = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
        return jnp.column_stack([net(params, x), jnp.full(len(x), jnp.sqrt(decay / len(x) * size))])

    def loss(z, y):
        return -jnp.sum(y[:, :-1] * jax.nn.log_softmax(z[:, :-1])) + 0.5 * jnp.sum(z[:, -1] ** 2)

    model, params, done, rows = nk.from_function(outputs), net.init(jax.random.key(0)), 0, []
    for every, count in ((2, 20), (40, 20), (400, 50)):
        keep = nk.Record({"flat": lambda p: ravel_pytree(p)[0]}, every)
        descent = nk.GradientDescent(5e-4, every * count, momentum=0.95)
        run = nk.simulate(model, params, x, y, descent, keep, loss=loss)
        for i, step in enumerate(run.history["time"][:-1]):
            with jax.enable_x64(True):
                kept = ravel_pytree(params)[1](run.history["flat"][i])
            features, classifier = nk.theory.last_layer(net, kept, x)
            found = nk.geometry.collapse(features, labels, classifier)
            error = np.mean(np.argmax(features @ classifier[0].T + classifier[1], axis=1) != labels)
            rows.append(
                (done + step, found.nc1, found.nc2_norms, found.nc2_angles, found.nc3, found.nc4, error)
            )
        params, done = run.params, done + every * count
    steps, *metrics, error = np.array(rows).T
    zero = steps[np.flatnonzero(error > 0)[-1] + 1]
    print(f"  no error from step {zero:.0f} on; at that step and at the end:")
    drawn, (panel,) = axes_row(1, 3.7)
    names = ("nc1: within / between", "nc2: norms", "nc2: angles", "nc3: self-duality", "nc4: nearest mean")
    for name, values, color in zip(names, metrics, (BLUE, GREEN, SKY, ORANGE, PURPLE), strict=True):
        print(f"    {name} {values[steps == zero][0]:.3f}, {values[-1]:.3f}")
        panel.plot(steps + 1, values, color=color, label=name)
    panel.axvline(zero + 1, color=GRAY, ls="--", lw=1)
    panel.text(1.08 * zero, 1.2, "no error from here on", color=GRAY, fontsize=9)
    panel.set(xscale="log", yscale="log", ylim=(3e-3, 2), xlabel="step", ylabel="distance from collapse")
    panel.legend(loc="lower right", ncols=2)
    return drawn


@figure
def bias() -> plt.Figure:
    """Diagonal networks between the L1 and the L2 solution, and how many points they need to find sparse weights."""
    rng = np.random.default_rng(3)
    d, truth = 40, np.zeros(40)
    truth[:4] = 1.0, -1.5, 0.8, 2.0
    x = rng.normal(size=(20, d))
    alphas = np.geomspace(1e-5, 10, 61)
    path = np.array([nk.theory.implicit_minimizer(x, x @ truth, alpha) for alpha in alphas])
    least = np.linalg.lstsq(x, x @ truth, rcond=None)[0]
    drawn, axes = axes_row(2, 3.5)
    axes[0].plot(alphas, path[:, 4:], color=GRAY, lw=0.6, alpha=0.6)
    axes[0].plot(alphas, path[:, :4], color=BLUE)
    axes[0].plot(np.full(4, alphas[0]), truth[:4], "o", color=ORANGE, ms=5, clip_on=False, label="truth")
    axes[0].plot(
        np.full(4, alphas[-1]), least[:4], "s", color=GREEN, ms=5, clip_on=False, label="minimum norm"
    )
    alpha = 0.1
    net = nk.theory.DiagonalNetwork(d, alpha)
    end = nk.simulate(net, net.init(), x, x @ truth, nk.GradientFlow(), tol=1e-8).params
    found = nk.theory.implicit_minimizer(x, x @ truth, alpha)
    print(f"  flow at alpha = {alpha}: {np.abs(net.weights(end) - found).max():.1e} from the minimizer")
    axes[0].plot(
        np.full(4, alpha), net.weights(end)[:4], "x", color=PURPLE, ms=6, label="gradient flow, trained"
    )
    axes[0].set(
        xscale="log", xlabel="scale α of the start", ylabel="weights", title="from sparse to minimum norm"
    )
    axes[0].legend(loc=(0.03, 0.12))
    points = np.arange(6, 41, 2)
    for alpha, color in ((10.0, GREEN), (0.1, SKY), (1e-3, BLUE), (1e-6, PURPLE)):
        errors = []
        for n in points:
            each = [rng.normal(size=(n, d)) for _ in range(12)]
            away = [np.linalg.norm(nk.theory.implicit_minimizer(x, x @ truth, alpha) - truth) for x in each]
            errors.append(np.mean(away) / np.linalg.norm(truth))
        print(
            f"  alpha = {alpha:g}: error below 5 % from {points[np.argmax(np.array(errors) < 0.05)]} points on"
        )
        axes[1].plot(points, errors, "o-", color=color, ms=3.5, lw=1.3, label=f"α = {alpha:g}")
    axes[1].set(xlabel="points", ylabel="relative error", title=f"recovery of 4 of {d} weights")
    axes[1].legend()
    return drawn


@figure
def margin() -> plt.Figure:
    """Direction and margin of a linear classifier over the logarithm of time."""
    rng = np.random.default_rng(2)
    w = rng.normal(size=5)
    x = rng.normal(size=(40, 5))
    labels = np.sign(x @ w)
    x = x + 0.3 * labels[:, None] * w
    times = np.geomspace(1, 2000, 60)
    drawn, axes = axes_row(2, 3.4)
    for loss, color, line in (("exponential", BLUE, "-"), ("logistic", ORANGE, "--")):
        path = nk.theory.margin_flow(x, labels, times, loss)
        axes[0].plot(times, path.direction_error, line, color=color, label=loss)
        axes[1].plot(times, path.margin_gap / path.limit.margin, line, color=color)
        slopes = [
            np.diff(np.log(q[-10:][[0, -1]])) / np.diff(np.log(times[-10:][[0, -1]]))
            for q in (path.direction_error, path.margin_gap)
        ]
        print(
            f"  {loss}: {len(path.limit.support)} support vectors;",
            f"powers of log t {slopes[0][0]:.3f}, {slopes[1][0]:.3f}",
        )
    run, lr, at = np.zeros(5), 0.05, []
    rows = x * labels[:, None]
    for step in range(200_001):
        if step in (100, 1000, 10_000, 200_000):
            at.append(
                (
                    np.log(1 + lr * step),
                    np.linalg.norm(run / np.linalg.norm(run) - path.limit.w * path.limit.margin),
                )
            )
        run = run + lr * rows.T @ np.exp(-rows @ run)
    print(f"  after 200000 steps of descent the direction is still {at[-1][1]:.1%} off")
    axes[0].plot(*np.array(at).T, "o", color=GRAY, ms=5, label="descent, up to 200 000 steps")
    guide = path.direction_error[-1] * times[-1] / times
    axes[0].plot(times, guide, color=GRAY, lw=0.9, ls=":", label="1 / log t")
    axes[0].set(title="distance from the maximum-margin direction")
    axes[1].set(title="missing share of the margin")
    for panel in axes:
        panel.set(xscale="log", yscale="log", xlabel="log t")
    axes[0].legend(fontsize=9)
    return drawn


@figure
def sgd() -> plt.Figure:
    """Fluctuation and dissipation of SGD over the learning rate, and the drift along a valley."""
    import jax.numpy as jnp

    rng = np.random.default_rng(4)
    phi = rng.normal(size=(30, 4))
    y = phi @ rng.normal(size=4) + rng.normal(size=30)
    top = np.linalg.eigvalsh(phi.T @ phi)[-1]
    linear = nk.from_function(lambda p, x: x @ p)
    drawn, axes = axes_row(2, 3.6)
    ratios = np.geomspace(0.02, 1.2, 40)
    exact = [nk.theory.sgd_stationary(phi, y, nk.SGD(ratio / top, 5, 1)) for ratio in ratios]
    axes[0].plot(ratios, [law.dissipation for law in exact], color=BLUE, label="linear model: exact")
    x = rng.normal(size=(60, 2))
    target = np.sin(2 * x[:, 0]) + 0.5 * rng.normal(size=60)
    net = nk.MLP(2, (3,), 1, "tanh", weight_var=1.5, bias_var=0.5)
    theta = net.init(jax.random.key(0))
    start = nk.simulate(
        net, theta, x, target, nk.GradientDescent(0.02, 20_000), nk.Record(every=20_000)
    ).params
    sharp = nk.geometry.sharpness(net, start, x, target)
    for name, model, begin, data, scale, color in (
        ("linear model", linear, exact[0].mean, (phi, y), top, BLUE),
        ("tanh network", net, start, (x, target), sharp, ORANGE),
    ):
        for i, ratio in enumerate((0.05, 0.1, 0.2, 0.4)):
            algorithm = nk.SGD(ratio / scale, 5, 120_000)
            sides = nk.theory.fluctuation_observables(model, begin, *data, algorithm)
            run = nk.simulate(
                model, begin, *data, algorithm, nk.Record(sides, every=20), key=jax.random.key(i)
            )
            left, right = (run.history[side][1000:].mean() for side in sides)
            print(f"  {name}, lr = {ratio}/sharpness: {left:.4g} and {right:.4g}")
            label = dict(label=f"{name}: θ·∇L") if i == 0 else {}
            axes[0].plot(ratio, left, "o", color=color, ms=6, **label)
            label = dict(label=f"{name}: lr/2 tr C") if i == 0 else {}
            axes[0].plot(ratio, right, "x", color="black", ms=5, mew=1.3, **label)
    axes[0].set(
        xscale="log", yscale="log", xlabel="lr · sharpness", title="both sides of the relation, averaged"
    )
    axes[0].legend(fontsize=8.5)

    n, batch, lr, steps = 8, 2, 0.02, 3000
    ones, signs = np.ones((n, 1)), 0.5 * np.tile([1.0, -1.0], n // 2)
    valley = nk.from_function(lambda p, x: p["u"] * jnp.sqrt(1 + p["v"] ** 2) * x[:, 0])
    keep = nk.Record({"v": lambda p: p["v"]}, every=30)

    def history(key):
        params = {"u": jnp.zeros(()), "v": jnp.asarray(1.5)}
        return nk.simulate(valley, params, ones, signs, nk.SGD(lr, batch, steps), keep, key=key).history["v"]

    with jax.enable_x64(True):
        runs = np.asarray(jax.jit(jax.vmap(history))(jax.random.split(jax.random.key(2), 100)))
    expected = [1.5]
    for _ in range(steps):
        scaled = np.sqrt(1 + expected[-1] ** 2) * ones
        spread = nk.theory.sgd_stationary(scaled, signs, nk.SGD(lr, batch, 1)).covariance[0, 0]
        expected.append(expected[-1] * (1 - lr * spread * n))
    print(
        f"  valley: mean of 100 runs {runs[:, -1].mean():.3f}, theory {expected[30 * (runs.shape[1] - 1)]:.3f}"
    )
    times = 30 * np.arange(runs.shape[1])
    axes[1].plot(times, runs[:25].T, color=GRAY, lw=0.5, alpha=0.6)
    axes[1].plot(times, runs.mean(0), color=ORANGE, label="mean of 100 runs")
    axes[1].plot(expected, color=BLUE, ls="--", label="theory")
    axes[1].set(xlabel="step", ylabel="v", title="SGD moves to the wide part of a valley (v = 0)")
    axes[1].legend()
    return drawn
