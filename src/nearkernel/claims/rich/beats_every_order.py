"""The rich limit beside the expansions."""

import warnings

import jax
import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._claim import generator
from .._drawing import BLUE, GRAY, GREEN, ORANGE
from ._trained import STEPS, limit, network, problem, rate


class BeatsEveryOrder(Claim):
    """At richness 1 the rich limit is closer to trained networks than the kernel and orders 0, 1 and 2 around them."""

    source = "mean-field theory of networks that learn features: beside expansions in how far parameters move"
    formula = (
        "rich: all orders in gamma0 at infinite width;  order k: gamma0^k around the network's own start"
    )

    points: int = setting(12, "Training points.", low=4, high=40)
    width: int = setting(1024, "Neurons of the networks.", low=256, high=8192, quick=512)
    networks: int = setting(4, "Networks trained.", low=2, high=50, quick=2)

    def run(self, seed: int) -> Result:
        x, y, x_new = problem(seed, self.points)
        richness = np.array([0.3, 1.0])
        names = ("kernel", "order 0", "order 1", "order 2", "rich")
        found = np.array(
            [
                np.mean(
                    [self._distances(seed, k, x, y, x_new, float(g)) for k in range(self.networks)], axis=0
                )
                for g in richness
            ]
        )
        rows = [
            at_least(
                f"distance of {name} over that of the rich limit, richness 1", 1.5, found[1, k] / found[1, 4]
            )
            for k, name in enumerate(names[:4])
        ]
        rows.append(at_most("distance of the rich limit times sqrt(width), richness 1", 5.0,
                            found[1, 4] * np.sqrt(self.width)))  # fmt: skip
        return Result(
            tuple(rows), {"richness": richness} | {name: found[:, k] for k, name in enumerate(names)}
        )

    def _distances(self, seed: int, k: int, x, y, x_new, richness: float) -> list[float]:
        """Relative distances of five theories from the same trained network."""
        alpha = 1 / (richness * self.width**0.5)
        net = network(self.width, parametrization="ntk")
        model = nk.Scaled(net, alpha)
        params = model.init(jax.random.key(int(generator(seed, "networks", str(k)).integers(2**31))))
        descent = nk.GradientDescent(rate(x) / alpha**2, STEPS)
        trained = np.asarray(model(nk.simulate(model, params, x, y, descent).params, x_new))[:, 0]
        expanded = nk.expand(model, params, degree=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # corrections are not small here
            orders = [nk.solve(expanded, x, y, descent, order).predict(x_new).mean for order in range(3)]
        kernel = nk.forecast(net, x, y, nk.GradientDescent(rate(x), STEPS), x_new).mean
        rich = limit(x, y, x_new, richness, nk.MeanField(neurons=4096, scrambles=4)).mean
        return [
            float(np.linalg.norm(each - trained) / np.linalg.norm(trained))
            for each in (kernel, *orders, rich)
        ]

    def draw(self, axes, result):
        at = np.arange(len(result.data["richness"]))
        names = [name for name in result.data if name != "richness"]
        colors = (GRAY, GRAY, BLUE, ORANGE, GREEN)
        for k, (name, color) in enumerate(zip(names, colors, strict=True)):
            axes.bar(at + 0.16 * (k - 2), result.data[name], 0.14, color=color, label=name)
        axes.set_xticks(at, [f"richness {g:g}" for g in result.data["richness"]])
        axes.set_yscale("log")
        axes.set(ylabel="distance from trained networks")
        axes.legend()
