"""Neural collapse of easy and of hard data."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._drawing import BLUE, ORANGE

CLASSES, POINTS = 4, 60


class HardToCollapse(Claim):
    """Classes far apart collapse in all four ways, new points included; overlapping ones, fitted too, do not."""

    source = "graduate course: neural collapse"
    formula = (
        "nc1, nc2, nc3 fall and nc4 = 0 on easy data;   nc1 stays large, nc4 > 0 at new points on hard data"
    )

    steps: int = setting(2900, "Steps past the first hundred.", low=1000, high=20_000)
    easy: float = setting(2.0, "Distance of the easy classes.", low=1.5, high=4.0)
    hard: float = setting(0.6, "Distance of the hard classes.", low=0.3, high=0.8)

    def run(self, seed: int) -> Result:
        (start, easy, easy_new, errors), (_, hard, hard_new, others) = (
            self._collapsed(apart, seed) for apart in (self.easy, self.hard)
        )
        rows = (
            at_most("share of errors, easy or hard", 0.0, max(errors, others)),
            at_most("nc1, easy, end over start", 1.0, easy.nc1 / start.nc1),
            at_most("nc2 angles, easy, end over start", 0.9, easy.nc2_angles / start.nc2_angles),
            at_most("nc3, easy, end over start", 0.2, easy.nc3 / start.nc3),
            at_most("new points that go to another than the nearest mean, easy", 0.01, easy_new),
            at_least("nc1, hard over easy", 4.0, hard.nc1 / easy.nc1),
            at_least("new points that go to another than the nearest mean, hard", 0.01, hard_new),
        )
        names = ("nc1", "nc2_norms", "nc2_angles", "nc3")
        data = {
            word: np.array([getattr(one, name) for name in names])
            for word, one in (("easy", easy), ("hard", hard))
        }
        return Result(rows, {"number": np.arange(len(names)), **data})

    def _collapsed(self, apart, seed):
        """Collapse after 100 and after all steps, the share of new points off the nearest mean, the share of errors."""
        import jax
        import jax.numpy as jnp

        rng = generator(seed, "data")
        centers, labels = rng.normal(size=(CLASSES, 8)), np.repeat(np.arange(CLASSES), POINTS // CLASSES)
        x = rng.normal(size=(POINTS, 8)) + apart * centers[labels]
        x_new = rng.normal(size=(400, 8)) + apart * np.repeat(centers, 100, axis=0)
        y = np.column_stack([np.eye(CLASSES)[labels], np.zeros(POINTS)])
        net = nk.MLP(8, (40, 40, 40), CLASSES, "tanh", weight_var=1.5, parametrization="standard")

        def outputs(params, x):  # weight decay as one more output: the length of the parameters
            size = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))
            return jnp.column_stack([net(params, x), jnp.full(len(x), jnp.sqrt(0.1 / POINTS * size))])

        def loss(z, y):
            return -jnp.sum(y[:, :-1] * jax.nn.log_softmax(z[:, :-1])) + 0.5 * jnp.sum(z[:, -1] ** 2)

        params, model, found = net.init(jax.random.key(seed)), nk.from_function(outputs), []
        for steps in (100, self.steps):
            descent = nk.GradientDescent(0.002, steps, momentum=0.9)
            params = nk.simulate(model, params, x, y, descent, nk.Record(every=steps), loss=loss).params
            features, (weights, biases) = nk.theory.last_layer(net, params, x)
            found.append(nk.geometry.collapse(features, labels, (weights, biases)))
        new = nk.theory.last_layer(net, params, x_new)[0]
        means = np.stack([features[labels == c].mean(axis=0) for c in range(CLASSES)])
        nearest = np.argmin(np.sum((new[:, None] - means) ** 2, axis=2), axis=1)
        off = np.mean(np.argmax(new @ weights.T + biases, axis=1) != nearest)
        return *found, off, np.mean(np.argmax(features @ weights.T + biases, axis=1) != labels)

    def draw(self, axes, result):
        data = result.data
        for name, color in (("easy", BLUE), ("hard", ORANGE)):
            axes.plot(data["number"], data[name], "o", ms=7, color=color, label=name)
        axes.set(yscale="log", ylabel="distance from collapse", xticks=data["number"])
        axes.set_xticklabels(["nc1", "nc2 norms", "nc2 angles", "nc3"])
