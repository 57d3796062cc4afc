"""Zeros around an image."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, unlike
from .._claim import generator
from .._drawing import pair

L = nk.layers


class BorderLosses(Claim):
    """Deep relu convolutions padded with zeros lose signal at the borders: they are critical above C_W = 2."""

    source = "derived here: second moments of convolutions; literature for the interior"
    formula = (
        "K falls by ((1 + 2 cos(pi/(H + 1)))/3)^2 per layer at C_W = 2 for H x H images and 3 x 3 filters"
    )

    side: int = setting(8, "Pixels on a side, H.", low=4, high=32)
    depth: int = setting(60, "Convolutions.", low=30, high=200)

    def run(self, seed: int) -> Result:
        x = generator(seed, "image").normal(size=(1, self.side, self.side, 1))
        loss = ((1 + 2 * np.cos(np.pi / (self.side + 1))) / 3) ** 2
        found, depths = [], np.arange(self.depth - 3, self.depth + 1)
        for weight_var, padding in ((2.0, "SAME"), (2.0, "CIRCULAR"), (2.0 / loss, "SAME")):
            sizes = np.array([_signal(x, int(depth), weight_var, padding) for depth in depths[-2:]])
            found.append(sizes[1] / sizes[0])
        rows = [
            exact("K per layer, zeros around, C_W = 2", loss, found[0], 1e-3),
            unlike("K per layer, zeros around, if C_W = 2 were critical", 1.0, found[0], tolerance=1e-3),
            exact("K per layer, circular, C_W = 2", 1.0, found[1], 1e-9),
            exact("K per layer, zeros around, C_W = 2 over the loss", 1.0, found[2], 1e-3),
        ]
        sides = np.arange(4, 33)
        law = ((1 + 2 * np.cos(np.pi / (sides + 1))) / 3) ** 2
        data = {"side": sides, "law": law, "at": np.array([self.side]), "measured": np.array([found[0]])}
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        data = result.data
        axes.plot(data["side"], data["law"], label="theory")
        pair(axes, data["at"], data["law"][data["at"] - 4], data["measured"], np.zeros(1))
        axes.set(xlabel="pixels on a side", ylabel="K per layer at C_W = 2")


def _signal(x: np.ndarray, depth: int, weight_var: float, padding: str) -> float:
    """The mean variance over positions after some convolutions."""
    conv = L.Conv(1, (3, 3), padding=padding, weight_var=weight_var)
    block = L.Repeat([conv, L.Activation("relu")], depth)
    return float(nk.kernels.NNGP(nk.Network(x.shape[1:], [block, L.Flatten(), L.Dense(1)])).diag(x)[0])
