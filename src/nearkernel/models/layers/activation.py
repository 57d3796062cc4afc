"""An elementwise nonlinearity."""

from typing import Any

import jax
import numpy as np

from ... import activations
from .base import AbstractPiecewiseLayer, AbstractWideLayer, Pair, Params, Row, Shape
from .layout import Layout


class Activation(AbstractWideLayer, AbstractPiecewiseLayer):
    """An elementwise activation. `function`: a name such as "relu", or a JAX function (see `nk.activations.get`)."""

    function: activations.AbstractActivation

    def __init__(self, function: Any = "relu"):
        self.function = activations.get(function)

    def __repr__(self) -> str:
        return f"Activation({self.function!r})"

    def after(self, kind: str) -> str:
        if kind == "inputs":
            raise ValueError(
                "an activation needs weights before it: put Dense or Conv first, or transform `x`"
            )
        if kind == "features":
            raise ValueError(
                "an activation of inputs that are not Gaussian has no closed-form limit: put Dense or Conv before it"
            )
        return "features"

    def shape(self, shape: Shape) -> Shape:
        return shape

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        return self.function(x)

    def shifts(self) -> bool:
        return True

    def depends_on_range(self) -> bool:
        return self.function.depends_on_range

    def prepared(self, row: Row) -> "Activation":
        return Activation(self.function.prepared(np.ravel(np.asarray(row.size)) ** 2))

    def rows(self, row: Row) -> tuple[Row, Any]:
        own = self.function.rows(row.size**2)
        if self.function.trusted_correlation() < 1.0 or self.function.by_table():
            own = own | {"from": row.size}
        return self.rows_with(row, own)

    def rows_with(self, row: Row, own: Any) -> tuple[Row, Any]:
        """The moments after this layer, from `own`, what its function makes of those before, `row`."""
        return Row(own["size"], own["slope"] * row.tangent, self.function.mean(row.size**2)), own

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        gap, slope = self.function.pair(*layout.both(one, two), pair.gap)
        return Pair(gap, slope * pair.tangent)
