"""The program of the experiment `deep_linear`, in pieces; braces hold settings."""

THEORY = """

points, depth, width, prior_var, signal, seed = {points}, {depth}, {width}, {prior_var}, {signal}, {seed}
x, y, truth = data(points, signal, seed)


def evidence(depth, prior_var):
    return nk.theory.deep_linear_log_evidence(x, y, (width,) * depth, prior_var)


depths = sorted({{*DEPTHS, depth}})
best = {{n: nk.theory.best_prior_var(x, y, (width,) * n) for n in depths}}
posterior = nk.theory.deep_linear_posterior(x, y, (width,) * depth, prior_var)
linear = nk.theory.deep_linear_posterior(x, y, (), prior_var)
print("ln Z", posterior.log_evidence, "best prior variance", best[depth], "scale", INPUTS * posterior.scale)

_, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4))
at_best = {{n: evidence(n, best[n]) for n in depths}}
top = max(at_best.values())
left.plot(depths, [evidence(n, prior_var) for n in depths], label="your prior variance")
left.plot(depths, list(at_best.values()), "--", label="best prior variance")
left.plot([depth], [posterior.log_evidence], "o", label="this network")
left.set(title="Evidence over depth", xlabel="hidden layers", ylim=(top - 15, top + 2))
middle.semilogx(VARIANCES, [evidence(depth, v) for v in VARIANCES], label="your depth")
middle.plot([best[depth]], [at_best[depth]], "o", label="best")
middle.plot([prior_var], [posterior.log_evidence], "o", label="this network")
middle.set(title="Evidence over the prior variance", ylim=(top - 25, top + 3))

line = line_from(x[0], seed)
for name, law, style in ("linear network", linear, "--"), ("this network", posterior, "-"):
    mean, std = law.mean(line), law.std(line)
    right.plot(PLACES, mean, style, label=name)
    right.fill_between(PLACES, mean - std, mean + std, alpha=0.2)
right.plot(PLACES, line @ truth, "--", label="truth")
top = np.abs(line @ truth).max() + 2.5
right.set(title="Predictions and their standard deviation", xlabel="place on a line", ylim=(-top, top))
"""
CHECK = """
rng, scales = np.random.default_rng([seed, 2]), []
count, batch = {count}, {batch}
for done in range(0, count, batch):
    scales.append(drawn(rng, min(batch, count - done), depth, width))
scales = np.concatenate(scales)


def dots(axes, x, y, sem, name="drawn networks"):
    axes.plot(x, y, "o", label=name)
    axes.errorbar(x, y, sem, fmt="none")


layers = np.arange(1, depth + 1)
logs = [weighed(prior_var ** (n + 1) * scales[:, n - 1], x, y)[:2] for n in layers]
dots(left, layers, *np.transpose(logs))
logs = [weighed(v ** (depth + 1) * scales[:, -1], x, y)[:2] for v in VARIANCES[CHECKED]]
dots(middle, VARIANCES[CHECKED], *np.transpose(logs))
s = prior_var ** (depth + 1) * scales[:, -1]
weights = weighed(s, x, y)[2]
scale, away = weights @ s, linear.perp(line[CHECKED])
sem = 0.5 * away * (weights**2 @ (s - scale) ** 2 / scale) ** 0.5
dots(right, PLACES[CHECKED], linear.mean(line[CHECKED]) + away * scale**0.5, sem, "drawn networks, upper edge")
"""
