"""What layers with weights have in common, and those with one weight matrix and one bias."""

import abc
from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import between, positive
from ..._run.precision import working_dtype
from .base import AbstractWideLayer, Params, Shape

_SMALLEST, _LARGEST = 1e-100, 1e100  # squares of variances, and some of their products, are numbers still


def weight_variance(value: Any) -> Any:
    return between(positive(value, "weight_var"), "weight_var", _SMALLEST, _LARGEST)


def bias_variance(value: Any) -> Any:
    return between(positive(value, "bias_var", zero=True), "bias_var", 0.0, _LARGEST)


class AbstractWeights(AbstractWideLayer):
    """A layer of random weights, which may have any width."""

    width: eqx.AbstractVar[int]
    gives = "gaussian"

    @abc.abstractmethod
    def resized(self, change: Callable[[int], int]) -> "AbstractWeights":
        """The same layer of width `change(width)`."""

    def has_params(self) -> bool:
        return True

    def fresh(self) -> bool:
        return True

    def limit(self, shape: Shape) -> "AbstractWeights":
        return self.resized(lambda _: 1)


class AbstractAffine(AbstractWeights):
    """A layer with one `weight`, summed over a fan-in of numbers, and one `bias`."""

    weight_var: eqx.AbstractVar[Any]
    bias_var: eqx.AbstractVar[Any]
    parametrization: eqx.AbstractVar[str]

    @abc.abstractmethod
    def fan_in(self, channels: int) -> int:
        """The length of the sum that makes an output, for inputs of so many `channels`."""

    @abc.abstractmethod
    def scales(self, channels: int) -> tuple[Any, Any]:
        """What multiplies weights and bias, for inputs of so many `channels`."""

    def drawn(self, keys: Iterable[jax.Array], weight: Shape, bias: Shape, channels: int) -> Params:
        """Weights and biases of these shapes at initialization, for inputs of so many `channels`."""
        dtype = working_dtype()
        weights, biases = (
            jax.random.normal(key, shape, dtype) for key, shape in zip(keys, (weight, bias), strict=True)
        )
        if self.parametrization == "standard":
            weights = weights * jnp.sqrt(self.weight_var / self.fan_in(channels)).astype(dtype)
            biases = biases * jnp.sqrt(self.bias_var).astype(dtype)
        return {"weight": weights, "bias": biases}

    def lr_factors(self, shape: Shape) -> Params:
        """ "standard" trained with C_W/fan_in and C_b is "ntk" trained with 1."""
        if self.parametrization == "standard":
            return {"weight": self.weight_var / self.fan_in(shape[-1]), "bias": self.bias_var}
        return {"weight": self.shrinks(shape), "bias": 1.0}

    def outputs(self, products: jax.Array, params: Params, x: jax.Array) -> jax.Array:
        """Products of inputs `x` and weights, with both factors and the bias."""
        weight_scale, bias_scale = (jnp.asarray(scale, x.dtype) for scale in self.scales(x.shape[-1]))
        return weight_scale * products + bias_scale * params["bias"]

    def entering(self, flat: jax.Array, x: jax.Array, factors: Params) -> jax.Array:
        """What weights (n, positions, fan_in) and the bias are multiplied with at `x`, in one array."""
        weight_scale, bias_scale = self.scales(x.shape[-1])
        bias = jnp.sqrt(factors["bias"]) * (bias_scale * jnp.ones((1, 1, 1), x.dtype))
        bias = jnp.broadcast_to(bias, (*flat.shape[:2], 1)).astype(flat.dtype)
        return jnp.concatenate([jnp.sqrt(factors["weight"]) * (weight_scale * flat), bias], axis=-1)
