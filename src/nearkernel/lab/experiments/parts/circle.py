"""The program of the experiment `circle`, in pieces; braces hold settings."""

THEORY = """
time, width, depth = {time}, {width}, {depth}
net = nk.MLP(2, (width,) * depth, 1, "{activation}", weight_var={weight_var}, bias_var={bias_var})
angles, y = data({points})
x = on_circle(angles)
law = nk.forecast(net, x, y, nk.GradientFlow(time), on_circle(np.split(ANGLES, PARTS)[0]))
laws = [law.predict(on_circle(part)) for part in np.split(ANGLES, PARTS)]
mean, std = np.concatenate([law.mean for law in laws]), np.concatenate([law.std for law in laws])

start, kernel = nk.kernels.nngp_and_ntk(net, x)
rates, modes = np.linalg.eigh(kernel)
strength = (modes.T @ y) ** 2 + np.einsum("ik,ij,jk->k", modes, start, modes)
loss = lambda t: 0.5 * strength * np.exp(-2 * np.outer(t, np.maximum(rates, 0)))  # of each mode
print("fastest and slowest time:", 1 / rates[-1], 1 / rates[0])

_, axes = plt.subplots(1, 3, figsize=(15, 4.5))
axes[0].plot(ANGLES, mean, label="theory")
axes[0].fill_between(ANGLES, mean - 2 * std, mean + 2 * std, alpha=0.2)
axes[0].plot(angles, y, "o", label="training points")
axes[0].set(title="Outputs", xlabel="angle")
axes[1].plot(ANGLES, std, label="theory")
axes[1].plot(ANGLES, np.concatenate([law.at(0.0).std for law in laws]), "--", color="grey", label="at initialization")
axes[1].set(title="Standard deviation over networks", xlabel="angle", ylim=(0, None))
axes[2].loglog(TIMES, loss(TIMES).sum(axis=1), label="theory")
axes[2].plot(TIMES, loss(TIMES)[:, -1], "--", label="fastest mode")
axes[2].plot(TIMES, loss(TIMES)[:, 0], "--", label="slowest mode")
axes[2].plot([time], [loss(time).sum()], "o", label="now")
axes[2].set(title="Loss on the training points", xlabel="time", ylim=(1e-6, 100))
"""
CHECK = """
networks, steps = {networks}, {steps}
outputs, losses, rng = [], [], np.random.default_rng(0)
with jax.enable_x64(True):
    for _ in range(0, networks, {batch}):
        theta, path = drawn(net, rng, {batch}), []
        for _ in range(steps // PART):
            theta, before = trained(net, theta, x, y, time / steps)
            path.append(before)
        found, after = observed(net, theta, x, y, on_circle(ANGLES))
        outputs.append(found)
        losses.append(np.stack([*path, after], axis=1))
outputs, losses = np.concatenate(outputs)[:networks], np.concatenate(losses)[:networks]
fell = losses[:, -1] <= losses[:, 0]  # not so if gradient descent left the flow
outputs, losses, networks = outputs[fell], losses[fell], fell.sum()


def dots(axes, x, y, sem):
    axes.plot(x, y, "o", label="mean of networks")
    axes.errorbar(x, y, sem, fmt="none")


for output in outputs[:SINGLE]:
    axes[0].plot(ANGLES, output, color="C1", lw=0.7, alpha=0.5, label="single networks")
mean, std, some = outputs.mean(axis=0), outputs.std(axis=0, ddof=1), CHECKED
dots(axes[0], ANGLES[some], mean[some], std[some] / networks**0.5)
dots(axes[1], ANGLES[some], std[some], std[some] / (2 * networks - 2) ** 0.5)
parts = steps // PART
at = [1, *(k for k in (2, 4, 8, 16, 32, 64, 128) if k < parts), parts]
sem = losses.std(axis=0, ddof=1) / networks**0.5
dots(axes[2], time * np.array(at) / parts, losses.mean(axis=0)[at], sem[at])
"""
