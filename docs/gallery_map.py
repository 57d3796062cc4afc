"""The map of regimes: which theory predicts a trained network, over richness and width; `gallery.py` runs it."""

import functools
import warnings

import jax
import matplotlib.pyplot as plt
import numpy as np
from drawing import GREY, axes_row, figure
from matplotlib.colors import LogNorm

import nearkernel as nk

_STEPS, _SEEDS = 80, 3
_RICHNESS, _WIDTHS = (0.03, 0.07, 0.15, 0.25, 0.5, 1.0, 2.0), (32, 128, 512, 2048)
_THEORIES = ("lazy: order 0", "nearly lazy: order 2", "rich: the limit")
_CHOICE = {"lazy": 0, "nearly lazy": 1, "rich": 2}  # of a theory, by regime


@functools.cache
def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sixteen points in ten dimensions, of which the label needs one."""
    draw = np.random.default_rng(3).normal(size=(28, 10))
    x = np.sqrt(10) * draw / np.linalg.norm(draw, axis=1, keepdims=True)
    return x[:16], np.sign(x[:16, 0]), x[16:]


def _network(width: int, parametrization: str = "ntk") -> nk.MLP:
    return nk.MLP(10, (width,), 1, "tanh", weight_var=2.0, parametrization=parametrization)


def _limit(richness: float, rate: float) -> np.ndarray:
    x, y, new = _data()
    clouds = nk.statistics.Clouds(neurons=8192, scrambles=4, every=_STEPS)
    model = nk.Scaled(_network(64, "mean_field"), 1 / richness)
    return nk.forecast(model, x, y, nk.GradientDescent(rate * richness**2, _STEPS), new, clouds=clouds).mean


def _distances(richness: float, width: int, seed: int, rate: float, limit: np.ndarray) -> tuple:
    """Of order 0, order 2 and the limit from one trained network; and the regime that `nk.regime` names."""
    x, y, new = _data()
    alpha = 1 / (richness * width**0.5)
    model = nk.Scaled(_network(width), alpha)
    params = model.init(jax.random.key(seed))
    descent = nk.GradientDescent(rate / alpha**2, _STEPS)
    trained = np.asarray(model(nk.simulate(model, params, x, y, descent).params, new))[:, 0]
    expanded = nk.expand(model, params, degree=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # corrections are not small everywhere
        found = [nk.solve(expanded, x, y, descent, order).predict(new).mean for order in (0, 2)]
    errors = [np.linalg.norm(each - trained) / np.linalg.norm(trained) for each in (*found, limit)]
    return errors, nk.regime(model, y).name


@figure
def regime_map() -> plt.Figure:
    """Errors of three theories over richness and width, from trained networks, with the borders of `nk.regime`."""
    rate = 0.3 / float(np.linalg.eigvalsh(nk.kernels.NTK(_network(8))(_data()[0]))[-1])
    errors = np.empty((len(_WIDTHS), len(_RICHNESS), _SEEDS, 3))
    chosen = np.empty(errors.shape[:3], int)
    for j, richness in enumerate(_RICHNESS):
        limit = _limit(richness, rate)
        for i, width in enumerate(_WIDTHS):
            for seed in range(_SEEDS):
                errors[i, j, seed], name = _distances(richness, width, seed, rate, limit)
                chosen[i, j, seed] = _CHOICE[name]
    best = errors.argmin(axis=3)
    taken = np.take_along_axis(errors, chosen[..., None], 3)[..., 0]
    wide = np.array(_WIDTHS) >= 512
    for name, rows in (("all", slice(None)), ("512 and 2048", wide)):
        near = (taken[rows] <= 1.5 * errors[rows].min(axis=3) + 0.01).mean()
        print(f"  widths {name}: the regime names the best of three, or one nearly as good, in {near:.0%}")
    means = errors.mean(axis=2)
    for i, width in enumerate(_WIDTHS):
        cells = "; ".join(
            " ".join(f"{100 * value:.1f}" for value in means[i, j]) for j in range(len(_RICHNESS))
        )
        print(f"  width {width}: {cells} %")
    return _drawn(means, best)


def _drawn(means: np.ndarray, best: np.ndarray) -> plt.Figure:
    drawn, panels = axes_row(3, 2.9, sharey=True)
    for k, (panel, name) in enumerate(zip(panels, _THEORIES, strict=True)):
        panel.grid(False)
        shades = panel.imshow(
            np.maximum(100 * means[..., k], 0.03), cmap="YlOrRd", norm=LogNorm(0.03, 100), aspect="auto"
        )
        for i, j in np.ndindex(*means.shape[:2]):
            share = 100 * means[i, j, k]
            strong = (best[i, j] == k).mean() > 0.5
            panel.text(
                j, i, f"{share:.2g}" if share < 9.95 else f"{share:.0f}", ha="center", va="center", fontsize=8,
                fontweight="bold" if strong else "normal", color="white" if share > 30 else "black",
            )  # fmt: skip
        for border in (1.5, 3.5):  # 0.1 and 0.3, where nk.regime changes its name
            panel.axvline(border, color=GREY, lw=1.2, ls="--")
        panel.set_xticks(range(len(_RICHNESS)), [f"{value:g}" for value in _RICHNESS])
        panel.set_yticks(range(len(_WIDTHS)), [str(width) for width in _WIDTHS])
        panel.set(title=name, xlabel="richness × targets")
    panels[0].set_ylabel("width")
    drawn.colorbar(shades, ax=list(panels), label="error of one network, %", fraction=0.05)
    return drawn
