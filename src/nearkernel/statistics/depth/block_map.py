r"""One block on: variances, squared gradients and angles of what leaves it, for many blocks or variances at once."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ...models.containers.moment_walk import Walk
from ...models.containers.repairing_walk import Repairing
from ...models.containers.sequential import Sequential
from ...models.layers.activation import Activation
from ...models.layers.base import AbstractWideLayer, Pair, Row
from ...models.layers.layout import Layout

_READY = Layout(0, outer=False)


class Alone(Walk):
    """Rows of concrete variances without what pairs would need: averages of one input are cheap."""

    on_host = True

    def rows(self, layer: AbstractWideLayer, row: Row, every: bool) -> tuple[Row, Any]:
        if isinstance(layer, Activation):
            layer = Activation(layer.function.prepared(np.ravel(np.asarray(row.size)) ** 2, pairs=False))
        return super().rows(layer, row, every)


def _rows(layers: Sequential, k: np.ndarray, tangent: float) -> Row:
    row = Row(np.sqrt(k), np.full_like(k, tangent))
    after = (
        Alone().rows(layers, row, False)[0] if layers.depends_on_range() else _compiled_rows(layers, row)[0]
    )
    return jax.tree.map(np.asarray, after)


_compiled_rows = jax.jit(lambda layers, row: Walk().rows(layers, row, False))


def variance_after(layers: Sequential, k: np.ndarray) -> np.ndarray:
    """K' at variances (cells,)."""
    return _rows(layers, k, 0.0).size ** 2


def step(layers: Sequential, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(K', chi_perp) at variances (cells,)."""
    after = _rows(layers, k, 1.0)
    return after.size**2, after.tangent - _rows(layers, k, 0.0).tangent


def gaps_after(layers: Sequential, k: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """1 - correlation after the block, as a function of that before, for two inputs of variance K (cells,)."""
    row = Row(np.sqrt(k), np.zeros_like(k))
    if layers.depends_on_range():
        layers = layers.prepared_by(row, False)[0]
        data = Walk().rows(layers, row, False)[1]
    else:
        data = _compiled_rows(layers, row)[1]

    def after(gap: np.ndarray) -> np.ndarray:
        return np.asarray(Repairing().pairs(layers, data, data, Pair(gap, 0.0 * gap), _READY, False).gap)

    return after
