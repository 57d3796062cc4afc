"""The bounds of one gradient step beside what happens."""

from collections.abc import Callable

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting, statistical
from .._claim import generator, sem, slope
from .._drawing import BLUE, GRAY, ORANGE, loglog


class OneStepRisk(Claim):
    """Excess risk, norm of the readout and generalization gap after one gradient step stay below their bounds."""

    source = "feature learning against kernels: one gradient step"
    formula = "E|f - y| <= sqrt(d r^p k^2p/n) + sqrt(r^p k^2p/m) + n^(-1/4);   |a| <= r^p k^2p/sqrt(m);   gap <= 2 Rad"

    dim: int = setting(12, "Inputs d.", low=8, high=20)
    trials: int = setting(12, "Data sets for each n and m.", low=4, high=60, quick=5)

    def run(self, seed: int) -> Result:
        rng, d = generator(seed, "data"), self.dim
        target = nk.theory.MultiIndexPolynomial(np.eye(2, d), {(2, 0): 0.5, (0, 2): -0.5})
        new = rng.normal(size=(2000, d))
        truth = target(new)
        settings = [(n, 200) for n in (400, 800, 1600, 3200)] + [(1600, m) for m in (50, 100, 400)]
        table, gaps, over = [], [], []
        for n, m in settings:
            risks, norms = [], []
            for _ in range(self.trials):
                x = rng.normal(size=(n, d))
                y = target(x)
                features = nk.theory.one_step_features(x, y, m, int(rng.integers(2**31)))
                network = features.fit(x, y, ridge=1e-5 * n * m)
                train, risk = (
                    np.abs(f - t).mean() for f, t in ((network.predict(x), y), (network.predict(new), truth))
                )
                length = float(np.linalg.norm(network.head))
                risks.append(risk)
                norms.append(length)
                if n <= 800 and m == 200:
                    ball = nk.theory.rademacher(_kernel(features), x, length)
                    gaps.append(risk - train)
                    over.append(risk - train - 2 * ball.bound)
            bound = nk.theory.one_step_bound(target, n, m)
            table.append(
                (n, m, np.mean(risks), bound.risk, np.mean(norms), bound.head, sem(norms) / np.mean(norms))
            )
        n, m, risk, bound, norm, head, error = np.array(table).T
        fixed, many = n == 1600, m == 200
        power, spread = np.polyfit(np.log(m[fixed]), np.log(norm[fixed]), 1)[0], error[fixed].max()
        rows = (
            at_most(
                "power of n that the risk over its bound grows by", 0.05, slope(n[many], (risk / bound)[many])
            ),
            at_most(
                "power of m that the risk over its bound grows by",
                0.1,
                slope(m[fixed], (risk / bound)[fixed]),
            ),
            at_most("risk over its bound without constants, at the most", 2.0, np.max(risk / bound)),
            statistical("power of m that the norm of the readout follows", -0.5, power, spread, 0.3),
            at_most(
                "generalization gap minus twice the complexity of the ball", 0.0, np.mean(over), sem(over)
            ),
            at_least("generalization gap, at the least", 0.0, np.mean(gaps), sem(gaps)),
        )
        return Result(
            rows, {"n": n, "m": m, "risk": risk, "bound": bound, "norm": norm, "bound of norm": head}
        )

    def draw(self, axes, result):
        data = result.data
        own = data["m"] == 200
        axes.plot(data["n"][own], data["risk"][own], "o-", color=BLUE, label="risk, 200 neurons")
        axes.plot(data["n"][own], data["bound"][own], "--", color=GRAY, label="bound, without constants")
        axes.plot(data["n"][~own], data["risk"][~own], "s", color=ORANGE, label="50, 100, 400 neurons")
        loglog(axes)
        axes.set(xlabel="points", ylabel="mean of |f - y|")


def _kernel(features: nk.results.OneStepFeaturesResult) -> Callable:
    return lambda a, b: features(a) @ features(b).T
