"""The program of the experiment `lazy-rich`, in pieces; braces hold settings."""

THEORY = """\
import jax
import matplotlib.pyplot as plt
import numpy as np
import nearkernel as nk

points = np.array({points})
x, y, grid = points[:, :1], points[:, 1], np.linspace(-2, 2, 41)[:, None]
richness, step, last = {richness}, {step}, {last}
one = dict(in_dim=1, widths=({width},), activation={activation!r}, weight_var={weight_var}, bias_var={bias_var})
lazy_net, net = nk.MLP(**one), nk.MLP(**one, parametrization="mean_field")
rates, modes = np.linalg.eigh(nk.kernels.NTK(lazy_net)(x))
lr = 0.5 / rates[-1]

model = nk.Scaled(net, 1 / richness)
descent = nk.GradientDescent(richness**2 * lr, steps=last)
clouds = nk.MeanField(neurons=512, scrambles=2, every={every})
law = nk.forecast(model, x, y, descent, grid, theory=clouds)
lazy = nk.forecast(lazy_net, x, y, nk.GradientDescent(lr, steps=step), grid)
lazy_loss = (((1 - lr * rates) ** np.arange(last + 1)[:, None] * (modes.T @ y)) ** 2).sum(axis=1) / 2
kernels = law.kernels()
print(nk.regime(model, y).name, "the kernel moved by", kernels.moved)

_, axes = plt.subplots(1, 3, figsize=(15, 4.5))
axes[0].plot(grid[:, 0], lazy.mean, "--", label="lazy limit")
axes[0].plot(grid[:, 0], law.at(step).mean, label="rich limit")
axes[0].plot(x[:, 0], y, "ko", label="data")
axes[0].set(title="Functions learned")
axes[1].semilogy(np.maximum(lazy_loss, 1e-12), "--", label="lazy limit")
axes[1].semilogy(np.maximum(law.loss, 1e-12), label="rich limit")
axes[1].plot([step], [max(law.loss[step], 1e-12)], "o", label="now")
axes[1].set(title="Loss", xlabel="step", ylim=(1e-4, 10))
axes[2].plot(grid[:, 0], nk.kernels.NTK(lazy_net)(grid, np.zeros((1, 1)))[:, 0], "--", label="at initialization")
axes[2].plot(grid[:, 0], kernels.ntk[len(x) :, len(x) + 20], label="after {last} steps")
axes[2].set(title="Tangent kernel of x and 0")
"""
CHECK = """

@jax.jit
@jax.vmap
def trained(key):
    algorithm = nk.GradientDescent(richness**2 * lr, steps=step)
    run = nk.simulate(model, model.init(key), x, y, algorithm)
    return model(run.params, grid)[:, 0]


with jax.enable_x64(True):
    for i in range({batches}):
        for output in np.asarray(trained(jax.random.split(jax.random.key(i), {batch}))):
            axes[0].plot(grid[:, 0], output, color="C2", lw=0.7, label="trained networks")
"""
END = """
for panel in axes:
    handles, labels = panel.get_legend_handles_labels()
    once = dict(zip(labels, handles))
    panel.legend(once.values(), once.keys())
plt.show()
"""
