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
    "dense": nk.MLP(64, (128,) * depth, 10, "relu", weight_var=2.0, bias_var=0.1),
    "convolution": nk.CNN((8, 8, 1), (16,) * depth, 10, weight_var=2.0, bias_var=0.1, head="flatten"),
    "convolution, pooled": nk.CNN((8, 8, 1), (16,) * depth, 10, weight_var=2.0, bias_var=0.1, head="pool"),
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
left.plot([10, 100], [0.1, 0.1], "--", color="grey", label="chance")
left.set(title="Accuracy", xlabel="examples", ylim=(0, 1))
right.imshow(test[0, ::-1, :, 0], cmap="Blues", origin="lower")
right.set(title="A test image")
"""
CHECK = """

def outputs(net, keys, x, y, lr, new):
    train = lambda key: nk.simulate(net, net.init(key), x, y, nk.GradientDescent(lr, steps=200)).params
    return jax.jit(jax.vmap(lambda key: net(train(key), new)))(keys)


for name, net in nets.items():
    shape = flat if name == "dense" else lambda images: images
    accuracies = []
    for size in (20, 100):
        some = np.random.default_rng(0).permutation(100)[:size]
        lr = 1 / np.linalg.eigvalsh(kernels[name][0][np.ix_(some, some)])[-1]
        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(size), 3)
            found = np.asarray(outputs(net, keys, shape(images[some]), targets[some], lr, shape(test)))
        accuracies.append((found.argmax(axis=2) == truth).mean(axis=1))
    width = net.widths[0] if name == "dense" else 16
    sem = np.std(accuracies, axis=1, ddof=1) / 3**0.5
    left.errorbar([20, 100], np.mean(accuracies, axis=1), sem, fmt="o", label=f"{{name}}, width {{width}}")
"""
END = """
left.legend()
plt.show()
"""
