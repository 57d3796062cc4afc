"""Class structure without labels: an autoencoder."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, setting
from .._claim import generator
from .._digits import digits, trained
from .._drawing import BLUE, GRAY, ORANGE, Figure


class UnlabeledOutliers(Claim):
    """The gradients of an autoencoder, which never sees labels, are grouped by the hidden classes of its inputs."""

    source = "graduate course: Hessians of classifiers, open question"
    formula = "G = sum_i J_i^T J_i: scatter of class means of J, for hidden and for random classes"

    points: int = setting(150, "Images of four digits.", low=60, high=400, quick=100)
    steps: int = setting(1500, "Steps of gradient descent.", low=200, high=10_000, quick=500)

    def run(self, seed: int) -> Result:
        import jax

        pixels, own = digits(4, self.points)
        centered = pixels - pixels.mean(axis=0)
        x = centered @ np.linalg.svd(centered, full_matrices=False)[2][:8].T  # eight principal components
        x /= x.std()
        net = nk.MLP(8, (12,), 8, "tanh", weight_var=1.0, parametrization="standard")
        start = net.init(jax.random.key(seed))
        lr = 0.5 / nk.geometry.sharpness(net, start, x, x)
        end = trained(net, start, x, x, nk.GradientDescent(lr, self.steps), "squared")
        left = [np.mean((np.asarray(net(p, x)) - x) ** 2) for p in (start, end)]
        with jax.enable_x64(True):
            leaves = jax.tree.leaves(jax.jacrev(lambda p: net(p, x))(end))
        j = np.concatenate(
            [np.asarray(leaf).reshape(len(x), 8, -1) for leaf in leaves], axis=2
        )  # (n, out, P)
        values = np.linalg.eigvalsh(j.reshape(-1, j.shape[2]).T @ j.reshape(-1, j.shape[2]))[::-1]
        total = np.sum((j - j.mean(axis=0)) ** 2)
        rng = generator(seed, "random classes")
        share = _between(j, own) / total
        chance = np.array([_between(j, rng.permutation(own)) / total for _ in range(20)])
        inputs = _between(x[:, None], own) / np.sum((x - x.mean(axis=0)) ** 2)
        rows = (
            at_least("error of the outputs, before over after training", 2.0, left[0] / left[1]),
            at_least(
                "share of scatter that hidden classes explain, over random classes",
                5.0,
                share / chance.mean(),
            ),
            at_least(
                "the same in standard deviations of random classes",
                4.0,
                (share - chance.mean()) / chance.std(),
            ),
            at_least("the same share over that of the inputs themselves", 0.3, share / inputs),
            at_least("largest eigenvalue over the median", 30.0, values[0] / np.median(values)),
        )
        return Result(
            rows,
            {
                "number": np.arange(1, 41),
                "eigenvalue": values[:40],
                "hidden": np.full(40, share),
                "random": np.full(40, chance.mean()),
            },
        )

    figure = Figure("number", log="y")
    figure.line(
        lambda data: data["eigenvalue"] / data["eigenvalue"][0], BLUE, "o", "eigenvalue / largest", ms=4
    )
    figure.line("hidden", ORANGE, "-", "share of hidden classes")
    figure.line("random", GRAY, "-", "share of random classes")


def _between(j: np.ndarray, own: np.ndarray) -> float:
    """Scatter of the class means of Jacobians, weighted by the sizes of classes."""
    mean = j.mean(axis=0)
    return float(
        sum(np.sum(own == c) * np.sum((j[own == c].mean(axis=0) - mean) ** 2) for c in np.unique(own))
    )
