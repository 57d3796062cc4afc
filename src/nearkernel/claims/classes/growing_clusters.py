"""Two clusters of growing variance and the Hessian of a classifier trained on them."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._digits import trained
from .._drawing import GRAY, ORANGE, Figure


class GrowingClusters(Claim):
    """As two clusters grow into each other, both the bulk and the outliers of the Hessian grow."""

    source = "graduate course: Hessians of classifiers"
    formula = "clusters at (-1, -1) and (1, 1), cross-entropy: outliers first; numbers 3, 4, ... grow"

    points: int = setting(80, "Points.", low=40, high=400, quick=40)
    steps: int = setting(600, "Steps of gradient descent.", low=100, high=5000, quick=300)

    def run(self, seed: int) -> Result:
        import jax

        rng = generator(seed, "clusters")
        own = np.arange(self.points) % 2
        noise = rng.normal(size=(self.points, 2))
        net = nk.MLP(2, (16,), 2, "tanh", weight_var=1.0, parametrization="standard")
        start, y = net.init(jax.random.key(seed)), np.eye(2)[own]
        spreads, values = np.array([0.1, 0.3, 0.6, 1.0, 1.5]), []
        for spread in spreads:
            x = (2 * own - 1)[:, None] + spread * noise
            end = trained(net, start, x, y, nk.GradientDescent(0.02, self.steps))
            hessian = nk.geometry.Hessian(net, end, x, y, "cross_entropy")
            values.append(np.linalg.eigvalsh(np.asarray(hessian(np.eye(hessian.size))))[::-1])
        table = np.array(values)
        rows = (
            at_least("first eigenvalue over the third, narrow clusters", 3.0, table[0, 0] / table[0, 2]),
            at_least("fifth eigenvalue, widest over narrowest clusters", 10.0, table[-1, 4] / table[0, 4]),
            at_least("largest eigenvalue, widest over narrowest clusters", 2.0, table[-1, 0] / table[0, 0]),
            at_most("smallest eigenvalue, widest clusters", 0.0, table[-1, -1]),
        )
        columns = {f"number {k + 1}": table[:, k] for k in (0, 1, 2, 4)}
        return Result(rows, {"spread": spreads, **columns, "smallest": table[:, -1]})

    figure = Figure(
        "spread", "eigenvalue of the Hessian", xlabel="standard deviation of the clusters", yscale="symlog"
    )
    figure.line("number 1", ORANGE)
    figure.line("number 2", ORANGE)
    figure.line("number 3")
    figure.line("number 5")
    figure.line("smallest", GRAY)
