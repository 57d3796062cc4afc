"""Pairs through layers partly outside of JAX: for activations with kinks, and far beyond the scale of a smooth one.

Their Hermite series needs too many terms or, near equal inputs, does not converge; a table or quadrature does its work,
layer by layer.
"""

from typing import Any

import jax
import numpy as np

from ..layers.activation import Activation
from ..layers.base import AbstractWideLayer, Pair, Row
from ..layers.layout import Layout
from .moment_walk import Walk


class Repairing(Walk):
    """Pairs, with a table or quadrature where a series does not reach."""

    on_host = True

    def rows(self, layer: AbstractWideLayer, row: Row, every: bool) -> tuple[Row, Any]:
        if not (isinstance(layer, Activation) and layer.function.by_table()) or every:
            return super().rows(layer, row, every)
        return layer.rows_with(row, layer.function.table_rows(np.asarray(row.size) ** 2))

    def pairs(
        self, layer: AbstractWideLayer, one: Any, two: Any, pair: Pair, layout: Layout, every: bool
    ) -> Pair:
        if layer.branches():
            return super().pairs(layer, one, two, pair, layout, every)
        if isinstance(layer, Activation) and layer.function.by_table():
            gap, slope = layer.function.table_pair(*layout.both(one, two), np.asarray(pair.gap))
            return Pair(gap, slope * pair.tangent)
        found = _compiled(layer, one, two, pair, layout, every)
        if not isinstance(layer, Activation) or layer.function.trusted_correlation() >= 1.0:
            return found
        now = np.asarray(pair.gap)
        far = np.abs(1.0 - now) > layer.function.trusted_correlation()
        if not far.any():
            return found
        left, right = (
            np.broadcast_to(np.asarray(a), now.shape)[far] for a in layout.both(one["from"], two["from"])
        )
        gap, slope = quadrature(layer.function, left, right, now[far])
        out_gap, tangent = np.array(found.gap), np.array(found.tangent)
        out_gap[far] = gap
        tangent[far] = slope * np.broadcast_to(np.asarray(pair.tangent), now.shape)[far]
        return Pair(out_gap, tangent)


@jax.jit(static_argnames="every")
def _compiled(layer, one, two, pair, layout, every):
    return Walk().pairs(layer, one, two, pair, layout, every)


def quadrature(
    function: Any, size1: np.ndarray, size2: np.ndarray, gap: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each distinct pair once: padding repeats the last row and column."""
    distinct, back = np.unique(np.column_stack([size1**2, size2**2, gap]), axis=0, return_inverse=True)
    found_gap, found_slope = function.quadrature(*distinct.T)
    return found_gap[back.ravel()], found_slope[back.ravel()]
