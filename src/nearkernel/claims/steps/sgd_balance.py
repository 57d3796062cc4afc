"""SGD at rest: what noise adds, descent takes away."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, statistical
from .._claim import generator, sem
from .._drawing import Figure


class SgdBalance(Claim):
    """At rest, SGD keeps the average of theta·grad L at lr/2 times the trace of the gradients' second moment."""

    source = "graduate course: SGD, fluctuation and dissipation"
    formula = (
        "<theta . grad L> = lr/2 <tr C>,   C the second moment (not the covariance) of a batch's gradient"
    )

    batch: int = setting(4, "Points in a batch, of 12.", low=1, high=8)
    runs: int = setting(2000, "Runs in parallel.", low=100, high=20_000, quick=400)
    steps: int = setting(1500, "Steps of each.", low=500, high=20_000, quick=800)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "data")
        phi = rng.normal(size=(12, 3))
        y = phi @ rng.normal(size=3) + rng.normal(size=12)
        hessian, rows, found = phi.T @ phi, [], []
        top = np.linalg.eigvalsh(hessian)[-1]
        ratios = np.array([0.05, 0.2, 0.6])
        for ratio in ratios:
            lr = ratio / top
            law = nk.theory.sgd_stationary(phi, y, nk.SGD(lr, self.batch, 1))
            theta, kept = np.tile(law.mean, (self.runs, 1)), []
            for step in range(self.steps):
                chosen = np.argsort(rng.random((self.runs, 12)), axis=1)[:, : self.batch]
                rows_of = phi[chosen]
                residual = np.einsum("rbj,rj->rb", rows_of, theta) - y[chosen]
                gradient = 12 / self.batch * np.einsum("rbj,rb->rj", rows_of, residual)
                if step >= self.steps // 2:
                    away = theta - law.mean
                    kept.append(
                        (np.sum(away * (away @ hessian), axis=1), 0.5 * lr * np.sum(gradient**2, axis=1))
                    )
                theta = theta - lr * gradient
            left, right = np.mean(kept, axis=0)
            name = f"lr = {ratio:g}/lam_max"
            rows.append(statistical(f"theta . grad L, {name}", law.dissipation, left.mean(), sem(left)))
            rows.append(statistical(f"lr/2 tr C, {name}", law.fluctuation, right.mean(), sem(right)))
            rows.append(exact(f"both sides in theory, {name}", law.dissipation, law.fluctuation, 1e-10))
            found.append((law.dissipation, left.mean(), sem(left)))
        theory, measured, error = np.array(found).T
        return Result(
            tuple(rows), {"lr lam_max": ratios, "theory": theory, "measured": measured, "sem": error}
        )

    figure = Figure("lr lam_max", "⟨θ · ∇L⟩", xlabel="lr · λ_max", log="xy")
    figure.pair()
