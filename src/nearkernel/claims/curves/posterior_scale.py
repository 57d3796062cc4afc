"""A Bayesian network of finite width is a Gaussian process of random scale."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, statistical, unlike
from .._claim import generator
from .._drawing import BLUE, GRAY, ORANGE


class PosteriorScale(Claim):
    """With as many neurons as points, posterior variances are those of a process of random scale, not of NNGP."""

    source = "theory of Bayesian networks at finite width: a Gaussian process with a random scale"
    formula = "f | S ~ GP(0, S K),  S ~ Gamma(N/2, rate N/2),  given y"

    width: int = setting(24, "Hidden neurons.", low=4, high=200)
    points: int = setting(20, "Training points.", low=4, high=100)
    samples: int = setting(250, "Samples of each of eight chains.", low=50, high=5000, quick=120)

    def run(self, seed: int) -> Result:
        rng, n = generator(seed, "data"), self.points
        x = rng.normal(size=(n + 20, 10))
        y = 0.3 * np.tanh(2 * x[:n] @ rng.normal(size=10) / 10**0.5)
        rows, data = [], {}
        for activation, tolerance in (("linear", 0.0), ("erf", 0.2)):
            net = nk.MLP(10, (self.width,), activation=activation)
            drawn = nk.theory.measure_posterior(
                net, x[:n], y, x[n:], 0.03, seed, chains=8, samples=self.samples, burn=self.samples
            )
            law = nk.posterior(net, x[:n], y, x[n:], 0.03, theory=nk.FiniteWidth())
            process = nk.posterior(nk.kernels.NNGP(net), x[:n], y, x[n:], 0.03)
            variance = [float((each.std**2).mean()) for each in (law, drawn, process)]
            error = float(np.mean(2 * drawn.std * drawn.std_sem))  # points share their chains
            rows.append(
                statistical(f"mean variance, {activation}", variance[0], variance[1], error, tolerance)
            )
            if activation == "erf":
                rows.append(
                    unlike("mean variance, erf, of infinite width", variance[2], variance[1], sem=error)
                )
                data = {"measured": drawn.std, "scale law": law.std, "infinite width": process.std}
        linear = nk.MLP(10, (self.width,), activation="linear")
        few = slice(0, min(n, 8))
        known = nk.theory.deep_linear_posterior(x[few], y[few], (self.width,))
        found = nk.posterior(linear, x[few], y[few], x[n:], 0.0, theory=nk.FiniteWidth())
        rows.append(
            exact("deviation of a linear network without noise", known.std(x[n:])[0], found.std[0], 1e-9)
        )
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        data = result.data
        ends = [float(data["measured"].min()), float(data["measured"].max())]
        axes.plot(ends, ends, color=GRAY, lw=0.8)
        axes.plot(data["measured"], data["scale law"], "o", color=BLUE, label="random scale")
        axes.plot(
            data["measured"], data["infinite width"], "s", color=ORANGE, mfc="none", label="infinite width"
        )
        axes.set(xlabel="deviation, sampled", ylabel="deviation, theory")
