"""Kernels that are dot products of finitely many features."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import activations
from .._base.check import whole
from .._base.keys import Key, random_key
from .._base.types import Array, ArrayLike, Number
from .._run.memory import require_fits, rows_that_fit
from .._run.precision import drawing, in_float64, working_dtype
from ..models.expansion.features import checked_features, require_features, require_finite_features
from ..models.layers.weights import bias_variance, weight_variance
from .base import AbstractKernel

_ROWS = 16


class AbstractFeatureKernel(AbstractKernel):
    """k(x, y) = features(x) . features(y)."""

    @abc.abstractmethod
    def features(self, x: ArrayLike) -> jax.Array:
        """The features (n, f) of inputs `x` (n, d)."""

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        n1, n2 = len(x1), len(x1 if x2 is None else x2)
        require_fits(
            8 * n1 * n2, f"a kernel matrix of {n1} x {n2} points", "use fewer points, or `kernel.blocks`"
        )
        phi1 = self.feature_rows(x1)
        return phi1 @ (phi1 if x2 is None else self.feature_rows(x2)).T

    def feature_rows(self, x: np.ndarray) -> np.ndarray:
        """`features` of concrete inputs `x`, computed in chunks."""
        x = x.astype(working_dtype(), copy=False)
        width = jax.eval_shape(self.features, jax.ShapeDtypeStruct(x.shape, x.dtype)).shape[1]
        chunk = rows_that_fit(8 * width)
        parts = [self._filled_up(x[at : at + chunk]) for at in range(0, len(x), chunk)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _filled_up(self, x: np.ndarray) -> np.ndarray:
        """By a multiple of some rows at a time, so that few compilations serve sets of all sizes."""
        filled = np.pad(x, ((0, -len(x) % _ROWS), (0, 0)), mode="edge")
        phi = np.asarray(_features(self, filled))[: len(x)]
        return require_finite_features(phi, x)

    def traced(self, x1: Array, x2: Array | None) -> jax.Array:
        phi1 = self.features(x1)
        return phi1 @ (phi1 if x2 is None else self.features(x2)).T

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        return np.square(self.feature_rows(x)).sum(axis=1)


@jax.jit
def _features(kernel: AbstractFeatureKernel, x):
    return kernel.features(x)


class FeatureKernel(AbstractFeatureKernel):
    """The kernel of given features: the dot product of `phi`, a JAX function (n, d) -> (n, f)."""

    phi: Callable = eqx.field(static=True)

    def __check_init__(self):
        require_features(self.phi)

    @in_float64
    def features(self, x: ArrayLike) -> jax.Array:
        return checked_features(self.phi, jnp.asarray(x))


class RandomFeatures(AbstractFeatureKernel):
    r"""The kernel of random features: a layer that is drawn once and not trained.

    $$\phi(x) = \frac{1}{\sqrt m}\, s\!\left(\sqrt{C_W/d}\; W x + \sqrt{C_b}\; b\right)$$

    As $m$ = `size` grows, the kernel converges to the covariance $\mathbb{E}[s(u)\, s(v)]$ of that layer, with an
    error of order $1/\sqrt m$.

    **Arguments:** `in_dim`, number of input features d; `size`, number of features; `key`; `activation`, `weight_var`,
    `bias_var`: same as `nk.MLP`.
    """

    weight: jax.Array
    bias: jax.Array
    activation: activations.AbstractActivation
    weight_var: Number
    bias_var: Number

    @drawing
    def __init__(
        self,
        in_dim: int,
        size: int,
        key: Key,
        activation: str | Callable = "relu",
        weight_var: Number = 1.0,
        bias_var: Number = 0.0,
    ):
        weight_key, bias_key = jax.random.split(random_key(key))
        shape = (whole(in_dim, "in_dim", 1), whole(size, "size", 1))
        require_fits(3 * 8 * (shape[0] + 1) * shape[1], f"`size` = {size} random features", "use fewer")
        self.weight = jax.random.normal(weight_key, shape, working_dtype())
        self.bias = jax.random.normal(bias_key, shape[1:], working_dtype())
        self.activation = activations.get(activation)
        self.weight_var = weight_variance(weight_var)
        self.bias_var = bias_variance(bias_var)

    @in_float64
    def features(self, x: ArrayLike) -> jax.Array:
        scale = jnp.sqrt(self.weight_var / self.weight.shape[0])
        z = scale * (jnp.asarray(x) @ self.weight) + jnp.sqrt(self.bias_var) * self.bias
        return self.activation(z) / self.weight.shape[1] ** 0.5

    def input_dim(self) -> int:
        return self.weight.shape[0]
