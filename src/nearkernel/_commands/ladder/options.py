"""What is typed after `nearkernel ladder`, checked."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

from ..completion import smooth_activations
from ..declared import option
from ..options import NETWORK, TRAINING, Seed, activation_of

if TYPE_CHECKING:
    from ...forecasts.theory_ladder import Settings

_KINKED = "its slope jumps, and orders 1 and 2 would miss neurons that cross a kink"
_ACTIVATION = "tanh, gelu, erf, silu, mish, ..., or a formula like 'tanh(z) + 0.1*z^2': smooth."
_RICH = "Add the rich limit, infinitely wide networks that learn features. Takes minutes with many points."


@dataclasses.dataclass(frozen=True)
class Options:
    points: Annotated[int, option("Number of training points.", min=2, max=2000)] = 60
    test_points: Annotated[int, option("Number of test points, where distances are measured.", min=1)] = 60
    dim: Annotated[int, option("Number of features of an input.", min=1)] = 10
    seeds: Annotated[int, option("Number of data sets and initializations.", min=1)] = 1
    seed: Seed = 0
    depth: Annotated[int, option("Number of hidden layers.", NETWORK, min=1, max=100)] = 2
    width: Annotated[int, option("Neurons per hidden layer, for the sweep over alpha.", NETWORK, min=1)] = 256
    activation: Annotated[str, option(_ACTIVATION, NETWORK, autocompletion=smooth_activations)] = "tanh"
    alphas: Annotated[str, option("Lazy scales alpha to train at, separated by commas.", NETWORK)] = (
        "1,4,16,64"
    )
    widths: Annotated[str, option("Widths to train at; empty for none.", NETWORK)] = "64,256,1024"
    alpha: Annotated[float, option("Lazy scale alpha of the sweep over widths.", NETWORK, min=0)] = 8.0
    tol: Annotated[
        float, option("Training stops when the residual has fallen to this fraction.", TRAINING)
    ] = 1e-6
    max_steps: Annotated[int, option("Maximum number of steps of gradient descent.", TRAINING, min=1)] = (
        200_000
    )
    rich: Annotated[bool, option(_RICH, TRAINING)] = False

    def settings(self) -> Settings:
        """What the ladder is climbed with."""
        from ...forecasts.theory_ladder import Settings

        if activation_of(self.activation).kinks:
            raise ValueError(f"--activation {self.activation}: {_KINKED}; give a smooth one, e.g. gelu.")
        for name, value in (("alpha", self.alpha), ("tol", self.tol)):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"--{name} {value}: give a number above 0.")
        scales = _numbers("alphas", self.alphas, float)
        sizes = _numbers("widths", self.widths, int)
        if not scales and not sizes:
            raise ValueError("--alphas and --widths are both empty: give at least one value.")
        return Settings(**{**dataclasses.asdict(self), "alphas": tuple(scales), "widths": tuple(sizes)})


def _numbers(name: str, text: str, kind: type[float] | type[int]) -> list[float]:
    """Numbers above 0, separated by commas, in rising order."""
    numbers = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        try:
            value = kind(part)
        except ValueError:
            value = 0
        if not (math.isfinite(value) and value > 0):
            what = "integers" if kind is int else "numbers"
            raise ValueError(f"--{name} {text}: give {what} above 0, separated by commas; got {part!r}.")
        numbers.append(value)
    return sorted(set(numbers))
