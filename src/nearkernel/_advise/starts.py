"""Initializations: the critical one and what PyTorch, Flax and Keras do if nothing is said."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

Variances = Callable[[int, int], tuple[float, float]]  # (fan_in, fan_out) -> C_W, C_b of one layer


@dataclasses.dataclass(frozen=True)
class Start:
    """An initialization: variances of the weights (times fan-in) and biases of a layer, and the shape of their law."""

    name: str
    variances: Variances
    law: str  # "normal", "uniform" or "truncated_normal", of weights and biases
    words: str
    unit_first: bool = False  # whether the first layer and the output have C_W = 1 instead

    def first(self, fan_in: int, fan_out: int) -> tuple[float, float]:
        """C_W, C_b of the first layer, and of the output."""
        weight_var, bias_var = self.variances(fan_in, fan_out)
        return (1.0, bias_var) if self.unit_first else (weight_var, bias_var)


DEFAULTS = (
    Start(
        "PyTorch",
        lambda fan_in, _: (1 / 3, 1 / (3 * fan_in)),
        "uniform",
        "nn.Linear: weights and biases uniform within 1/sqrt(fan_in)",
    ),
    Start("Flax", lambda *_: (1.0, 0.0), "truncated_normal", "Dense: lecun_normal, biases 0"),
    Start(
        "Keras",
        lambda fan_in, fan_out: (2 * fan_in / (fan_in + fan_out), 0.0),
        "uniform",
        "Dense: glorot_uniform, biases 0",
    ),
)


def critical_start(weight_var: float, bias_var: float, unit_first: bool = False) -> Start:
    words = "normal weights and biases"
    return Start("critical", lambda *_: (weight_var, bias_var), "normal", words, unit_first)
