r"""The kernels of infinitely wide networks, for inputs without positions.

    K^1 = C_b + C_W x.y/d,  K^{l+1} = C_b + C_W E[s s],  Theta^{l+1} = K^{l+1} + C_W E[s' s'] Theta^l

for fully connected layers; what others do is written in their classes. Angles are carried as gaps through all layers,
so that nothing cancels near the diagonal.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import numpy as np

from ..._base.types import Array, Number, PyTree
from ..._run.blas import one_thread
from ...activations.base import AbstractActivation
from ...models.containers.moment_walk import Walk, overflow
from ...models.containers.repairing_walk import Repairing
from ...models.containers.sequential import Sequential
from ...models.layers.base import AbstractLayer, Pair, Row
from ...models.layers.layout import Layout
from ..base import InvariantKernel
from ..tiles import as_column, as_row, matrices, ready, traced_matrices

_READY = Layout(0, outer=False)  # rows come in broadcast against pairs


class Wide(InvariantKernel):
    """Layer by layer from inputs to both kernels: what NNGP and NTK share, without the widths."""

    layers: Sequential
    in_dim: Number  # a number, but not a static one: a new one must not compile anew
    outputs: tuple[str, ...] = eqx.field(static=True)  # of "nngp", "ntk"
    # Kept, since both take a pass over all layers.
    _ranged: bool = eqx.field(static=True)
    _trusted: bool = eqx.field(static=True)

    def __init__(self, layers: Sequential, in_dim: Number, outputs: tuple[str, ...]):
        self.layers = layers
        self.in_dim = in_dim
        self.outputs = outputs
        self._ranged, self._trusted = layers.depends_on_range(), trusted(layers) and not _tabled(layers)

    def _start(self, norms: Array) -> Row:
        size = norms / self.in_dim**0.5
        return Row(size, 0.0 * size)

    def rows(self, norms: Array) -> dict:
        walk = Repairing() if isinstance(norms, np.ndarray) else Walk()
        last, data = walk.rows(self.layers, self._start(norms), False)
        return {"data": data, "nngp": last.size**2, "ntk": last.tangent, "size": last.size}

    def _select(self, nngp: Array, ntk: Array) -> tuple:
        return tuple({"nngp": nngp, "ntk": ntk}[name] for name in self.outputs)

    def pairs(self, rows1: PyTree, rows2: PyTree, gap: Array) -> tuple:
        return self._through(Walk(), rows1, rows2, gap)

    def _through(self, walk: Walk, rows1: PyTree, rows2: PyTree, gap: Array) -> tuple:
        start = Pair(gap, 0.0 * gap)
        pair = walk.pairs(self.layers, rows1["data"], rows2["data"], start, _READY, False)
        return self._select(rows1["size"] * rows2["size"] * (1.0 - pair.gap), pair.tangent)

    def diagonals(self, rows: PyTree) -> tuple:
        return self._select(rows["nngp"], rows["ntk"])

    def prepared(self, norms: np.ndarray) -> "Wide":
        """Each layer made ready for the range of sizes that reaches it."""
        if not self._ranged:
            return self
        try:
            layers, _ = self.layers.prepared_by(self._start(_spread(norms)), False)
        except OverflowError:
            longest = norms.max(keepdims=True)
            raise ValueError(
                f"`x` is too large for this kernel: at length {longest[0]:.3g}, {self.overflow(longest)}."
            ) from None
        return Wide(layers, self.in_dim, self.outputs)

    def overflow(self, norm: np.ndarray) -> str:
        return overflow(self.layers, self._start(norm)) or super().overflow(norm)

    def needs_repair(self) -> bool:
        return not self._trusted

    def repaired_pairs(self, rows1: PyTree, rows2: PyTree, gap: np.ndarray) -> tuple:
        """Layer by layer, with a table or quadrature where a series does not reach."""
        return self._through(Repairing(), as_column(rows1), as_row(rows2), gap)

    def states(
        self, norms: np.ndarray, gap: np.ndarray, slopes: bool = False
    ) -> Iterator[tuple[AbstractLayer, Row, Pair]]:
        """After each layer: the layer, the moments of inputs of these lengths, and those of their pairs.

        With `slopes`, what stands for tangent kernels is after an activation the average of its slopes alone.
        """
        walk, row, pair = Repairing(), self._start(norms), Pair(gap, 0.0 * gap)
        for layer in self.layers.layers:
            if slopes:
                row, pair = row._replace(tangent=np.ones_like(norms)), Pair(pair.gap, np.ones_like(gap))
            row, data = walk.rows(layer, row, False) if layer.depends_on_range() else _rows(layer, row)
            row = jax.tree.map(np.asarray, row)
            pair = walk.pairs(layer, as_column(data), as_row(data), pair, _READY, False)
            yield layer, row, pair

    def both(self, x1: np.ndarray, x2: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """All its matrices, of checked, concrete inputs."""
        with one_thread():
            kernel, side1, side2 = ready(self, x1, x2)
            return matrices(kernel, side1, side2, len(self.outputs))

    def traced_both(self, x1: Array, x2: Array | None) -> tuple[Array, ...]:
        """The same as JAX expressions."""
        return traced_matrices(self, x1, x2)


_rows = jax.jit(lambda layer, row: Walk().rows(layer, row, False))


def trusted(layers: AbstractLayer) -> bool:
    """Whether the averages of all activations hold at any correlation."""
    return all(function.trusted_correlation() >= 1.0 for function in _functions(layers))


def _tabled(layers: AbstractLayer) -> bool:
    """Whether an activation is to be asked outside of JAX."""
    return any(function.by_table() for function in _functions(layers))


def _functions(layers: AbstractLayer) -> list[AbstractActivation]:
    nodes = jax.tree.leaves(layers, is_leaf=lambda node: isinstance(node, AbstractActivation))
    return [node for node in nodes if isinstance(node, AbstractActivation)]


def _spread(values: np.ndarray) -> np.ndarray:
    """A few values that span the range of `values`: preparing looks at the range only, and compiles once."""
    return np.quantile(values, np.linspace(0.0, 1.0, 8))
