"""The part of the weights that features of the data do not see."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, Row, at_least, at_most, exact, setting
from .._claim import generator
from .._drawing import Figure


class OrthogonalPart(Claim):
    """At first order a quadratic model moves orthogonally to the features of its data, along the known solution."""

    source = "graduate course: nearly-kernel methods"
    formula = "P W^I(t), P = 1 - Phi^T (Phi Phi^T)^-1 Phi, from the solution, against training at +-eps"

    points: int = setting(4, "Points.", low=2, high=8)
    features: int = setting(10, "Features.", low=6, high=30)

    def run(self, seed: int) -> Result:
        import jax.numpy as jnp

        rng, f = generator(seed, "model"), self.features
        table = rng.normal(size=(self.points, f)) / np.sqrt(f)
        tensor = rng.normal(size=(self.points, f, f))
        tensor = (tensor + tensor.transpose(0, 2, 1)) / f
        y = rng.normal(size=self.points)
        x = np.arange(self.points, dtype=float)[:, None]
        phi = lambda x: jnp.asarray(table)[x[:, 0].astype(int)]
        psi = lambda x: jnp.asarray(tensor)[x[:, 0].astype(int)]
        outside = np.eye(f) - np.linalg.pinv(table) @ table
        lr, eps = 0.3 / np.linalg.eigvalsh(table @ table.T)[-1], 1e-3
        rows: list[Row] = []
        lengths, found = [], []
        times = np.array([2, 4, 16, 64])
        solution = nk.solve(
            nk.QuadraticModel(phi, psi, 1.0), x, y, nk.GradientDescent(lr, int(times[-1])), order=1
        )
        for time in times:
            theory = outside @ np.ravel(solution.at(float(time)).weights[1])
            ends = [self._descended(table, sign * eps * tensor, y, lr, int(time)) for sign in (1, -1)]
            measured = outside @ (ends[0] - ends[1]) / (2 * eps)
            away = np.linalg.norm(measured - theory) / max(float(np.linalg.norm(theory)), 1e-12)
            rows.append(
                exact(
                    f"length of the orthogonal part after {time} steps",
                    np.linalg.norm(theory),
                    np.linalg.norm(measured),
                    1e-3,
                )
            )
            rows.append(at_most(f"its distance from training, relatively, after {time} steps", 1e-3, away))
            lengths.append(np.linalg.norm(theory))
            found.append(np.linalg.norm(measured))
        rows.append(at_least("length of the orthogonal part at the end", 1e-3, lengths[-1]))
        return Result(
            tuple(rows),
            {"step": times.astype(float), "theory": np.array(lengths), "measured": np.array(found)},
        )

    def _descended(
        self, phi: np.ndarray, psi: np.ndarray, y: np.ndarray, lr: float, steps: int
    ) -> np.ndarray:
        w = np.zeros(phi.shape[1])
        for _ in range(steps):
            turned = psi @ w
            w = w - lr * (phi @ w + 0.5 * turned @ w - y) @ (phi + turned)
        return w

    figure = Figure("step", "length of the orthogonal part", log="x")
    figure.pair()
