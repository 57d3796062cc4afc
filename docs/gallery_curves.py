"""Figures of learning curves and of Bayesian networks of finite width; `gallery.py` runs them."""

import jax
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, axes_row, figure

import nearkernel as nk


def _digits(rows: int):
    from sklearn.datasets import load_digits

    x, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))[:rows]
    return ((x - x.mean(axis=0)) / x.std())[order], np.eye(10)[labels[order]] - 0.1


@figure
def learning_curve() -> plt.Figure:
    """The error over the number of examples, with real fits, and over the number of random features."""
    drawn, (left, right) = axes_row(2)
    x, y = _digits(400)
    net = nk.MLP(64, (256, 256), weight_var=2.0, bias_var=0.1)
    size = float(nk.kernels.NTK(net).diag(x).mean())
    curve = nk.learning_curve(net, x, y, nk.Ridge(0.1 * size), check=4)
    band = 2 * curve.sem
    left.fill_between(curve.sizes, curve.error - band, curve.error + band, color=BLUE, alpha=0.2, linewidth=0)
    left.loglog(curve.sizes, curve.error, color=BLUE, label="predicted, two standard errors")
    real = curve.trained
    left.errorbar(
        real.sizes, real.error, real.spread, fmt="o", ms=4, color=ORANGE, label="four real fits each"
    )
    ahead = curve.extrapolate(np.geomspace(400, 1600, 12))
    left.fill_between(ahead.sizes, ahead.low, ahead.high, color=GRAY, alpha=0.2, linewidth=0)
    left.plot(ahead.sizes, ahead.error, ":", color=GRAY, label="extrapolated")
    seen = np.isfinite(real.error)
    off = np.abs(real.error[seen] / curve.error[seen] - 1)
    print(f"  real fits are off by {100 * off.mean():.1f} % on average, {100 * off.max():.1f} % at most")
    print(f"  twice the digits: {curve.extrapolate([800]).error[0]:.3f} after {curve.error[-1]:.3f}")
    left.set(xlabel="digits to learn from", ylabel="squared error")
    left.legend()

    features = nk.learning_curve(
        nk.kernels.NNGP(nk.MLP(64, (256,), weight_var=2.0)), x, y, nk.Ridge(1e-5), sizes=[150]
    )
    counts = np.unique(np.rint(np.geomspace(20, 1500, 40)).astype(int))
    right.loglog(counts, [features.with_features(p)[0] for p in counts], color=BLUE, label="predicted")
    rng = np.random.default_rng(1)
    every, targets = _digits(1797)
    shown = (20, 40, 80, 120, 250, 500, 1200)
    means = []
    for p in shown:
        errors = []
        for _ in range(6):
            phi = np.maximum(every @ rng.normal(size=(64, p)) * (2 / 64) ** 0.5, 0) * (2 / p) ** 0.5
            rows, rest = np.split(rng.permutation(len(every)), [150])
            inner = phi[rows] @ phi[rows].T + 1e-5 * np.eye(150)
            fitted = phi[rest] @ (phi[rows].T @ np.linalg.solve(inner, targets[rows]))
            errors.append(((fitted - targets[rest]) ** 2).sum(axis=1).mean())
        means.append(np.mean(errors))
    right.plot(shown, means, "o", ms=4, color=ORANGE, label="drawn and fitted")
    print(
        "  features:",
        {
            p: (round(float(features.with_features(p)[0]), 2), round(float(m), 2))
            for p, m in zip(shown, means, strict=True)
        },
    )
    right.axvline(150, color=GRAY, lw=0.8, ls="--")
    right.set(xlabel="random features (150 digits)", ylabel="squared error")
    right.legend()
    return drawn


@figure
def curve_networks() -> plt.Figure:
    """The learning curve of infinitely wide networks beside really trained, centered ones of several widths."""
    drawn, (left, right) = axes_row(2)
    x, y = _digits(1797)
    rng = np.random.default_rng(2)
    make = lambda width: nk.MLP(64, (width, width), 10, weight_var=2.0, bias_var=0.1)
    descent = nk.GradientDescent(1 / float(np.linalg.eigvalsh(nk.kernels.NTK(make(1))(x[:400]))[-1]), 300)
    curve = nk.learning_curve(make(1), x[:400], y[:400], descent, sizes=[25, 35, 50, 70, 100, 130])
    left.loglog(curve.sizes, curve.error, color=BLUE, label="predicted, infinite width")
    band = 2 * curve.sem
    left.fill_between(curve.sizes, curve.error - band, curve.error + band, color=BLUE, alpha=0.2, linewidth=0)
    sizes, widths, colors = (30, 100), (64, 256, 512), (ORANGE, GREEN, PURPLE)
    here = np.exp(np.interp(np.log(sizes), np.log(curve.sizes), np.log(curve.error)))
    above, gaps, gaps_sem = np.empty((len(widths), len(sizes), 3)), [], []
    for i, (width, color) in enumerate(zip(widths, colors, strict=True)):
        model = nk.Scaled(make(width))
        for j, m in enumerate(sizes):
            for draw in range(3):
                rows, rest = np.split(rng.permutation(len(x)), [m])
                run = nk.simulate(model, model.init(jax.random.key(draw)), x[rows], y[rows], descent)
                found = np.asarray(model(run.params, x[rest]))
                above[i, j, draw] = ((found - y[rest]) ** 2).sum(axis=1).mean()
        mean, sem = above[i].mean(axis=1), above[i].std(axis=1, ddof=1) / 3**0.5
        left.errorbar(sizes, mean, sem, fmt="o", ms=4, color=color, label=f"trained, width {width}")
        gaps.append(mean / here - 1)
        gaps_sem.append(sem / here)
        print(
            f"  width {width}: " + ", ".join(f"{100 * gap:+.0f} %" for gap in gaps[-1]), f"at {sizes} digits"
        )
    for j, (m, color) in enumerate(zip(sizes, (BLUE, ORANGE), strict=True)):
        gap, sem = (100 * np.array(part)[:, j] for part in (gaps, gaps_sem))
        right.errorbar(widths, gap, sem, fmt="o-", ms=4, color=color, label=f"{m} digits")
    print(f"  the curve itself is known to {100 * (curve.sem / curve.error).mean():.0f} %")
    left.set(xlabel="digits to learn from", ylabel="squared error")
    left.legend(fontsize=8.5)
    right.axhline(0, color=GRAY, lw=0.8)
    right.set(xscale="log", xlabel="width of the trained networks", ylabel="above the curve, %")
    for panel, ticks in ((left, (30, 50, 100)), (right, widths)):
        panel.set_xticks(ticks, map(str, ticks))
        panel.set_xticks([], minor=True)
    right.legend(fontsize=8.5)
    return drawn


@figure
def posterior_width() -> plt.Figure:
    """The posterior variance of Bayesian networks over their width, against Hamiltonian Monte Carlo."""
    drawn, (axes,) = axes_row(1)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(54, 12))
    hidden = np.tanh(2 * x[:24] @ rng.normal(size=12) / 12**0.5)
    widths = np.unique(np.rint(np.geomspace(8, 400, 12)).astype(int))
    for scale, color in ((0.3, BLUE), (2.0, ORANGE)):
        nets = [nk.MLP(12, (int(n),), activation="erf") for n in widths]
        given = (x[:24], scale * hidden, x[24:], 0.03)
        law = [np.mean(nk.posterior(net, *given, theory=nk.FiniteWidth()).std ** 2) for net in nets]
        limit = np.mean(nk.posterior(nets[0], *given).std ** 2)
        axes.loglog(widths, law, color=color, label=f"targets x {scale:g}, random scale")
        axes.axhline(limit, color=color, ls=":", lw=1)
        for n in (10, 30, 100):
            found = nk.theory.measure_posterior(
                nk.MLP(12, (n,), activation="erf"),
                x[:24],
                scale * hidden,
                x[24:],
                0.03,
                0,
                samples=150,
                burn=200,
            )
            mean = np.mean(found.std**2)
            axes.errorbar(n, mean, np.mean(2 * found.std * found.std_sem), fmt="o", ms=5, color=color)
            theory = np.interp(np.log(n), np.log(widths), law)
            off = f"law {theory / mean - 1:+.0%}, infinite {limit / mean - 1:+.0%}"
            print(f"  targets x {scale:g}, width {n}: sampled {mean:.4f}, {off}")
    axes.set(xlabel="hidden neurons (24 points)", ylabel="posterior variance")
    axes.legend()
    return drawn
