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
import jax.numpy as jnp
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
y = np.sin(1.5 * x[:, 0])
grid = np.linspace(-3, 3, 121)[:, None]  # where we look

net = nk.MLP(in_dim=1, widths=(1024,), activation="erf", weight_var=4.0, bias_var=0.5)

# %% [markdown]
# ## Forecast
#
# An algorithm is an object: here, full-batch gradient descent. The largest stable learning rate is two over
# the largest eigenvalue of the tangent kernel, which is known before any network is drawn. We take half of
# that.

# %%
kernel = nk.kernels.NTK(net)(x)
lr = round(1 / float(np.linalg.eigvalsh(kernel)[-1]), 4)
descent = nk.GradientDescent(lr=lr, steps=200)

law = nk.forecast(net, x, y, descent, grid)
law

# %% [markdown]
# `mean` and `std` are over all initializations. Near the data all networks agree; between and beyond the
# points they do not.

# %%
axes = law.plot()
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
for panel, steps in zip(panels, (0, 10, 200), strict=True):
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
# How many outputs lie within two standard deviations of the forecast? A Gaussian has 95 %. And how far is the
# mean of the twenty networks from the forecast, compared with the standard deviation? Chance alone gives about
# $1/\sqrt{20} = 0.22$.

# %%
for steps in (0, 10, 200):
    now, networks = law.at(steps), trained[:, list(times).index(steps)]
    inside = np.mean(np.abs(networks - now.mean) < 2 * now.std)
    off = np.sqrt(np.mean((networks.mean(axis=0) - now.mean) ** 2) / np.mean(now.std**2))
    print(f"after {steps:3d} steps: {inside:.0%} within two deviations, mean off by {off:.2f} deviations")

# %% [markdown]
# `nk.measure` does this bookkeeping for you: it draws networks, evaluates any function of their parameters,
# and returns means with standard errors. Here the function trains the network. Drawing and training run as
# one compiled program.

# %%
points = np.array([[-1.0], [0.9], [2.8]])


def outputs_after_training(params):
    return net(nk.simulate(net, params, x, y, descent).params, points)[:, 0]


found = nk.measure(outputs_after_training, net, size=50, key=jax.random.key(7))
theory = nk.forecast(net, x, y, descent, points)
print("measured", found.mean.round(2), "+-", found.sem.round(2))
print("forecast", theory.mean.round(2))
print("distance", found.deviation(theory.mean).round(1), "standard errors")

# %% [markdown]
# ## Where it fails: narrow networks
#
# So far the forecast was that of infinitely wide networks, whose outputs are Gaussian. Outputs of narrow
# networks are not: extreme values are more frequent. `theory=nk.FiniteWidth()` adds the corrections of order
# 1/width to the mean, the variance and the next two cumulants, still without training. An example with two points in
# two dimensions and networks of width 24:

# %%
pair, targets = np.array([[0.9, -0.4], [-0.3, 1.1]]), np.array([0.8, -0.5])
new = np.array([[-0.8, -0.5]])
narrow = nk.MLP(in_dim=2, widths=(24,), activation="gelu", weight_var=2.0, bias_var=0.2)
rate = 0.5 / np.linalg.eigvalsh(nk.kernels.NTK(narrow)(pair))[-1]
short = nk.GradientDescent(lr=rate, steps=40)

wide_law = nk.forecast(narrow, pair, targets, short, new)
narrow_law = nk.forecast(narrow, pair, targets, short, new, theory=nk.FiniteWidth())
print("excess kurtosis at infinite width: 0, at width 24:", narrow_law.kurtosis.round(2))

# %% [markdown]
# Train 20 000 such networks and count how many outputs fall into each bin. The function given to `nk.measure`
# returns a 1 for the bin of a network and 0 for the others, so that its mean is a histogram with error bars.

# %%
edges = np.linspace(-4.5, 4.5, 37)


def bins(params):
    output = narrow(nk.simulate(narrow, params, pair, targets, short).params, new)[0, 0]
    return jnp.diff(jnp.where(output < edges, 1.0, 0.0))


histogram = nk.measure(bins, narrow, size=20_000, key=jax.random.key(1))
middle, size = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
gauss = np.exp(-0.5 * ((middle - wide_law.mean) / wide_law.std) ** 2) / (wide_law.std * np.sqrt(2 * np.pi))

fig, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
axes.errorbar(
    middle, histogram.mean / size, 2 * histogram.sem / size, fmt=".", color="#D55E00", label="trained"
)
axes.plot(middle, gauss, color="#6B7280", ls="--", label="infinite width")
axes.plot(middle, narrow_law.density(middle), color="#0072B2", label="to order 1/width")
axes.set(yscale="log", ylim=(2e-5, 1), xlabel="output", ylabel="density")
axes.legend()
plt.show()

# %%
far = np.abs(middle) > 3
print(f"beyond 3: {histogram.mean[far].sum():.2%} of the networks")
print(f"forecast to order 1/width: {size * narrow_law.density(middle)[far].sum():.2%}")
print(f"forecast at infinite width: {size * gauss[far].sum():.2%}")

# %% [markdown]
# ## Next
#
# - [Trained networks of finite width](../guides/finite-width.md): corrections, densities, and which width is enough.
# - [Lazy, nearly lazy, rich](../guides/lazy-or-rich.md): networks that learn features.
# - [Training algorithms](../guides/choosing-an-algorithm.md): momentum, SGD, schedules, other losses.
# - [A table of yours](table_of_yours.ipynb): predictions with intervals for an ordinary csv.
