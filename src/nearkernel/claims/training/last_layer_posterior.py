"""Training random features from random weights is drawing from a posterior."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._claim import generator
from .._drawing import BLUE, GRAY


class LastLayerPosterior(Claim):
    """Random features with random readouts, trained to the end, are draws from the Gaussian process posterior."""

    source = "notes on random features and Gaussian processes: Gaussian processes"
    formula = "mean k K^-1 y,   covariance k_BB - k K^-1 k^T, if the trained kernel is that at initialization"

    features: int = setting(30, "Random features.", low=6, high=200)
    draws: int = setting(20_000, "Readouts that are drawn and trained.", low=500, high=200_000, quick=5000)

    def run(self, seed: int) -> Result:
        import jax

        rng = generator(seed, "data")
        x, y, new = (
            rng.normal(size=(5, 3)),
            rng.normal(size=5),
            np.linspace(-2, 2, 9)[:, None] * np.ones((1, 3)),
        )
        kernel = nk.kernels.RandomFeatures(3, self.features, jax.random.key(seed), "tanh", 2.0, 0.3)
        law = nk.posterior(kernel, x, y, new)
        with jax.enable_x64(True):
            phi, phi_new = (np.asarray(kernel.features(at)) for at in (x, new))
        w = rng.normal(size=(self.draws, self.features))
        # The end of gradient descent from w: the interpolating weights nearest to it.
        end = w - (w @ phi.T - y) @ np.linalg.pinv(phi).T
        z = end @ phi_new.T
        mean, variance = z.mean(axis=0), z.var(axis=0)
        error = z.std(axis=0) / np.sqrt(self.draws)
        spread = np.std((z - mean) ** 2, axis=0) / np.sqrt(self.draws)
        theory = np.diagonal(law.cov)
        rows = [statistical(f"mean at new input {i}", law.mean[i], mean[i], error[i]) for i in (0, 4, 8)]
        rows += [
            statistical(f"variance at new input {i}", theory[i], variance[i], spread[i]) for i in (0, 4, 8)
        ]
        names = ("theory", "theory std", "measured", "measured std")
        columns = (law.mean, np.sqrt(theory), mean, np.sqrt(variance))
        return Result(tuple(rows), {"at": new[:, 0], **dict(zip(names, columns, strict=True))})

    def draw(self, axes, result):
        data = result.data
        for sign in (-1, 1):
            axes.plot(data["at"], data["theory"] + sign * data["theory std"], color=BLUE, lw=0.8)
        axes.plot(data["at"], data["theory"], color=BLUE, label="posterior")
        axes.errorbar(
            data["at"], data["measured"], data["measured std"], fmt="o", color=GRAY, label="trained"
        )
        axes.set(xlabel="place on a line", ylabel="output")
