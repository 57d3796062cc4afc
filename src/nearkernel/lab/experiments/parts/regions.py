"""The program of the experiment `regions`, in pieces; braces hold settings."""

START = """
from matplotlib.collections import PolyCollection

width, depth, window, seed = {width}, {depth}, {window}, {seed}
net = nk.MLP(2, (width,) * depth, 1, "relu", weight_var=2.0, bias_var={bias_var})
params = drawn(net, seed)
box = ((-window, window), (-window, window))
_, axes = plt.subplots(1, {panels}, figsize=(5 * {panels}, 4.5))
"""
TRAIN = """
x, y = data({task!r}, seed)
fastest = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, params)(x))[-1]
descent = nk.GradientDescent(0.5 / fastest, {steps} // PARTS)
losses, steps, counts = [], [0], [nk.geometry.regions(net, params, box).count]
for part in range(1, PARTS + 1):
    run = nk.simulate(net, params, x, y, descent, nk.Record(every=descent.steps))
    params = run.params
    losses[part - 1 :] = run.history["loss"][[0, -1]] / len(x)
    if part == len(counts) ** 2:
        steps.append(part * descent.steps)
        counts.append(nk.geometry.regions(net, params, box).count)
"""
DRAW = """
found = nk.geometry.regions(net, params, box)
print(found.count, "regions of at most", nk.theory.region_bounds(net).layers)
look = dict(array=colored(found, {color!r}), cmap="RdBu_r", edgecolor="black", lw=0.3)
axes[0].add_collection(PolyCollection(found.vertices, **look))
angle = np.radians({direction})
end = window * np.array([np.cos(angle), np.sin(angle)])
axes[0].plot([-end[0], end[0]], [-end[1], end[1]], "--", color="gray", label="line")
axes[0].set(title="Regions", xlim=box[0], ylim=box[1], aspect="equal")

bends = nk.theory.breakpoints(net, params, -end, end)
places = np.array([-1, *(2 * bends - 1), 1])
at = places[:, None] * end
where = found.locate(at)
outputs = np.einsum("pc,pc->p", found.gradients[where, 0], at) + found.offsets[where, 0]
axes[1].plot(window * places, outputs, label="output")
axes[1].plot(window * places[1:-1], outputs[1:-1], "o", label="bends")
axes[1].set(title="Output along the line")

layers = np.arange(1, depth + 1)
switches = nk.theory.crossings(net, params, -end, end).per_layer(depth) / width
axes[2].plot(layers, nk.theory.mean_crossings(net, -end, end), "--", label="infinitely wide")
axes[2].plot(layers, switches, "o", label="this network")
axes[2].set(title="Switches per neuron along the line", xlabel="hidden layer", ylim=(0, 1.5))
"""
DRAW_TRAINED = """
for sign in -1, 1:
    axes[0].plot(*x[y == sign].T, "o", label=f"class {{sign}}")
axes[3].plot(steps, counts, label="regions")
axes[3].set(title="Regions during training", xlabel="step")
axes[4].semilogy(descent.steps * np.arange(len(losses)), losses, label="loss")
axes[4].set(title="Loss", xlabel="step")
"""
