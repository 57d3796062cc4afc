"""The program of the experiment `images`, in pieces; braces hold settings."""

THEORY = """\
import jax
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
import nearkernel as nk

shift, depth, sizes = {shift}, {depth}, [10, 20, 40, 70, 100]
images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))[:200]
images, labels = images[order].reshape(-1, 8, 8, 1) / 16, labels[order]
test = np.pad(images[100:], ((0, 0), (0, 0), (shift, 0), (0, 0)))[:, :, :8]
targets, truth = np.eye(10)[labels[:100]] - 0.1, labels[100:]
flat = lambda images: images.reshape(len(images), -1)
nets = {{
    "dense": nk.MLP(64, (256,) * depth, 10, "relu", weight_var=2.0, bias_var=0.1),
    "convolution": nk.CNN((8, 8, 1), (32,) * depth, 10, weight_var=2.0, bias_var=0.1, head="flatten"),
    "convolution, pooled": nk.CNN((8, 8, 1), (32,) * depth, 10, weight_var=2.0, bias_var=0.1, head="pool"),
}}
_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
kernels = {{}}
for name, net in nets.items():
    shape = flat if name == "dense" else lambda images: images
    ntk = nk.kernels.NTK(net)
    known, new = kernels[name] = ntk(shape(images[:100])), ntk(shape(test), shape(images[:100]))
    ridge, found = {ridge} * np.diag(known).mean(), np.empty((5, len(sizes)))
    for i in range(5):
        order = np.random.default_rng(i).permutation(100)
        for j, size in enumerate(sizes):
            some = order[:size]
            weights = np.linalg.solve(known[np.ix_(some, some)] + ridge * np.eye(size), targets[some])
            found[i, j] = ((new[:, some] @ weights).argmax(axis=1) == truth).mean()
    mean, sem = found.mean(axis=0), found.std(axis=0, ddof=1) / 5**0.5
    left.plot(sizes, mean, label=name)
    left.fill_between(sizes, mean - sem, mean + sem, alpha=0.2)
left.plot([10, 100], [0.1, 0.1], "--", color="gray", label="chance")
left.set(title="Accuracy", xlabel="examples", ylim=(0, 1))
right.imshow(test[0, ::-1, :, 0], cmap="Blues", origin="lower")
right.set(title="A test image")
"""
CHECK = """

def gained(net, keys, x, y, new, weights, largest, ridge, steps):
    lr = 0.5 / (largest + ridge)
    momentum = (1 - (lr * ridge) ** 0.5) / (1 + (lr * ridge) ** 0.5)

    def train(key):
        start = net.init(key)

        def loss(theta):
            moved = sum(jax.tree.leaves(jax.tree.map(lambda a, b: ((a - b) ** 2).sum(), theta, start)))
            return (weights[:, None] * (net(theta, x) - net(start, x) - y) ** 2).sum() / 2 + ridge / 2 * moved

        def step(state, _):
            ahead = jax.tree.map(lambda a, b: a + momentum * (a - b), *state)
            return (jax.tree.map(lambda a, b: a - lr * b, ahead, jax.grad(loss)(ahead)), state[0]), None

        theta = jax.lax.scan(step, (start, start), None, steps)[0][0]
        return net(theta, new) - net(start, new)

    return jax.jit(jax.vmap(train))(keys)


steps = {steps}
order = np.random.default_rng(0).permutation(100)
for name, net in nets.items():
    shape = flat if name == "dense" else lambda images: images
    accuracies = []
    for size, count in zip((20, 100), steps[name]):
        known = kernels[name][0]
        largest = np.linalg.eigvalsh(known[np.ix_(order[:size], order[:size])])[-1]
        x, weights = shape(images[:100][order]), (np.arange(100) < size).astype(float)
        with jax.enable_x64(True):
            keys, ridge = jax.random.split(jax.random.key(size), 3), {ridge} * np.diag(known).mean()
            found = gained(net, keys, x, targets[order], shape(test), weights, largest, ridge, count)
        accuracies.append((np.asarray(found).argmax(axis=2) == truth).mean(axis=1))
    width = 256 if name == "dense" else 32
    sem = np.std(accuracies, axis=1, ddof=1) / 3**0.5
    left.errorbar([20, 100], np.mean(accuracies, axis=1), sem, fmt="o", label=f"{{name}}, width {{width}}")
"""
END = """
left.legend()
plt.show()
"""
