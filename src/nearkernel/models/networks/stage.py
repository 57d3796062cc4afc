"""A stage of a chain: weights, and the activation before them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..layers.dense import Dense

Step = tuple[str, int]  # into a tree of parameters: ("item", k) of a list, or ("slice", k) of all arrays
Entry = dict[str, Any]  # weight and bias of a stage


class Stage(NamedTuple):
    """z' = W s(z) + b, plus what a residual block skips; the first stage has no activation, and acts on inputs."""

    activation: Any  # None in the first
    dense: Dense
    fan_in: int
    ends: bool  # whether a layer of the network ends here, and not within a Repeat
    where: tuple[Step, ...]  # its parameters
    skip: int | None = None  # the stage whose outputs are added

    @property
    def weight_var(self) -> float:
        return float(self.dense.weight_var)

    @property
    def bias_var(self) -> float:
        return float(self.dense.bias_var)

    @property
    def gain(self) -> float:
        """The variance of what multiplies an input, times the fan-in, at initialization."""
        return self.weight_var / (self.fan_in if self.dense.parametrization == "mean_field" else 1)

    @property
    def spread(self) -> float:
        """The standard deviation of the weights at initialization."""
        return (self.weight_var / self.fan_in) ** 0.5 if self.dense.parametrization == "standard" else 1.0

    def affine(self, entry: Entry) -> tuple[np.ndarray, np.ndarray]:
        return affine(self.dense, entry, self.fan_in)

    def apply(self, entry: Entry, s: jax.Array) -> jax.Array:
        """W s + b of parameters of unit variance."""
        weight = jnp.sqrt(self.weight_var / self.fan_in) * entry["weight"]
        return s @ weight + jnp.sqrt(self.bias_var) * entry["bias"]

    def of_unit_variance(self, entry: Entry) -> Entry:
        if self.dense.parametrization != "standard":
            return entry
        bias = entry["bias"] / self.bias_var**0.5 if self.bias_var else 0.0 * entry["bias"]
        return {"weight": entry["weight"] / self.spread, "bias": bias}


def affine(dense: Dense, entry: Entry, fan_in: int) -> tuple[np.ndarray, np.ndarray]:
    """W (fan_in, fan_out) and b (fan_out,) of a layer, with their factors."""
    weight_scale, bias_scale = (float(scale) for scale in dense.scales(fan_in))
    return weight_scale * np.asarray(entry["weight"]), bias_scale * np.asarray(entry["bias"])
