"""Figures of models that learn features, order by order; `gallery.py` runs them."""

import warnings

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, axes_row, figure

import nearkernel as nk
from nearkernel._commands.ladder.picture import draw as draw_ladder
from nearkernel.forecasts.theory_ladder import Settings, cases, climb, slopes


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
        ("sin", 1.5, GRAY, ":"),
    )
    drawn, axes = axes_row(2, sharey=True)
    for name, weight_var, color, line in rows:
        net = nk.MLP(2, (1,) * 3, 1, name, weight_var=weight_var, bias_var=0.05)
        for panel, kernel in zip(axes, nk.kernels.nngp_and_ntk(net, circle[:1], circle), strict=True):
            panel.plot(np.degrees(angle), kernel[0] / kernel[0, 0], ls=line, color=color, label=name)
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
        ("kernel (order 0)", GRAY, "--"),
        ("nearly-kernel (order 1)", BLUE, "-"),
        ("order 2", GREEN, ":"),
    )
    axes[0].plot(grid, exact, color=ORANGE, lw=4, alpha=0.45, label="really trained")
    for k, (name, color, line) in enumerate(rows):
        z = sum(terms[1 : k + 1], terms[0])
        axes[0].plot(grid, z, color=color, ls=line, label=name)
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
    for k, (name, color, line) in enumerate(rows):
        column = np.array(errors)[:, k]
        slope = np.polyfit(np.log(eps[:4]), np.log(column[:4]), 1)[0]
        print(f"  {name}: error falls as eps^{slope:.2f}")
        axes[1].plot(eps, column, "o", ls=line, color=color, ms=4, label=f"{name}: eps$^{{{slope:.2f}}}$")
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
    for at, color in ((2, BLUE), (5, GREEN)):
        point = _LINE_X[at : at + 1]
        axes[0].plot(grid, before(point, grid)[0], color=GRAY, ls="--", lw=1.2)
        axes[0].plot(grid, after(point, grid)[0], color=ORANGE, lw=4, alpha=0.45)
        axes[0].plot(grid, solution.effective_kernel(point, grid)[0], color=color)
        axes[0].axvline(point[0, 0], color=color, lw=0.8, ls=":")
    for line, name in (
        ({"color": GRAY, "ls": "--"}, "before training"),
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
        panel.plot([0], [found.loss * scale], "o", color=GRAY, ms=6, label="kernel, eps = 0")
        panel.set(title="useful meta-features" if useful else "random meta-features", xlabel="eps")
        panel.legend(loc="upper left", fontsize=8.5)
    axes[0].set(ylabel="mean squared error on test data", ylim=(0, 42))
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
