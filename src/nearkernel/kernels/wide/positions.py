"""The kernels of infinitely wide networks for inputs with positions: sequences and images.

Two ways through the network. Where only equal positions are ever compared (convolutions, then Flatten), all arrays are
(*positions, n1, n2). Where a layer compares every two positions (pooling, attention), convolutions with stride 1 before
it keep the distance of two positions: each distance is a separate image, and one after the other is computed and
added to what that layer needs. Nothing of the size of all pairs of positions is held for those layers, which are most
of the work.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.types import Array, PyTree
from ..._run.executor import in_order, lanes
from ..._run.memory import rows_that_fit
from ..._run.precision import working_dtype
from ...models.containers.moment_walk import Walk, exact_own, overflow
from ...models.containers.sequential import Sequential
from ...models.layers.base import AbstractWideLayer, Pair, Row, covariance, gap_of_distance, inverse
from ...models.layers.layout import Layout
from ..tiles import Side, Tiles, finite_rows, matrices, tiles_of, too_large
from .gather import At, Gather, Offset, gather_for
from .vectors import trusted

_FEW_CHANNELS = 8
_FEW_INPUTS = 16  # that stand for all where a range is asked for
_TILE_ENTRIES = 2**17  # positions times pairs: a megabyte an array
_ROW_BYTES = 2**28


class Entry(AbstractWideLayer):
    """The inputs themselves: half the squared distance of every two patches, from their differences."""

    def shape(self, shape):
        return shape

    def __call__(self, params, x):
        return x

    def rows(self, x: Array) -> tuple[Row, PyTree]:
        """From inputs (channels, *positions, n)."""
        channels = x.shape[0]
        size = jnp.sqrt(jnp.sum(x * x, axis=0) / channels)
        return Row(size, 0.0 * size), {"x": x, "size": size, "inverse": inverse(size)}

    def pairs(self, one: PyTree, two: PyTree, pair: Pair | None, layout: Layout) -> Pair:
        one, two = layout.both(one, two)
        if len(one["x"]) <= _FEW_CHANNELS:
            parts = [(a - b) ** 2 for a, b in zip(one["x"], two["x"], strict=True)]
            distance = (0.5 / len(parts)) * sum(parts[1:], parts[0])
        else:
            product = jnp.sum(one["x"] * two["x"], axis=0) / len(one["x"])
            distance = jnp.maximum(0.5 * (one["size"] ** 2 + two["size"] ** 2) - product, 0.0)
        inverses = one["inverse"] * two["inverse"]
        gap = jnp.minimum(gap_of_distance(one["size"], two["size"], inverses, distance), 2.0)
        return Pair(gap, 0.0 * gap)


class PositionWide(eqx.Module):
    """**Fields:** `layers`, a limit; `in_shape`; `outputs`, of "nngp", "ntk"."""

    layers: Sequential
    in_shape: tuple[int, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)

    @property
    def rank(self) -> int:
        return len(self.in_shape) - 1

    @property
    def compares(self) -> bool:
        """Whether some layer compares every two positions."""
        return self.layers.needs(False)[0]

    def split(self) -> tuple[Sequential, Sequential]:
        """The layers that keep distances, before the first that compares every two positions; and the rest."""
        if not self.compares:
            return self.layers, Sequential(())
        count = 0
        for layer, after in zip(self.layers.layers, self.layers.needs(False)[1:], strict=True):
            if not (layer.shifts() and after and layer.rank(self.rank) == self.rank):
                break
            count += 1
        return Sequential(self.layers.layers[:count]), Sequential(self.layers.layers[count:])

    def rows(self, x: Array) -> dict:
        """Row data of inputs (channels, *positions, n)."""
        first, rest = self.split()
        row, entry = Entry().rows(x)
        row, data = Walk().rows(first, row, False)
        head = {"entry": entry, "first": data, "size": row.size}
        if rest.layers:
            row, mixer = self._gather(rest.layers[0]).rows(row, self._shifted(head, head, outer=False))
            row, data = Walk().rows(Sequential(rest.layers[1:]), row, False)
            head |= {"mixer": mixer, "rest": data}
        return head | {"last": {"size": row.size, "tangent": row.tangent}}

    def _gather(self, mixer: AbstractWideLayer) -> "Gather":
        needs = self.layers.needs(False)
        after = needs[len(self.split()[0].layers) + 1]
        return gather_for(mixer, self.in_shape[:-1], after)

    def _shifted(self, rows1: PyTree, rows2: PyTree, outer: bool = True) -> At:
        """(pair, layout, sizes) of the layers that keep distances, as a function of the distance."""
        first = self.split()[0]

        def at(offset: Offset) -> tuple[Pair, Layout]:
            layout = Layout(self.rank, False, outer, offset)
            pair = Entry().pairs(rows1["entry"], rows2["entry"], None, layout)
            return Walk().pairs(first, rows1["first"], rows2["first"], pair, layout, False), layout

        return at

    def pairs_of(self, rows1: PyTree, rows2: PyTree, gap: None = None) -> tuple:
        """The matrices, from the row data of both sides."""
        _, rest = self.split()
        if rest.layers:
            at = self._shifted(rows1, rows2)
            pair, layout = self._gather(rest.layers[0]).pairs(rows1["mixer"], rows2["mixer"], at)
            after = Sequential(rest.layers[1:])
            pair = Walk().pairs(after, rows1["rest"], rows2["rest"], pair, layout, False)
        else:
            pair, _ = self._shifted(rows1, rows2)(None)
        flat = Layout(0)
        nngp = covariance(*flat.both(rows1["last"]["size"], rows2["last"]["size"]), pair.gap)
        return self._select(nngp, pair.tangent)

    def _select(self, nngp: Array, ntk: Array) -> tuple:
        return tuple({"nngp": nngp, "ntk": ntk}[name] for name in self.outputs)

    def diagonals(self, rows: PyTree) -> tuple:
        return self._select(rows["last"]["size"] ** 2, rows["last"]["tangent"])

    def needs_repair(self) -> bool:
        return False  # refused in `_prepared_for`

    # In matrices

    def tile(self, n: int) -> int:
        """Inputs on each side of a tile of `n`: so many that all positions of their pairs stay in the cache.

        Where pairs are dear there are enough tiles for all threads, too.
        """
        positions = math.prod(self.in_shape[:-1])
        side = math.isqrt(max(1, _TILE_ENTRIES // self._held()))
        if n * n * (positions**2 if self.compares else positions) > _TILE_ENTRIES:
            side = min(side, n // (2 * lanes()))
        return min(1 << max(side, 1).bit_length() - 1, 128)

    def _held(self) -> int:
        """Entries of a pair of inputs that are there at once."""
        shape, most = self.in_shape, math.prod(self.in_shape[:-1])
        for layer, every in zip(self.layers.layers, self.layers.needs(False)[1:], strict=True):
            shape = layer.shape(shape)
            if every and not layer.shifts():
                most = max(most, math.prod(shape[:-1]) ** 2)
        return most

    def ready(self, x: np.ndarray) -> tuple["PositionWide", Side]:
        """This kernel prepared for concrete inputs, and these with their row data."""
        kernel = self._prepared(x)
        return kernel, kernel._side(x)

    def _side(self, inputs: np.ndarray) -> Side:
        x = _channels_first(inputs)
        positions = math.prod(self.in_shape[:-1])
        held = 8 * positions * (positions if self.compares else 64)
        n = x.shape[-1]
        size = min(rows_that_fit(held, _ROW_BYTES), 1 << (n - 1).bit_length())
        if self.compares:  # an input with itself costs as much as a pair
            size = min(size, self.tile(n))

        def rows_from(at: int) -> PyTree:
            part = x[..., at : at + size]
            missing = [(0, 0)] * (x.ndim - 1) + [(0, size - part.shape[-1])]
            rows = _rows(self, np.pad(part, missing, mode="edge"))
            return jax.tree.map(lambda a: np.asarray(a)[..., : part.shape[-1]], rows)

        rows = jax.tree.map(lambda *a: np.concatenate(a, axis=-1), *in_order(rows_from, range(0, n, size)))
        return Side(None, finite_rows(self, rows, inputs, inputs), x.shape[-1])

    def overflow(self, x: np.ndarray) -> str:
        """What to say of an input (1, *positions, channels) whose row data are not finite."""
        row, entry = Entry().rows(_channels_first(x))
        if self.compares:
            layout = Layout(self.rank, every=True, outer=False)
            row = row._replace(own=exact_own(Entry().pairs(entry, entry, None, layout), row))
        return overflow(self.layers, row) or "the kernel overflows there"

    def _prepared(self, x: np.ndarray) -> "PositionWide":
        """Each activation made ready for the range of sizes that reaches it."""
        if not self.layers.depends_on_range():
            return self
        try:
            return self._prepared_for(x)
        except OverflowError:
            largest = int(np.abs(x).max(axis=tuple(range(1, x.ndim))).argmax())
            raise too_large(self, x, largest, x) from None

    def _prepared_for(self, x: np.ndarray) -> "PositionWide":
        first, rest = self.split()
        start, _ = Entry().rows(jnp.asarray(_channels_first(x)))
        ready, row = first.prepared_by(start, False)
        if rest.layers and Sequential(rest.layers[1:]).depends_on_range():
            known = PositionWide(Sequential((*ready.layers, *rest.layers)), self.in_shape, self.outputs)
            few = x[_spread(np.asarray(row.size).mean(axis=tuple(range(self.rank))))]
            after, _ = Sequential(rest.layers[1:]).prepared_by(_mixed(known, _channels_first(few)), False)
            rest = Sequential((rest.layers[0], *after.layers))
        layers = Sequential((*ready.layers, *rest.layers))
        if not trusted(layers):
            raise ValueError(
                "`net` has a kinked activation without a known name, whose averages over nearly equal "
                'positions need quadrature: use "relu", "leaky_relu(slope)", "abs" or a smooth activation.'
            )
        return PositionWide(layers, self.in_shape, self.outputs)

    def after_mixer(self, x: Array) -> Row:
        """Moments of inputs (channels, *positions, n) after the first layer that compares every two positions."""
        first, rest = self.split()
        row, entry = Entry().rows(x)
        row, data = Walk().rows(first, row, False)
        head = {"entry": entry, "first": data}
        return self._gather(rest.layers[0]).rows(row, self._shifted(head, head, outer=False))[0]

    def both(self, x1: np.ndarray, x2: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """All its matrices, of checked, concrete inputs."""
        kernel = self._prepared(x1 if x2 is None else np.concatenate([x1, x2]))
        return matrices(kernel, kernel._side(x1), None if x2 is None else kernel._side(x2), len(self.outputs))

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        return self.both(x1, x2)[0]

    def tiles(self, x: np.ndarray) -> Tiles:
        return tiles_of(*self.ready(x))

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        kernel, side = self.ready(x)
        return np.array(kernel.diagonals(side.rows)[0])

    def traced_both(self, x1: Array, x2: Array | None) -> tuple[Array, ...]:
        """The matrices as JAX expressions, for a caller that is tracing."""
        sides = [
            None if x is None else self.rows(jnp.moveaxis(jnp.asarray(x), (0, -1), (-1, 0))) for x in (x1, x2)
        ]
        kernels = self.pairs_of(sides[0], sides[0] if x2 is None else sides[1])
        if x2 is not None:
            return kernels
        same = jnp.eye(len(x1), dtype=bool)
        return tuple(jnp.where(same, d, m) for m, d in zip(kernels, self.diagonals(sides[0]), strict=True))

    def traced(self, x1: Array, x2: Array | None) -> jax.Array:
        return self.traced_both(x1, x2)[0]


def _channels_first(x: np.ndarray) -> np.ndarray:
    """From (n, *positions, channels) to (channels, *positions, n)."""
    return np.moveaxis(x, (0, -1), (-1, 0)).astype(working_dtype())


def _spread(sizes: np.ndarray) -> np.ndarray:
    """A fixed number of inputs that span the range of sizes."""
    return np.argsort(sizes)[np.linspace(0, len(sizes) - 1, _FEW_INPUTS).round().astype(int)]


@jax.jit
def _rows(kernel, x):
    return kernel.rows(x)


@jax.jit
def _mixed(kernel, x):
    return kernel.after_mixer(x)
