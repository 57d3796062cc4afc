"""The program of the experiment `deep_linear`, in pieces; braces hold settings."""

THEORY = """\
import matplotlib.pyplot as plt
import numpy as np
import nearkernel as nk

inputs, points, depth, width, prior_var = {inputs}, {points}, {depth}, {width}, {prior_var}
rng = np.random.default_rng({seed})
truth = rng.normal(size=inputs)
truth *= {signal} / np.linalg.norm(truth)
x = rng.normal(size=(inputs, inputs))[:points]
y = x @ truth


def evidence(depth, prior_var):
    return nk.theory.deep_linear_log_evidence(x, y, (width,) * depth, prior_var)


depths, variances = sorted({{*{depths}, depth}}), np.geomspace(0.1, 4.0, 31)
best = {{n: nk.theory.best_prior_var(x, y, (width,) * n) for n in depths}}
posterior = nk.theory.deep_linear_posterior(x, y, (width,) * depth, prior_var)
linear = nk.theory.deep_linear_posterior(x, y, (), prior_var)
print("ln Z", posterior.log_evidence, "best prior variance", best[depth], "scale", inputs * posterior.scale)

_, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4))
at_best = {{n: evidence(n, best[n]) for n in depths}}
top = max(at_best.values())
left.plot(depths, [evidence(n, prior_var) for n in depths], label="your prior variance")
left.plot(depths, list(at_best.values()), "--", label="best prior variance")
left.plot([depth], [posterior.log_evidence], "o", label="this network")
left.set(title="Evidence over depth", xlabel="hidden layers", ylim=(top - 15, top + 2))
middle.semilogx(variances, [evidence(depth, v) for v in variances], label="your depth")
middle.plot([best[depth]], [at_best[depth]], "o", label="best")
middle.plot([prior_var], [posterior.log_evidence], "o", label="this network")
middle.set(title="Evidence over the prior variance", ylim=(top - 25, top + 3))

places = np.linspace(-1, 2, 61)
new = np.random.default_rng([{seed}, 1]).normal(size=inputs)
line = x[0] + places[:, None] * (new - x[0])
for name, law, style in ("linear network", linear, "--"), ("this network", posterior, "-"):
    mean, std = law.mean(line), law.std(line)
    right.plot(places, mean, style, label=name)
    right.fill_between(places, mean - std, mean + std, alpha=0.2)
right.plot(places, line @ truth, "--", label="truth")
top = np.abs(line @ truth).max() + 2.5
right.set(title="Predictions and their standard deviation", xlabel="place on a line", ylim=(-top, top))
"""
CHECK = """
# Given all layers but the first, theta is Gaussian of variance S = |W_(L+1) ... W_2|^2 / inputs in all directions.
rng, scales = np.random.default_rng([{seed}, 2]), []
count, batch = {count}, {batch}
for done in range(0, count, batch):
    size = min(batch, count - done)
    row, found = rng.normal(size=(size, 1, width)) / width**0.5, []
    for layer in range(depth):
        if layer:
            row = row @ (rng.normal(size=(size, width, width)) / width**0.5)
        found.append((row**2).sum(axis=(1, 2)) / inputs)
    scales.append(np.stack(found, axis=1))
scales = np.concatenate(scales)  # of networks with 1, 2, ... hidden layers and prior variance 1

gram = x @ x.T
t, log_det = y @ np.linalg.solve(gram, y), np.linalg.slogdet(gram)[1]


def weighed(s):
    logs = -0.5 * (log_det + points * np.log(2 * np.pi * s) + t / s)
    shares = np.exp(logs - logs.max())
    mean, weights = shares.mean(), shares / shares.sum()
    few = np.nan if weights @ weights > 1 / {fewest} else 0.0  # one network alone explains the data
    return logs.max() + np.log(mean) + few, shares.std() / mean / len(s) ** 0.5 + few, weights + few


def dots(axes, x, y, sem, name="drawn networks"):
    axes.plot(x, y, "o", label=name)
    axes.errorbar(x, y, sem, fmt="none")


layers, some = np.arange(1, depth + 1), slice(0, None, 3)
dots(left, layers, *np.transpose([weighed(prior_var ** (n + 1) * scales[:, n - 1])[:2] for n in layers]))
dots(middle, variances[some], *np.transpose([weighed(v ** (depth + 1) * scales[:, -1])[:2] for v in variances[some]]))
s = prior_var ** (depth + 1) * scales[:, -1]
weights = weighed(s)[2]
scale, away = weights @ s, linear.perp(line[some])
sem = 0.5 * away * (weights**2 @ (s - scale) ** 2 / scale) ** 0.5
dots(right, places[some], linear.mean(line[some]) + away * scale**0.5, sem, "drawn networks, upper edge")
"""
END = """
left.legend(), middle.legend(), right.legend()
plt.show()
"""
