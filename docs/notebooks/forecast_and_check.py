"""The notebook of the same name as a script; `make.py` makes it."""
# ruff: noqa: B018

# %% [markdown]
# # Forecast an ensemble of networks, then train it
#
# Train the same network many times from different random initializations, and you get many different
# functions. nearkernel predicts their mean and their spread without training any of them. This notebook makes
# such a forecast, then trains networks and compares, and ends where the forecast fails: in narrow networks.
#
# It needs `pip install 'nearkernel[plot]'` and takes less than a minute.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

import nearkernel as nk

# %% [markdown]
# ## A network and some data
#
# Six points in one dimension, so that everything can be drawn. `weight_var` and `bias_var` are the variances
# of the initialization; the layers divide by the square root of their fan-in (NTK parametrization).

# %%
x = np.array([-2.2, -1.5, -0.4, 0.3, 1.4, 2.0])[:, None]  # inputs are (n, d)
y = np.array([-0.6, 0.5, 0.9, -0.3, -0.8, 0.4])
grid = np.linspace(-3, 3, 121)[:, None]  # where we look

net = nk.MLP(in_dim=1, widths=(256,), activation="erf", weight_var=4.0, bias_var=0.5)

# %% [markdown]
# ## Forecast
#
# An algorithm is an object: here, full-batch gradient descent. The largest stable learning rate is two over
# the largest eigenvalue of the tangent kernel, which is known before any network is drawn. We take half of
# that.

# %%
kernel = nk.kernels.NTK(net)(x)
lr = 1 / np.linalg.eigvalsh(kernel)[-1]
descent = nk.GradientDescent(lr=lr, steps=400)

law = nk.forecast(net, x, y, descent, grid)
law

# %% [markdown]
# `mean` and `std` are over all initializations. Near the data all networks agree; between and beyond the
# points they do not.

# %%
axes = law.plot()
axes.plot(x, y, "o", color="#D55E00")
axes.set(xlabel="input x", ylabel="output")
plt.show()

# %% [markdown]
# ## Train twenty of them
#
# `nk.simulate` trains a network for real, with the same algorithm object. `nk.Record` keeps what we ask for
# during the run: the outputs on the grid, every ten steps.

# %%
record = nk.Record({"outputs": lambda params: net(params, grid)[:, 0]}, every=10)
runs = [nk.simulate(net, net.init(jax.random.key(seed)), x, y, descent, record) for seed in range(20)]
print(runs[0].status, "- loss", f"{runs[0].history['loss'][0]:.2f} -> {runs[0].history['loss'][-1]:.4f}")

times = runs[0].history["time"]  # in steps
trained = np.stack([run.history["outputs"] for run in runs])  # (network, record, point)
trained.shape

# %% [markdown]
# A forecast moves in time at no cost: `law.at(10)` is the law after ten steps. Gray: the trained networks.
# Blue: the forecast, mean and two standard deviations.

# %%
fig, panels = plt.subplots(1, 3, figsize=(8.6, 3.1), sharey=True, layout="constrained")
for panel, steps in zip(panels, (0, 10, 400), strict=True):
    now, networks = law.at(steps), trained[:, list(times).index(steps)]
    panel.plot(grid, networks.T, color="#6B7280", lw=0.6, alpha=0.6)
    low, high = now.mean - 2 * now.std, now.mean + 2 * now.std
    panel.fill_between(grid[:, 0], low, high, color="#56B4E9", alpha=0.4, lw=0)
    panel.plot(grid, now.mean, color="#0072B2")
    panel.plot(x, y, "o", color="#D55E00")
    panel.set(title=f"after {steps} steps", xlabel="input x", ylim=(-5, 5))
panels[0].set_ylabel("output")
plt.show()

# %% [markdown]
# ## Compare in numbers
#
# A picture can deceive, so count: how many outputs lie within two standard deviations of the forecast (a
# Gaussian has 95 %), and how far the mean of the twenty networks is from the forecast, in standard errors of
# that mean.

# %%
for steps in (0, 10, 400):
    now, networks = law.at(steps), trained[:, list(times).index(steps)]
    inside = np.mean(np.abs(networks - now.mean) < 2 * now.std)
    distance = (networks.mean(axis=0) - now.mean) / (now.std / np.sqrt(len(networks)))
    off = np.sqrt(np.mean(distance**2))
    print(
        f"after {steps:3d} steps: {inside:.0%} within two deviations; mean off by {off:.1f} standard errors"
    )

# %% [markdown]
# `nk.measure` does this bookkeeping for you: it draws networks, evaluates any function of their parameters,
# and returns means with standard errors. Here the function trains the network. Drawing and training run as
# one compiled program.

# %%
points = np.array([[-1.0], [0.9], [2.8]])


def outputs_after_training(params):
    return net(nk.simulate(net, params, x, y, descent).params, points)[:, 0]


found = nk.measure(outputs_after_training, net, size=200, key=jax.random.key(7))
theory = nk.forecast(net, x, y, descent, points)
print("measured", found.mean.round(2), "+-", found.sem.round(2))
print("forecast", theory.mean.round(2))
print("distance", found.deviation(theory.mean).round(1), "standard errors")

# %% [markdown]
# ## Where it fails: narrow networks
#
# The forecast is that of an infinitely wide network. Of width $n$, mean and variance differ by a term of
# order $1/n$ and smaller ones. `order=1` computes this term, still without training. We train 400 networks of
# each width and compare the variance of their outputs at $x = 0.9$.

# %%
widths, at = (8, 16, 32, 64, 128), points[1:2]
short = nk.GradientDescent(lr=lr, steps=40)


def variances(width):
    """Variance at x = 0.9 after training: measured, its standard error, and forecast to order 1/width."""
    small = nk.MLP(in_dim=1, widths=(width,), activation="erf", weight_var=4.0, bias_var=0.5)
    law = nk.forecast(small, x, y, short, at, order=1)

    def squared_deviation(params):
        return (small(nk.simulate(small, params, x, y, short).params, at)[0, 0] - law.mean[0]) ** 2

    found = nk.measure(squared_deviation, small, size=400, key=jax.random.key(1))
    return found.mean, found.sem, law.variance[0]


measured, error, corrected = np.array([variances(width) for width in widths], dtype=float).T
infinite = nk.forecast(net, x, y, short, at).variance[0]
for row in zip(widths, measured, error, corrected, strict=True):
    print("width {:3d}: measured {:.2f} +- {:.2f}, forecast {:.2f}".format(*row))
print(f"infinite width: {infinite:.2f}")

# %%
fig, axes = plt.subplots(figsize=(5.6, 3.3), layout="constrained")
axes.axhline(infinite, color="#6B7280", ls="--", label="infinite width")
axes.plot(widths, corrected, color="#0072B2", label="to order 1/width")
axes.errorbar(widths, measured, 2 * error, fmt="o", color="#D55E00", label="400 trained networks")
axes.set(xscale="log", xlabel="width", ylabel="variance at x = 0.9", xticks=widths, xticklabels=widths)
axes.minorticks_off()
axes.legend()
plt.show()

# %% [markdown]
# ## Next
#
# - [Trained networks of finite width](../guides/finite-width.md): corrections, densities, and which width is enough.
# - [Lazy, nearly lazy, rich](../guides/lazy-or-rich.md): networks that learn features.
# - [Training algorithms](../guides/choosing-an-algorithm.md): momentum, SGD, schedules, other losses.
# - [A table of yours](table_of_yours.ipynb): predictions with intervals for an ordinary csv.
