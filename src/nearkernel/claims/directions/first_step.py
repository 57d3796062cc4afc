"""The first gradient of a network that starts at output 0."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, exact, setting
from .._claim import generator
from .._drawing import BLUE, GRAY, ORANGE, Figure


class FirstStep(Claim):
    """The first gradient of a neuron lies along H w, the average Hessian of the target times its weights, up to a
    share that falls as 1/sqrt(d)."""

    source = "feature learning against kernels: one gradient step"
    formula = "dL/dw_j = -2 a_j H w_j / sqrt(2 pi) + O(1/d),   w_j ~ N(0, 1/d); closer with w_j / |w_j|"

    neurons: int = setting(200, "Neurons whose gradients are averaged.", low=20, high=2000)
    smallest: int = setting(32, "Smallest number of inputs d; it is doubled four times.", low=16, high=64)

    def run(self, seed: int) -> Result:
        rng = generator(seed, "weights")
        c = 0.5 / 2**0.5
        dims = self.smallest * 2 ** np.arange(5)
        gradient: list[float] = []
        rest: list[float] = []
        raw: list[float] = []
        for d in dims:
            target = nk.theory.MultiIndexPolynomial(np.eye(2, int(d)), {(2, 0): c, (0, 2): -c, (2, 2): c})
            w = rng.normal(size=(self.neurons, d)) / d**0.5
            full = nk.theory.first_gradient(target, w)
            lead = -2.0 * w @ target.hessian / np.sqrt(2 * np.pi)
            unit = lead / np.linalg.norm(w, axis=1)[:, None]
            root = [np.sqrt(((full - part) ** 2).sum(axis=1).mean()) for part in (0 * full, unit, lead)]
            for held, value in zip((gradient, rest, raw), root, strict=True):
                held.append(value)
        power = [np.polyfit(np.log(dims), np.log(held), 1)[0] for held in (gradient, raw, rest)]
        rows = (
            exact("power of d of the gradient", -0.5, power[0], 0.15),
            exact("power of d of what H w leaves", -1.0, power[1], 0.15),
            exact("power of d of what H w/|w| leaves", -1.0, power[2], 0.15),
            at_most("what H w/|w| leaves, over what H w leaves", 1.0, np.max(np.divide(rest, raw))),
        )
        data = {"d": dims, "gradient": np.array(gradient), "rest": np.array(rest), "raw": np.array(raw)}
        return Result(rows, data)

    figure = Figure("d", "root mean square", xlabel="inputs d", log="xy")
    figure.line("gradient", GRAY)
    figure.line("rest", BLUE, label="without H w/|w|")
    figure.line("raw", ORANGE, "o--", "without H w")
