"""Initializations: the critical one and what PyTorch, Flax and Keras do if nothing is said; and how to type them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

Variances = Callable[[int, int], tuple[float, float]]  # (fan_in, fan_out) -> C_W, C_b of one layer


@dataclasses.dataclass(frozen=True)
class Start:
    """An initialization: variances of the weights (times fan-in) and biases of a layer, and the shape of their law."""

    name: str
    variances: Variances
    law: str  # "normal", "uniform" or "truncated_normal", of weights and biases
    words: str
    unit_first: bool = False  # whether the first layer has C_W = 1 instead

    def first(self, fan_in: int, fan_out: int) -> tuple[float, float]:
        """C_W, C_b of the first layer."""
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


def how_to_type(weight_var: float, bias_var: float, width: int) -> dict[str, str]:
    """The critical initialization of one layer in three frameworks."""
    scale, deviation = f"{weight_var:.8g}", f"{math.sqrt(bias_var):.8g}"
    torch_bias = "torch.nn.init.zeros_(layer.bias)"
    flax_bias = "nn.initializers.zeros_init()"
    keras_bias = '"zeros"'
    if bias_var > 0:
        torch_bias = f"torch.nn.init.normal_(layer.bias, std={deviation})"
        flax_bias = f"nn.initializers.normal({deviation})"
        keras_bias = f"keras.initializers.RandomNormal(stddev={deviation})"
    return {
        "PyTorch": f"torch.nn.init.normal_(layer.weight, std=({scale} / layer.in_features) ** 0.5)\n{torch_bias}",
        "Flax": f'nn.Dense({width}, kernel_init=nn.initializers.variance_scaling({scale}, "fan_in", "normal"),\n'
        f"         bias_init={flax_bias})",
        "Keras": f"keras.layers.Dense({width}, bias_initializer={keras_bias}, kernel_initializer=\n"
        f'    keras.initializers.VarianceScaling({scale}, "fan_in", "untruncated_normal"))',
    }
