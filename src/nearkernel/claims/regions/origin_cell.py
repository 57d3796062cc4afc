"""The cell of the origin, and bent hyperplanes that close."""

import math

import jax
import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting, statistical
from .._claim import generator, sem
from .._drawing import BLUE, GRAY


class OriginCell(Claim):
    """The cell of the origin of a wide relu layer in the plane is bounded and has pi^2/2 sides on average."""

    source = "graduate course: linear regions, open problems"
    formula = "E[sides] -> pi^2/2 = 4.93, that of a Poisson process of lines;   few bent lines of layer 2 are closed"

    width: int = setting(100, "Neurons of the layer.", low=30, high=1000, quick=60)
    trials: int = setting(1500, "Networks.", low=100, high=20_000, quick=250)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "networks")
        net = nk.MLP(2, (self.width,), 1, "relu", weight_var=2.0, bias_var=1.0, parametrization="standard")
        sides, bounded = np.empty(self.trials), np.empty(self.trials)
        for t in range(self.trials):
            weights, biases = rng.normal(size=(2, self.width)), rng.normal(size=self.width)
            params = [
                {"weight": weights, "bias": biases},
                {"weight": np.ones((self.width, 1)), "bias": np.zeros(1)},
            ]
            found = nk.theory.cell(net, params, np.zeros(2))
            sides[t], bounded[t] = len(found.facets), found.bounded
        deep = nk.MLP(3, (12, 12), 1, "relu", weight_var=2.0, bias_var=1.0)
        facets = []
        for t in range(max(10, self.trials // 25)):
            found = nk.theory.cell(deep, deep.init(jax.random.key(t)), np.zeros(3))
            inside = 3 * rng.normal(size=(400, 3))
            facets.append(
                (len(found.facets), np.mean(found.layer[found.facets] == 2), np.mean(found.contains(inside)))
            )
        closed = self._closed(rng)
        rows = (
            statistical(
                "sides of the cell of the origin", math.pi**2 / 2, sides.mean(), sem(sides), 1.5 / self.width
            ),
            at_least("share of such cells that are bounded", 0.99, bounded.mean()),
            at_least(
                "share of sides of a cell in space that the second layer makes",
                0.1,
                np.mean(facets, axis=0)[1],
            ),
            at_least(
                "share of second-layer lines in the plane that are closed", 0.05, closed.mean(), sem(closed)
            ),
            at_most("the same, at the most", 0.95, closed.mean(), sem(closed)),
        )
        values, counts = np.unique(sides, return_counts=True)
        return Result(rows, {"sides": values, "share": counts / self.trials})

    def _closed(self, rng: np.random.Generator) -> np.ndarray:
        """For each network the share of second-layer neurons that are 0 somewhere, but nowhere far away."""
        found = []
        angles = np.linspace(0, 2 * np.pi, 721)[:-1]
        around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        near = np.concatenate([around * r for r in np.geomspace(0.02, 30, 40)] + [np.zeros((1, 2))])
        for _ in range(max(20, self.trials // 25)):
            first, second = (
                rng.normal(size=(2, 20)) / math.sqrt(2),
                rng.normal(size=(20, 20)) * math.sqrt(2 / 20),
            )
            biases = rng.normal(size=(2, 20))
            far = np.maximum(around @ first, 0) @ second  # what is left of z/|x| where |x| is large
            z = np.maximum(near @ first + biases[0], 0) @ second + biases[1]
            crosses = (z.min(axis=0) < 0) & (z.max(axis=0) > 0)
            leaves = (far.min(axis=0) < 0) & (far.max(axis=0) > 0)
            found.append(np.sum(crosses & ~leaves) / max(np.sum(crosses), 1))
        return np.array(found)

    def draw(self, axes, result):
        axes.bar(result.data["sides"], result.data["share"], color=BLUE, label="measured")
        axes.axvline(math.pi**2 / 2, color=GRAY, ls="--", label="π²/2")
        axes.set(xlabel="sides of the cell of the origin", ylabel="share of networks")
