"""Weights that are shared between positions."""

from typing import Any

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, unlike
from .._claim import generator

L = nk.layers


class SharedWeights(Claim):
    """Infinitely wide, a convolution followed by Flatten cannot be told from separate weights at each position."""

    source = "literature: Bayesian convolutional networks with many channels"
    formula = "Conv + Flatten: NNGP and NTK of LocallyConnected + Flatten; with pooling they differ"

    side: int = setting(6, "Pixels on a side.", low=4, high=12)
    points: int = setting(4, "Images.", low=2, high=20)

    def run(self, seed: int) -> Result:
        x = generator(seed, "images").normal(size=(self.points, self.side, self.side, 2))
        rows, data = [], dict[str, np.ndarray]()
        for head, end in (("Flatten", L.Flatten()), ("pooling", L.GlobalAvgPool())):
            for kind in ("NNGP", "NTK"):
                shared, local = (_kernel(kind, layer, end, x) for layer in (L.Conv, L.LocallyConnected))
                apart = np.abs(shared - local).max() / np.abs(local).max()
                quantity = f"shared over local {kind}, {head}"
                ratio = 1.0 + apart
                rows.append(
                    exact(quantity, 1.0, ratio, 1e-12)
                    if head == "Flatten"
                    else unlike(quantity, 1.0, ratio, tolerance=1e-3)
                )
                data |= {f"{kind} {head} shared": shared.ravel(), f"{kind} {head} local": local.ravel()}
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        for head, mark in (("Flatten", "o"), ("pooling", "x")):
            local, shared = (result.data[f"NTK {head} {which}"] for which in ("local", "shared"))
            axes.plot(local / local.max(), shared / local.max(), mark, label=head)
        axes.axline((0, 0), slope=1, color="0.6", lw=1)
        axes.set(xlabel="NTK, own weights at each position", ylabel="NTK, shared weights")


def _kernel(kind: str, layer: type, end: Any, x: np.ndarray) -> np.ndarray:
    filters = [layer(1, (3, 3), weight_var=1.8, bias_var=0.1) for _ in range(2)]
    layers = [filters[0], L.Activation("relu"), filters[1], L.Activation("relu"), end, L.Dense(1)]
    return getattr(nk.kernels, kind)(nk.Network(x.shape[1:], layers))(x)
