"""Learned embeddings of positions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import positive
from ..._run.precision import working_dtype
from ...activations.averages.angle import safe_sqrt
from .base import AbstractWideLayer, Pair, Params, Row, Shape, inverse, mixed_gap
from .layout import Layout


class PositionEmbedding(AbstractWideLayer):
    r"""Position embeddings, $z_p = x_p + \sqrt{C}\, e_p$, with one trained vector $e_p$ per position.

    At initialization the entries of $e$ are standard normal, with covariance $\exp(-\text{decay}\, |p - q|^2)$
    between positions, or independent without `decay`. Without embeddings, attention and pooling do not see the order
    of positions.

    **Arguments:** `var`, $C > 0$; `decay` >= 0, or None. Parameters are
    `dict(embedding=(*positions, channels))`.
    """

    var: Any = 1.0
    decay: Any = None

    def __check_init__(self):
        positive(self.var, "var")
        if self.decay is not None:
            positive(self.decay, "decay", zero=True)

    def __repr__(self) -> str:
        return f"PositionEmbedding(var={self.var}, decay={self.decay})"

    def after(self, kind: str) -> str:
        if kind == "inputs":
            raise ValueError("its input does not have infinitely many channels: put Dense or Conv before it")
        return "gaussian" if kind == "gaussian" else "features"

    def has_params(self) -> bool:
        return True

    def shape(self, shape: Shape) -> Shape:
        if len(shape) < 2:
            raise ValueError(f"it needs positions, and its input of shape {shape} has none")
        return shape

    def init(self, key: jax.Array, shape: Shape) -> Params:
        return {"embedding": jax.random.normal(key, shape, working_dtype())}

    def lr_factors(self, shape: Shape) -> Params:
        return {"embedding": 1.0}

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        drawn = params["embedding"]
        if self.decay is not None:
            flat = drawn.reshape(-1, drawn.shape[-1])
            drawn = (self._root(drawn.shape[:-1]).astype(drawn.dtype) @ flat).reshape(drawn.shape)
        return x + jnp.sqrt(self.var).astype(x.dtype) * drawn

    def _alike(self, grid: Shape) -> jax.Array:
        """Covariances of every two positions, (positions, positions)."""
        places = np.stack(np.meshgrid(*map(np.arange, grid), indexing="ij"), axis=-1).reshape(-1, len(grid))
        square = np.sum((places[:, None] - places[None]) ** 2, axis=-1)
        return jnp.asarray(square == 0, float) if self.decay is None else jnp.exp(-self.decay * square)

    def _root(self, grid: Shape) -> jax.Array:
        values, vectors = jnp.linalg.eigh(self._alike(grid))
        return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T

    def rows(self, row: Row) -> tuple[Row, Any]:
        size = safe_sqrt(row.size**2 + self.var)
        scale = inverse(size)
        data = {"input": row.size * scale, "embedding": jnp.sqrt(self.var) * scale}
        return Row(size, row.tangent + self.var, row.mean), data

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        alike: Any = 1.0
        if layout.every:
            grid = one["input"].shape[-1 - layout.rank : -1]
            alike = self._alike(grid).astype(one["input"].dtype)
            alike = alike.reshape(*grid, *grid, *(1,) * (2 if layout.outer else 1))
        shares1, shares2 = ([side["input"], side["embedding"]] for side in layout.both(one, two))
        return Pair(mixed_gap(shares1, shares2, [pair.gap, 1.0 - alike]), pair.tangent + self.var * alike)
