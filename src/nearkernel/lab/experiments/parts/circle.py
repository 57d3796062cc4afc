"""The program of the experiment `circle`, in pieces; braces hold settings."""

THEORY = """\
import matplotlib.pyplot as plt
import numpy as np
import nearkernel as nk


def on_circle(angles):
    return np.column_stack([np.cos(angles), np.sin(angles)])


time, width, depth, points = {time}, {width}, {depth}, {points}
net = nk.MLP(2, (width,) * depth, 1, "{activation}", weight_var={weight_var}, bias_var={bias_var})
angles = 2 * np.pi * ((0.7 + 0.618034 * np.arange(points)) % 1.0) - np.pi
x, y = on_circle(angles), np.sin(2 * angles) + 0.5 * np.cos(angles)
around = np.linspace(-np.pi, np.pi, 128)
law = nk.forecast(net, x, y, nk.GradientFlow(time), on_circle(around[:16]))
laws = [law.predict(on_circle(part)) for part in np.split(around, 8)]
mean, std = np.concatenate([law.mean for law in laws]), np.concatenate([law.std for law in laws])

start, kernel = nk.kernels.nngp_and_ntk(net, x)
rates, modes = np.linalg.eigh(kernel)
strength = (modes.T @ y) ** 2 + np.einsum("ik,ij,jk->k", modes, start, modes)
times = np.geomspace(1e-3, 1e3, 61)
loss = lambda t: 0.5 * strength * np.exp(-2 * np.outer(t, np.maximum(rates, 0)))  # of each mode
print("fastest and slowest time:", 1 / rates[-1], 1 / rates[0])

_, axes = plt.subplots(1, 3, figsize=(15, 4.5))
axes[0].plot(around, mean, label="theory")
axes[0].fill_between(around, mean - 2 * std, mean + 2 * std, alpha=0.2)
axes[0].plot(angles, y, "o", label="training points")
axes[0].set(title="Outputs", xlabel="angle")
axes[1].plot(around, std, label="theory")
axes[1].plot(around, np.concatenate([law.at(0.0).std for law in laws]), "--", color="gray", label="at initialization")
axes[1].set(title="Standard deviation over networks", xlabel="angle", ylim=(0, None))
axes[2].loglog(times, loss(times).sum(axis=1), label="theory")
axes[2].plot(times, loss(times)[:, -1], "--", label="fastest mode")
axes[2].plot(times, loss(times)[:, 0], "--", label="slowest mode")
axes[2].plot([time], [loss(time).sum()], "o", label="now")
axes[2].set(title="Loss on the training points", xlabel="time", ylim=(1e-6, 100))
"""
CHECK = """
networks, steps = {networks}, {steps}


@jax.jit
@jax.vmap
def train(theta):
    run = nk.simulate(net, theta, x, y, nk.GradientDescent(time / steps, {part}), nk.Record(every={part}))
    return run.params, run.history["loss"][0]


@jax.jit
@jax.vmap
def observe(theta):
    return net(theta, on_circle(around))[:, 0], 0.5 * ((net(theta, x)[:, 0] - y) ** 2).sum()


outputs, losses, rng, batch = [], [], np.random.default_rng(0), {batch}
shapes = list(zip(net.sizes[:-1], net.sizes[1:]))
with jax.enable_x64(True):
    for _ in range(0, networks, batch):
        theta = [dict(weight=rng.normal(size=(batch, *s)), bias=rng.normal(size=(batch, s[1]))) for s in shapes]
        path = []
        for _ in range(steps // {part}):
            theta, before = train(theta)
            path.append(before)
        found, after = observe(theta)
        outputs.append(found)
        losses.append(np.stack([*path, after], axis=1))
outputs, losses = np.concatenate(outputs)[:networks], np.concatenate(losses)[:networks]
fell = losses[:, -1] <= losses[:, 0]  # not so if gradient descent left the flow
outputs, losses, networks = outputs[fell], losses[fell], fell.sum()


def dots(axes, x, y, sem):
    axes.plot(x, y, "o", label="mean of networks")
    axes.errorbar(x, y, sem, fmt="none")


for output in outputs[:20]:
    axes[0].plot(around, output, color="C1", lw=0.7, alpha=0.5, label="single networks")
mean, std, some = outputs.mean(axis=0), outputs.std(axis=0, ddof=1), slice(0, None, 8)
dots(axes[0], around[some], mean[some], std[some] / networks**0.5)
dots(axes[1], around[some], std[some], std[some] / (2 * networks - 2) ** 0.5)
parts = steps // {part}
at = [1, *(k for k in (2, 4, 8, 16, 32, 64, 128) if k < parts), parts]
sem = losses.std(axis=0, ddof=1) / networks**0.5
dots(axes[2], time * np.array(at) / parts, losses.mean(axis=0)[at], sem[at])
"""
END = """
for panel in axes:
    handles, labels = panel.get_legend_handles_labels()
    once = dict(zip(labels, handles))
    panel.legend(once.values(), once.keys())
plt.show()
"""
