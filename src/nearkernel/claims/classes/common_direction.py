"""The largest eigenvalue of features, layer by layer."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_least, at_most, setting
from .._digits import digits, layers, trained
from .._drawing import GRAY, ORANGE, Figure


class CommonDirection(Claim):
    """The largest eigenvalue of features is that of their global mean in every layer; the next are of class means."""

    source = "graduate course: Hessians of classifiers"
    formula = (
        "H = m m^T + sum_c (n_c/n)(m_c - m)(m_c - m)^T + within;   top ~ m, the next C - 1 ~ class means"
    )

    classes: int = setting(4, "Classes C: digits 0 to C - 1.", low=3, high=6)
    points: int = setting(200, "Images.", low=60, high=400, quick=120)
    width: int = setting(48, "Neurons in each of three hidden layers.", low=16, high=128, quick=32)

    def run(self, seed: int) -> Result:
        import jax

        x, own = digits(self.classes, self.points)
        net = nk.MLP(64, (self.width,) * 3, self.classes, "relu", weight_var=2.0, parametrization="standard")
        start = net.init(jax.random.key(seed))
        lr = 0.5 / nk.geometry.sharpness(net, start, x, np.eye(self.classes)[own], "cross_entropy")
        end = trained(net, start, x, np.eye(self.classes)[own], nk.GradientDescent(lr, 400))
        table = []
        for h in layers(net, end, x):
            split = nk.theory.feature_classes(h, own)
            values, vectors = np.linalg.eigh(split.total)
            mean = h.mean(axis=0)
            between = np.linalg.eigvalsh(split.between)[-self.classes]
            along = (vectors[:, -1] @ mean) ** 2 / (mean @ mean)
            kept = np.trace(split.centered) / np.trace(split.centered + split.within)
            table.append((values[-1], mean @ mean, along, kept, values[-self.classes], between))
        top, common, along, kept, last, between = np.array(table).T
        rows = (
            at_least("global mean along the top eigenvector, least over layers", 0.9, along.min()),
            at_least("size of the global mean over the largest eigenvalue, least", 0.8, np.min(common / top)),
            at_most("the same, at the most", 1.0, np.max(common / top)),
            at_least(
                "eigenvalue C of class means over that of all features, last layer",
                0.7,
                between[-1] / last[-1],
            ),
            at_least("share of scatter between classes, last layer over first", 1.1, kept[-1] / kept[0]),
        )
        number = np.arange(1, 4)
        return Result(
            rows,
            {
                "layer": number,
                "largest": top,
                "global mean": common,
                "number C": last,
                "class means": between,
                "share": kept,
            },
        )

    figure = Figure("layer", "eigenvalue of features", log="y", xticks=[1, 2, 3])
    figure.line("largest")
    figure.line("global mean", GRAY, "x--")
    figure.line("number C", ORANGE)
    figure.line("class means", GRAY, "+--")
