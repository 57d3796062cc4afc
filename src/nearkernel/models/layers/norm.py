"""Layer normalization."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import one_of, positive
from ...activations.averages.angle import safe_sqrt
from .base import AbstractWideLayer, Pair, Params, Row, Shape, covariance, inverse
from .layout import Layout


class LayerNorm(AbstractWideLayer):
    r"""Layer normalization, $(z - \mu) / \sqrt{\sigma^2 + \epsilon}$.

    $\mu$ and $\sigma^2$ are the mean and variance over the channels of each input. Over infinitely many channels both
    are constants: second moments and the tangent kernel are divided by the variance.

    **Arguments:** `axes`: "channel", at each position separately, or "all", over channels and positions; `eps`.
    """

    axes: str = eqx.field(static=True, default="channel")
    eps: Any = 1e-12

    def __check_init__(self):
        one_of(self.axes, "axes", ("channel", "all"))
        positive(self.eps, "eps", zero=True)

    def after(self, kind: str) -> str:
        if kind == "inputs":
            raise ValueError("normalize `x` itself: it does not have infinitely many channels")
        return super().after(kind)

    def shape(self, shape: Shape) -> Shape:
        return shape

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        axes = -1 if self.axes == "channel" else tuple(range(1, x.ndim))
        centered = x - jnp.mean(x, axis=axes, keepdims=True)
        return centered / jnp.sqrt(jnp.mean(centered**2, axis=axes, keepdims=True) + self.eps)

    def shifts(self) -> bool:
        return True

    def rows(self, row: Row) -> tuple[Row, Any]:
        mean, square = row.mean, row.size**2
        positions = tuple(range(row.size.ndim - 1))
        if self.axes == "all" and positions:
            mean = None if mean is None else jnp.broadcast_to(jnp.mean(mean, axis=positions), row.size.shape)
            whole = jnp.mean(square, axis=positions)
            variance = jnp.broadcast_to(
                whole if mean is None else whole - mean[(0,) * len(positions)] ** 2, square.shape
            )
        else:
            variance = square if mean is None else square - mean**2
        scale = inverse(safe_sqrt(variance + self.eps))
        tangent = row.tangent * scale**2
        if mean is None:
            return Row(row.size * scale, tangent), {"scale": scale}
        # A position's own mean need not be that of all.
        left = safe_sqrt(square - 2 * mean * row.mean + mean**2)
        data = {"scale": scale, "mean": row.mean, "shift": mean, "size": row.size, "inverse": inverse(left)}
        return Row(
            left * scale, tangent, (row.mean - mean) * scale if self.axes == "all" and positions else None
        ), data

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        one, two = layout.both(one, two)
        tangent = pair.tangent * (one["scale"] * two["scale"])
        if "mean" not in one:
            return Pair(pair.gap, tangent)
        product = (
            covariance(one["size"], two["size"], pair.gap)
            - one["shift"] * two["mean"]
            - one["mean"] * two["shift"]
        )
        product = product + one["shift"] * two["shift"]
        return Pair(jnp.maximum(1.0 - product * (one["inverse"] * two["inverse"]), 0.0), tangent)
