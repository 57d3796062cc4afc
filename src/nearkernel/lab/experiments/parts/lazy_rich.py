"""The program of the experiment `lazy-rich`, in pieces; braces hold settings."""

THEORY = """

points = np.array({points})
x, y = points[:, :1], points[:, 1]
richness, step, last = {richness}, {step}, {last}
one = dict(in_dim=1, widths=({width},), activation={activation!r}, weight_var={weight_var}, bias_var={bias_var})
lazy_net, net = nk.MLP(**one), nk.MLP(**one, parametrization="mean_field")
rates, modes = np.linalg.eigh(nk.kernels.NTK(lazy_net)(x))
lr = 0.5 / rates[-1]

model = nk.Scaled(net, 1 / richness)
descent = nk.GradientDescent(richness**2 * lr, steps=last)
law = nk.forecast(model, x, y, descent, GRID, theory=CLOUDS)
lazy = nk.forecast(lazy_net, x, y, nk.GradientDescent(lr, steps=step), GRID)
lazy_loss = (((1 - lr * rates) ** np.arange(last + 1)[:, None] * (modes.T @ y)) ** 2).sum(axis=1) / 2
kernels = law.kernels()
print(nk.regime(model, y).name, "the kernel moved by", kernels.moved)

_, axes = plt.subplots(1, 3, figsize=(15, 4.5))
axes[0].plot(GRID[:, 0], lazy.mean, "--", label="lazy limit")
axes[0].plot(GRID[:, 0], law.at(step).mean, label="rich limit")
axes[0].plot(x[:, 0], y, "ko", label="data")
axes[0].set(title="Functions learned")
axes[1].semilogy(np.maximum(lazy_loss, 1e-12), "--", label="lazy limit")
axes[1].semilogy(np.maximum(law.loss, 1e-12), label="rich limit")
axes[1].plot([step], [max(law.loss[step], 1e-12)], "o", label="now")
axes[1].set(title="Loss", xlabel="step", ylim=(1e-4, 10))
axes[2].plot(GRID[:, 0], nk.kernels.NTK(lazy_net)(GRID, np.zeros((1, 1)))[:, 0], "--", label="at initialization")
axes[2].plot(GRID[:, 0], kernels.ntk[len(x) :, len(x) + MIDDLE], label="after {last} steps")
axes[2].set(title="Tangent kernel of x and 0")
"""
CHECK = """with jax.enable_x64(True):
    for i in range({batches}):
        keys = jax.random.split(jax.random.key(i), {batch})
        for output in np.asarray(trained(model, keys, x, y, richness**2 * lr, step)):
            axes[0].plot(GRID[:, 0], output, color="C2", lw=0.7, label="trained networks")
"""
