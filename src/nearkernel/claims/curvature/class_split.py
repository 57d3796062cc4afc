"""Where the large eigenvalues of a classifier's curvature come from."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, unlike
from .._claim import generator
from .._drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE


class ClassSplit(Claim):
    """The Gauss-Newton matrix of a classifier is a sum of four parts by classes, two of rank C and C (C - 2)."""

    source = "graduate course: Hessians of classifiers"
    formula = "G = between + cross + within + same, with averages weighted by the model's probabilities"

    points: int = setting(30, "Points.", low=12, high=60, quick=20)
    classes: int = setting(4, "Classes C.", low=3, high=5)

    def run(self, seed: int) -> Result:
        import jax
        from jax.flatten_util import ravel_pytree

        rng, c = generator(seed, "data"), self.classes
        x, labels = rng.normal(size=(self.points, 4)), np.arange(self.points) % c
        net = nk.MLP(4, (6,), c, "tanh", weight_var=1.5, bias_var=0.1)
        theta = net.init(jax.random.key(seed))
        split = nk.theory.gauss_newton_classes(net, theta, x, labels)
        parts = {name: part.dense() for name, part in split._asdict().items()}
        between, cross, within, same, total = (
            parts[name] for name in ("between", "cross", "within", "same", "total")
        )
        whole = between + cross + within + same
        size = np.linalg.norm(total)
        with jax.enable_x64(True):
            flat, back = ravel_pytree(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), theta))
            logs = lambda p: jax.nn.log_softmax(net(back(p), x))
            gradients, weights = np.asarray(jax.jacobian(logs)(flat)), np.exp(np.asarray(logs(flat)))
        plain = same + _unweighted(gradients, weights, labels)
        rank = lambda part: int(np.linalg.matrix_rank(part, tol=1e-9 * size, hermitian=True))
        rows = (
            exact("norm of the sum of the parts", size, np.linalg.norm(whole), 1e-10),
            exact("1 + distance of the sum from G", 1.0, 1 + np.linalg.norm(total - whole) / size, 1e-10),
            exact("rank of the part between classes", c, rank(between), 0.0),
            exact("rank of the cross part", c * (c - 2), rank(cross), 0.0),
            unlike(
                "1 + distance with weights in the sums alone",
                1.0,
                1 + np.linalg.norm(total - plain) / size,
                tolerance=1e-3,
            ),
        )
        return Result(rows, {name: np.linalg.eigvalsh(part)[::-1][: c * c] for name, part in parts.items()})

    def draw(self, axes, result):
        names = ("total", "between", "cross", "same", "within")
        for row, (name, color) in enumerate(zip(names, (GRAY, ORANGE, PURPLE, GREEN, BLUE), strict=True)):
            axes.plot(
                result.data[name], np.full(len(result.data[name]), -row), "|", ms=14, mew=1.6, color=color
            )
        axes.set_yticks(-np.arange(5), names)
        axes.set(xlabel="eigenvalue", ylim=(-4.6, 0.6))


def _unweighted(gradients: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The parts of wrong labels with plain averages over a class in place of weighted ones."""
    size, found = gradients.shape[2], 0.0
    for own in range(gradients.shape[1]):
        rows = np.flatnonzero(labels == own)
        others = [other for other in range(gradients.shape[1]) if other != own]
        means = {other: gradients[rows, other].mean(axis=0) for other in others}
        mean, total = np.mean(list(means.values()), axis=0), weights[rows][:, others].sum()
        found = found + total * np.outer(mean, mean)
        for other in others:
            share = weights[rows, other].sum()
            found = found + share * np.outer(means[other] - mean, means[other] - mean)
            away = gradients[rows, other] - means[other]
            found = found + (away * weights[rows, other][:, None]).T @ away
    return np.zeros((size, size)) + found
