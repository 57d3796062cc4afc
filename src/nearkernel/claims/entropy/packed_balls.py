"""From widths to entropy, by packing."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, exact, setting
from .._claim import generator, slope
from .._drawing import BLUE, GRAY, ORANGE, Figure


class PackedBalls(Claim):
    """A stable width of n parameters bounds packings by (6R/delta)^n, and so entropy up to a logarithm."""

    source = "graduate course: entropy and widths"
    formula = (
        "P_2delta <= (6 R/delta)^n,   eps at n log2(6 R/delta) bits <= 4 delta,   delta = delta_n, R = s_1"
    )

    smoothness: float = setting(1.0, "Half-axes fall as i^-s.", low=0.5, high=3.0)
    members: int = setting(4000, "Members of the ellipsoid that are drawn.", low=500, high=20_000, quick=1500)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "members")
        axes = np.arange(1, 4001.0) ** -self.smoothness
        dims = np.array([2, 4, 8, 16, 32, 64, 128])
        delta = np.array([nk.theory.ellipsoid_width(axes, int(n)) for n in dims])
        bits = np.ceil(dims * np.log2(6 * axes[0] / delta)).astype(int)
        bounds = nk.theory.ellipsoid_entropy(axes, bits)
        surface = rng.normal(size=(self.members, 40))
        surface *= axes[:40] / np.linalg.norm(surface, axis=1)[:, None]
        packed = np.array([nk.theory.set_packing(surface, 2 * size) for size in delta[:4]])
        count = dims[:4] * np.log2(6 * axes[0] / delta[:4])
        few = np.arange(16, 4097, 136)
        entropy = nk.theory.ellipsoid_entropy(axes, few)
        rows = (
            at_most("log2 of a packing over n log2(6R/delta)", 1.0, np.max(np.log2(packed) / count)),
            at_most("entropy at n log2(6R/delta) bits over 4 delta", 1.0, np.max(bounds.upper / (4 * delta))),
            exact(
                "power of the bits that entropy falls by", -self.smoothness, slope(few, entropy.upper), 0.1
            ),
            exact(
                "power of the parameters that widths fall by",
                -self.smoothness,
                slope(dims + 1.0, delta),
                1e-9,
            ),
        )
        return Result(
            rows,
            {
                "parameters": dims.astype(float),
                "width": delta,
                "entropy": bounds.upper,
                "bits": bits.astype(float),
            },
        )

    figure = Figure("parameters", xlabel="parameters n", log="xy")
    figure.line("width", BLUE, label="width δ of n parameters")
    figure.line("entropy", ORANGE, label="entropy of n log2(6R/δ) bits")
    figure.line(lambda data: 4 * data["width"], GRAY, "--", "4 δ")
