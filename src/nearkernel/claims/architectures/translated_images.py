"""Pooling and translations."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, unlike
from .._claim import generator

L = nk.layers


class TranslatedImages(Claim):
    """With global pooling, kernels of circular convolutions see an image and its translations as the same image."""

    source = "literature: kernels of convolutional networks with pooling"
    formula = "Theta(T x, T' x') = Theta(x, x') for all translations T, T'"

    side: int = setting(6, "Pixels on a side.", low=4, high=10)

    def run(self, seed: int) -> Result:
        image, other = generator(seed, "images").normal(size=(2, self.side, self.side, 1))
        moved = [np.roll(image, shift, axis=(0, 1)) for shift in ((0, 0), (1, 0), (2, 3), (0, self.side - 1))]
        x = np.stack([*moved, other])
        rows, data = [], {}
        for head, end in (("pooling", L.GlobalAvgPool()), ("Flatten", L.Flatten())):
            conv = [L.Conv(1, (3, 3), padding="CIRCULAR", weight_var=2.0), L.Activation("relu")]
            ntk = nk.kernels.NTK(nk.Network(x.shape[1:], [*conv, *conv, end, L.Dense(1)]))(x)
            own, cross = ntk[0, :4] / ntk[0, 0], ntk[4, :4] / ntk[4, 0]
            for k in (1, 2, 3):
                quantity = (
                    f"NTK with itself moved by {((1, 0), (2, 3), (0, -1))[k - 1]}, over unmoved, {head}"
                )
                row = exact(quantity, 1.0, own[k], 1e-12) if head == "pooling" else None
                rows.append(row or unlike(quantity, 1.0, own[k], tolerance=0.1))
            if head == "pooling":
                rows.append(exact("NTK with another image, moved over unmoved", 1.0, cross[2], 1e-12))
            data[head] = own
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        for head, values in result.data.items():
            axes.plot(values, "o-", label=head)
        axes.set(xlabel="translation", ylabel="NTK with the unmoved image", ylim=(0, 1.1))
