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
    heads: tuple[float, float] | None = None  # what `attention` gives, if not C_W of other layers

    def first(self, fan_in: int, fan_out: int) -> tuple[float, float]:
        """C_W, C_b of the first layer, and of the output."""
        weight_var, bias_var = self.variances(fan_in, fan_out)
        return (1.0, bias_var) if self.unit_first else (weight_var, bias_var)

    def attention(self, width: int) -> tuple[float, float]:
        """C_W of queries, keys and values, and of outputs."""
        weight_var, _ = self.variances(width, width)
        return self.heads or (weight_var, weight_var)


DEFAULTS = (
    Start(
        "PyTorch",
        lambda fan_in, _: (1 / 3, 1 / (3 * fan_in)),
        "uniform",
        "nn.Linear: weights and biases uniform within 1/sqrt(fan_in)",
        heads=(1 / 2, 1 / 3),  # in_proj_weight, of three matrices, is initialized as one by xavier_uniform_
    ),
    Start("Flax", lambda *_: (1.0, 0.0), "truncated_normal", "Dense: lecun_normal, biases 0"),
    Start(
        "Keras",
        lambda fan_in, fan_out: (2 * fan_in / (fan_in + fan_out), 0.0),
        "uniform",
        "Dense: glorot_uniform, biases 0",  # and attention, since #22789 (2026) counts its fans as those of Dense
    ),
)


def critical_start(weight_var: float, bias_var: float, unit_first: bool = False) -> Start:
    words = "normal weights and biases"
    return Start("critical", lambda *_: (weight_var, bias_var), "normal", words, unit_first)
