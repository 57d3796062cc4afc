"""Networks that learn features approach a limit."""

import jax
import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._claim import generator
from .._drawing import GREEN, Figure
from ._trained import limit, outputs, problem


class RootOfWidth(Claim):
    """A trained mean-field network is off the rich limit by 1/sqrt(width), which needs no training to compute."""

    source = "mean-field theory of networks that learn features: the limit of infinite width"
    formula = "|f_N - f| ~ N^(-1/2),  f = (1/gamma0) <a s(h)> over the neurons of the limit"

    points: int = setting(6, "Training points.", low=2, high=30)
    richness: float = setting(1.0, "Richness gamma0: 0 is lazy, 1 mean field.", low=0.3, high=3.0)
    networks: int = setting(64, "Networks trained at each width.", low=16, high=1000, quick=32)

    def run(self, seed: int) -> Result:
        x, y, x_new = problem(seed, self.points)
        law = limit(x, y, x_new, self.richness, nk.MeanField(neurons=8192, scrambles=4))
        widths = np.array([32, 128, 512])
        keys = jax.random.split(jax.random.key(int(generator(seed, "networks").integers(2**31))), len(widths))
        squares = np.array(
            [
                ((outputs(x, y, x_new, int(n), self.richness, self.networks, key) - law.mean) ** 2).mean(
                    axis=1
                )
                for n, key in zip(widths, keys, strict=True)
            ]
        )
        logs, errors = np.log(squares.mean(axis=1)) / 2, _log_errors(squares)
        away = np.log(widths) - np.log(widths).mean()
        power = away @ logs / (away @ away)
        sem = np.sqrt(away**2 @ errors**2) / (away @ away)
        size = np.sqrt(np.mean(law.mean**2))
        data = {"width": widths, "distance": np.exp(logs) / size, "sem": np.exp(logs) * errors / size}
        return Result((statistical("power of the width", -0.5, power, sem),), data)

    figure = Figure("width", "distance from the rich limit", log="xy")
    figure.bars("distance", "sem", label="trained networks")
    figure.line(
        lambda data: data["distance"][0] * np.sqrt(data["width"][0] / data["width"]),
        GREEN,
        "--",
        "1/sqrt(width)",
    )


def _log_errors(squares: np.ndarray) -> np.ndarray:
    """Standard errors of half the logarithm of the means."""
    return 0.5 * squares.std(axis=1, ddof=1) / np.sqrt(squares.shape[1]) / squares.mean(axis=1)
