"""How far weights travel until the loss is zero."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, exact, setting
from .._claim import slope
from .._drawing import GREEN, Figure


class CertainDistance(Claim):
    """Until the loss is zero no neuron of a wide network moves further than a distance that falls as 1/sqrt(width)."""

    source = "graduate course: convergence of wide networks"
    formula = "|w_i(t) - w_i(0)| <= 4 |r| C_W sup(s') max(v) sqrt(sum_a |x_a|^2/d) / (lambda_0 sqrt(n))"

    least: int = setting(
        2500, "The smallest width; others are two and four times as large.", low=2200, high=5000
    )
    steps: int = setting(
        400, "Steps of gradient descent, small enough to be a flow.", low=100, high=2000, quick=200
    )

    def run(self, seed: int) -> Result:
        import jax

        x, y = 1.8 * np.eye(4) + 0.1, np.array([1.0, -1.0, 1.0, 0.5])
        widths, table = self.least * np.array([1, 2, 4]), []
        for width in widths:
            net = nk.MLP(4, (int(width),), 1, "tanh", weight_var=1.0)
            half = net.init(jax.random.key(seed))
            params = [  # each neuron twice, with opposite readouts: outputs are 0, and the same loss at every width
                {**half[0], "weight": np.tile(np.asarray(half[0]["weight"])[:, : width // 2], 2)},
                {**half[1], "weight": np.repeat([[1.0], [-1.0]], width // 2, axis=0)},
            ]
            found = nk.theory.convergence_guarantee(net, params, x, y)
            descent = nk.GradientDescent(0.02, self.steps)
            run = nk.simulate(
                net, params, x, y, descent, nk.Record(every=self.steps), lr_factors=found.lr_factors
            )
            moved = np.asarray(run.params[0]["weight"]) - params[0]["weight"]
            each = np.linalg.norm(moved, axis=0).max()
            table.append(
                (each, found.neuron_distance, np.linalg.norm(moved), found.distance, found.threshold)
            )
        each, bound, together, distance, threshold = np.array(table).T
        rows = (
            at_most("threshold over width, at the worst", 1.0, np.max(threshold / widths)),
            at_most("farthest neuron over its bound, at the worst", 1.0, np.max(each / bound)),
            at_most("all weights together over their bound, at the worst", 1.0, np.max(together / distance)),
            exact("power of the width that the farthest neuron follows", -0.5, slope(widths, each), 0.1),
            exact("power of the width that its bound follows", -0.5, slope(widths, bound), 0.1),
        )
        return Result(rows, {"width": widths, "farthest neuron": each, "bound": bound})

    figure = Figure("width", "distance", log="xy")
    figure.line("bound", GREEN, "--")
    figure.line("farthest neuron")
