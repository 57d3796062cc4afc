"""The figure of learning rates over the width, standard and maximal update; `gallery.py` runs it."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, ORANGE, SKY, figure
from sklearn.datasets import load_digits

import nearkernel as nk

BASE, STEPS, BATCH, LATE = 64, 60, 64, 15
RATES = {"sgd": 2.0 ** np.arange(-6, 3), "adam": 2.0 ** np.arange(-13, -3)}


def losses(width: int, parametrization: str, optimizer: str, seeds: int) -> np.ndarray:
    """(seeds, rates): cross-entropy per digit, mean of the last 15 of 60 batches of 64; inf if it diverged."""
    pixels, labels = load_digits(return_X_y=True)
    x, y = jnp.asarray((pixels - 8) / 6, jnp.float32), jnp.asarray(labels)
    net = nk.MLP(64, (width, width), 10, "relu", 2.0, 0.0, parametrization, BASE)
    factors = (
        net.lr_factors(optimizer)
        if parametrization == "mup"
        else [{"weight": 1.0, "bias": 0.0} for _ in net.sizes[1:]]
    )
    adam = nk.Adam(1.0, STEPS)

    def outputs(params, x):
        for layer, entry in enumerate(params):
            x = (jax.nn.relu(x) if layer else x) @ entry["weight"] + entry["bias"]
        return x

    def loss(params, chosen):
        logs = jax.nn.log_softmax(outputs(params, x[chosen]))
        return -jnp.mean(jnp.take_along_axis(logs, y[chosen][:, None], axis=1))

    def run(rate, params, batches):
        def step(state, each):
            params, first, second = state
            count, chosen = each
            value, slope = jax.value_and_grad(loss)(params, chosen)
            first = jax.tree.map(lambda m, g: adam.beta1 * m + (1 - adam.beta1) * g, first, slope)
            second = jax.tree.map(lambda v, g: adam.beta2 * v + (1 - adam.beta2) * g**2, second, slope)
            if optimizer == "adam":
                slope = jax.tree.map(lambda m, v: adam.direction((m, v), count), first, second)
            params = jax.tree.map(lambda p, f, g: p - (rate * f).astype(p.dtype) * g, params, factors, slope)
            return (params, first, second), value

        zeros = jax.tree.map(jnp.zeros_like, params)
        return jax.lax.scan(step, (params, zeros, zeros), (jnp.arange(STEPS), batches))[1][-LATE:].mean()

    all_rates = jax.jit(lambda params, rates, batches: jax.lax.map(lambda r: run(r, params, batches), rates))
    found = []
    for seed in range(seeds):
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), net.init(seed))
        batches = jax.random.randint(jax.random.key(100 + seed), (STEPS, BATCH), 0, len(x))
        found.append(np.asarray(all_rates(params, jnp.asarray(RATES[optimizer], jnp.float32), batches)))
    return np.where(np.isfinite(found), found, np.inf)


def best_rates(found: np.ndarray, optimizer: str) -> np.ndarray:
    """(seeds,): log2 of the best rate, from a parabola through the logarithms of the three lowest losses."""
    grid = np.log2(RATES[optimizer])
    best = []
    for row in np.log(np.minimum(found, 10.0)):
        at = int(np.clip(np.argmin(row), 1, len(row) - 2))
        left, middle, right = row[at - 1 : at + 2]
        bend = left - 2 * middle + right
        best.append(grid[at] + (np.clip(0.5 * (left - right) / bend, -1, 1) if bend > 0 else 0.0))
    return np.array(best)


@figure
def transfer() -> plt.Figure:
    """Losses of networks that classify digits over the learning rate, at three widths."""
    widths, seeds = (64, 256, 1024), 3
    drawn, panels = plt.subplots(2, 2, figsize=(8.6, 5.6), layout="constrained", sharey=True)
    for row, optimizer in zip(panels, ("sgd", "adam"), strict=True):
        for panel, parametrization in zip(row, ("standard", "mup"), strict=True):
            for width, color in zip(widths, (SKY, BLUE, ORANGE), strict=True):
                found = losses(width, parametrization, optimizer, seeds)
                best = best_rates(found, optimizer)
                print(f"  {optimizer} {parametrization} {width}: log2 rate {best.round(2)}", flush=True)
                mean = np.minimum(found, 10.0).mean(axis=0)
                panel.plot(RATES[optimizer], mean, "o-", ms=3.5, color=color, label=f"width {width}")
                panel.axvline(2.0 ** best.mean(), color=color, lw=1, ls="--")
            name = {"sgd": "gradient descent", "adam": "Adam"}[optimizer]
            scaling = {"standard": "one rate for all parameters", "mup": "muP"}[parametrization]
            panel.set(xscale="log", yscale="log", ylim=(0.03, 6), title=f"{name}, {scaling}")
        row[0].set_ylabel("loss after 60 steps")
    for panel in panels[1]:
        panel.set_xlabel("learning rate (muP: at width 64)")
    panels[0, 1].legend(loc="lower left")
    return drawn
