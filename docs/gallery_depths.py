"""The figure of the best depth of trained networks of finite width; `gallery.py` runs it."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, GREEN, ORANGE, axes_row, figure
from sklearn.datasets import load_diabetes

import nearkernel as nk

_ROWS, _SETS, _CHECKED, _DEEPEST = 6, 12, 4, 10
_WIDTH, _PAIRS, _STEPS = 32, 100, 400  # of the networks that are trained


def _sets() -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of the diabetes data with their targets, standardized."""
    data = load_diabetes()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    y = (data.target - data.target.mean()) / data.target.std()
    rng = np.random.default_rng(0)
    chosen = [rng.choice(len(x), _ROWS, replace=False) for _ in range(_SETS)]
    return [(x[rows], y[rows]) for rows in chosen]


def _network(width: int, depth: int) -> nk.MLP:
    return nk.MLP(10, (width,) * depth, 1, "tanh", weight_var=1.0)  # critical


def _trained(depth: int, sets: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """Mean loss of rows left out, and its standard error, over pairs of networks with opposite last layers."""
    net = _network(_WIDTH, depth)

    @jax.jit
    def losses(keys, x, y, x_new, y_new, rate):
        def loss(params):
            return 0.5 * jnp.sum((net(params, x)[:, 0] - y) ** 2)

        def step(_, params):
            return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(loss)(params))

        def left_out(params):
            end = jax.lax.fori_loop(0, _STEPS, step, params)
            return 0.5 * (net(end, x_new[None])[0, 0] - y_new) ** 2

        def pair(key):
            params = net.init(key)
            other = [*params[:-1], jax.tree.map(jnp.negative, params[-1])]
            return 0.5 * (left_out(params) + left_out(other))

        return jax.vmap(pair)(keys)

    found = []
    for number, (x, y) in enumerate(sets):
        for row in range(_ROWS):
            others = np.delete(np.arange(_ROWS), row)
            rate = 0.25 / np.linalg.eigvalsh(nk.kernels.NTK(net)(x[others]))[-1]
            keys = jax.random.split(jax.random.key(1000 * number + row), _PAIRS)
            arguments = (x[others], y[others], x[row], y[row], rate)
            found.append(np.asarray(losses(keys, *(np.float32(each) for each in arguments))))
    each = np.array(found)
    return float(each.mean()), float(np.sqrt(each.var(axis=1, ddof=1).sum() / _PAIRS) / len(each))


@figure
def best_depth() -> plt.Figure:
    """Expected losses over the depth at several widths, with trained networks, and the best depth over the width."""
    sets = _sets()
    theory = [nk.theory.depth_losses(_network(64, _DEEPEST), *each) for each in sets]
    drawn, axes = axes_row(2, 3.4)
    depths = theory[0].depths
    for width, color in ((_WIDTH, BLUE), (128, GREEN), (512, ORANGE), (np.inf, GRAY)):
        curve = np.mean([each.at(width) for each in theory[:_CHECKED]], axis=0)
        label = "infinite width" if np.isinf(width) else f"width {width}"
        axes[0].plot(depths, curve, color=color, label=label)
        print(f"  {label}: {curve.round(3)}")
    for depth in (1, 2, 3, 4, 6):
        mean, error = _trained(depth, sets[:_CHECKED])
        axes[0].errorbar(depth, mean, 2 * error, fmt="o", color=BLUE, ms=4.5, mfc="white", capsize=2)
        print(f"  trained, width {_WIDTH}, depth {depth}: {mean:.4f} +- {error:.4f}")
    axes[0].set(xlabel="hidden layers", title="expected loss of a row left out", ylim=(0.28, 0.42))
    axes[0].legend()
    widths = np.geomspace(16, 512, 31)
    best = np.array([[each.best(width) for each in theory] for width in widths])
    axes[1].plot(
        widths, np.median(best, axis=1), color=BLUE, drawstyle="steps-mid", label="median of 12 sets"
    )
    axes[1].fill_between(widths, *np.quantile(best, [0.25, 0.75], axis=1), color=BLUE, alpha=0.15, lw=0)
    axes[1].plot(widths, 0.5 * np.sqrt(widths), "--", color=GRAY, label=r"$\sqrt{\mathrm{width}}\,/\,2$")
    axes[1].set(xscale="log", xlabel="width", title="best depth", ylim=(0, _DEEPEST + 0.5))
    axes[1].set_xticks([16, 32, 64, 128, 256, 512], ["16", "32", "64", "128", "256", "512"])
    axes[1].minorticks_off()
    axes[1].legend(loc="upper left")
    for width in (32, 64, 128, 256):
        all_best = [each.best(width) for each in theory]
        print(f"  width {width}: best depth {np.median(all_best):g}, of the sets {sorted(all_best)}")
    print("  width times expansion, depth 3:", np.sort([each.expansion[2] for each in theory]).round(0))
    for width, losses in _gelu(sets[:_CHECKED]).items():
        print(f"  gelu, width {width}: {losses.round(3)}")
    return drawn


def _gelu(sets: list[tuple[np.ndarray, np.ndarray]]) -> dict[float, np.ndarray]:
    """Mean losses of critical gelu networks of up to six hidden layers, by width."""
    critical = nk.critical("gelu")
    net = nk.MLP(10, (64,) * 6, 1, "gelu", critical.weight_var, critical.bias_var)
    scale = np.sqrt((critical.fixed_point - critical.bias_var) / critical.weight_var)  # the first layer at K*
    found = [nk.theory.depth_losses(net, scale * x, y) for x, y in sets]
    return {width: np.mean([each.at(width) for each in found], axis=0) for width in (_WIDTH, np.inf)}
