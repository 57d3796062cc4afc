"""Kernel matrices tile by tile: bounded memory, all cores or devices, half the work when symmetric.

Every rotation-invariant kernel is a function of the two lengths and of the gap 1 - cos of the angle. The gap
of nearly parallel inputs is recomputed from their difference, since 1 - cos has no digits left there; all
kernels inherit that accuracy.
"""

import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._base.types import Array, PyTree
from .._run.blas import one_thread
from .._run.executor import PerDevice, in_order, lanes, on_host
from .._run.memory import require_fits
from .._run.precision import working_dtype
from .finiteness import length

TILE = 400
_SMALL = 128  # rows up to which a tile is padded to this
_ROWS = 16 * TILE  # inputs whose data are made at a time
_NEAR_BYTES = 8 * 2**20  # of differences at a time
_NEAR = 1e-3  # below this gap the rounding of 1 - cos would show in the angle's 14th digit
_CORNER = 64  # rows of a symmetric block that are mirrored at a time
# Half of the registers is what XLA uses if not asked; chains of operations wait for each other less in whole ones.
_WIDE_REGISTERS = {"xla_cpu_prefer_vector_width": 512}


class Side(NamedTuple):
    """Inputs made ready: unit vectors (n, d), if the kernel sees angles, and row data with inputs on the last axis."""

    unit: np.ndarray | None
    rows: PyTree
    size: int

    def __len__(self) -> int:
        return self.size


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _Packed:
    """Row data as one array (k, n): a compiled program is handed one argument instead of dozens."""

    array: Array
    tree: jax.tree_util.PyTreeDef = dataclasses.field(metadata={"static": True})
    shapes: tuple[tuple[int, ...], ...] = dataclasses.field(metadata={"static": True})

    @classmethod
    def of(cls, rows: PyTree, n: int, padding: int) -> "_Packed":
        """Of `n` inputs, the last one repeated so many times more."""
        leaves, tree = jax.tree.flatten(rows)
        shapes = tuple(leaf.shape[:-1] for leaf in leaves)
        array = np.empty((sum(map(math.prod, shapes)), n + padding), np.result_type(*leaves))
        np.concatenate([leaf.reshape(-1, n) for leaf in leaves], out=array[:, :n])
        array[:, n:] = array[:, n - 1 : n]
        return cls(array, tree, shapes)

    def part(self, start: int, size: int) -> "_Packed":
        return _Packed(self.array[:, start : start + size], self.tree, self.shapes)

    def rows(self) -> PyTree:
        """The tree again, of NumPy or JAX arrays."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes]).tolist()
        parts = (self.array[a:b] for a, b in zip([0, *ends], ends, strict=False))
        leaves = [part.reshape(*shape, -1) for part, shape in zip(parts, self.shapes, strict=True)]
        return jax.tree.unflatten(self.tree, leaves)


class Tiles(NamedTuple):
    """A symmetric kernel matrix of which any tile can be had: `tile(i, j)` for slices of at most `size` rows.

    `i` and `j` are equal or do not overlap. `threads` is how many tiles are worth computing at once.
    """

    tile: Callable[[slice, slice], np.ndarray]
    size: int
    threads: int


def ready(kernel, x1: np.ndarray, x2: np.ndarray | None) -> tuple[Any, Side, Side | None]:
    """The kernel prepared for these inputs, and both sides (None for the second if it is the first)."""
    norms = [
        _lengths(x, name) for x, name in ((x1, "x" if x2 is None else "x1"), (x2, "x2")) if x is not None
    ]
    with np.errstate(over="ignore", invalid="ignore"), one_thread():
        kernel = kernel.prepared(np.concatenate(norms))
        return kernel, _side(kernel, x1, norms[0]), None if x2 is None else _side(kernel, x2, norms[1])


def _lengths(x: np.ndarray, name: str) -> np.ndarray:
    """|x_i| (n,), refused where its square would overflow."""
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
    most = float(np.finfo(working_dtype()).max) ** 0.5 / 4
    if not lengths.max() < most:
        row = int(np.abs(x).max(axis=1).argmax())
        raise ValueError(
            f"`{name}` has a row of length {length(x[row]):.3g} (row {row}), whose square overflows: scale the inputs, "
            "e.g. to unit variance."
        )
    return lengths


def _side(kernel, x: np.ndarray, norm: np.ndarray) -> Side:
    dtype = working_dtype()
    unit = (x / np.where(norm > 0, norm, 1.0)[:, None]).astype(dtype, copy=False)
    chunks = [
        jax.tree.map(lambda a: np.asarray(a, dtype), kernel.rows(norm[at : at + _ROWS]))
        for at in range(0, len(x), _ROWS)
    ]
    rows = chunks[0] if len(chunks) == 1 else jax.tree.map(lambda *a: np.concatenate(a, axis=-1), *chunks)
    return Side(unit, finite_rows(kernel, rows, x, norm), len(x))


def finite_rows(kernel, rows: PyTree, x: np.ndarray, seen: np.ndarray) -> PyTree:
    """Row data, refused unless they are finite: entries of the matrix then are too, by Cauchy and Schwarz.

    `seen` (n, ...) is what the kernel sees of `x`: its lengths, or all of it.
    """
    for leaf in (*jax.tree.leaves(rows), *kernel.diagonals(rows)):
        if not np.isfinite(leaf).all():
            i = int(np.argwhere(~np.isfinite(leaf))[0][-1])
            raise too_large(kernel, x, i, seen)
    return rows


def too_large(kernel, x: np.ndarray, i: int, seen: np.ndarray) -> ValueError:
    """What to raise where numbers overflow on the way from input `i` to its row data."""
    where = f"at row {i}, of length {length(x[i]):.3g}"
    return ValueError(f"`x` is too large for this kernel: {where}, {kernel.overflow(seen[i : i + 1])}.")


def _bucket(n: int, most: int = TILE) -> int:
    """The padded size of pieces of `n` rows: few sizes, since each is compiled once.

    Small tiles belong to kernels whose entries are dear; others have two sizes in all.
    """
    if most > _SMALL:
        return _SMALL if n <= _SMALL else most
    return min(1 << (n - 1).bit_length(), most)


def even(n: int) -> int:
    """The size of tiles of `n` rows: of a few, that which leaves the least of the last tile empty."""
    choices = (TILE, TILE * 4 // 5, TILE * 16 // 25) if n > TILE else (TILE,)
    return min(choices, key=lambda size: -(-n // size) * size)


def as_column(rows):
    return jax.tree.map(lambda a: a[..., :, None], rows)


def as_row(rows):
    return jax.tree.map(lambda a: a[..., None, :], rows)


def matrices(kernel, side1: Side, side2: Side | None, count: int) -> tuple[np.ndarray, ...]:
    """The `count` matrices that `kernel.pairs` gives, whole; symmetric ones are computed by half."""
    symmetric, other = side2 is None, side1 if side2 is None else side2
    n1, n2 = len(side1), len(other)
    dtype = working_dtype()
    require_fits(
        count * n1 * n2 * dtype.itemsize,
        f"a kernel matrix of {n1} x {n2} points",
        "use fewer points, or `kernel.blocks`",
    )
    filled, blocks = tuple(np.empty((n1, n2), dtype) for _ in range(count)), _Blocks(kernel, side1, other)
    sizes = [kernel.tile(len(side)) for side in (side1, other)]

    started: dict[int, tuple[slice, slice, tuple[Array, ...]]] = {}  # the last tile of each thread

    def fill(at: tuple[slice, slice]) -> None:
        """Starts a tile, then stores the last one: while a thread multiplies, XLA's threads do its last tile."""
        i, j = at
        now = (i, j, blocks.start(i, j, symmetric and i == j))
        last, started[threading.get_ident()] = started.get(threading.get_ident()), now
        if last is not None:
            store(*last)

    def store(i: slice, j: slice, tile: tuple[Array, ...]) -> None:
        for matrix, block in zip(filled, blocks.finish(tile, i, j, symmetric and i == j), strict=True):
            matrix[i, j] = block
            if symmetric and i != j:
                matrix[j, i] = block.T

    tiles = covering(slice(0, n1), slice(0, n2), sizes, symmetric)
    known = symmetric and sizes[0] == 1  # tiles on the diagonal, by the rows
    with one_thread():  # a tile is one thread's work, its products included
        for _ in in_order(fill, [(i, j) for i, j in tiles if not (known and i == j)]):
            pass
    for last in started.values():
        store(*last)
    if symmetric:
        for matrix, diagonal in zip(filled, kernel.diagonals(side1.rows), strict=True):
            np.fill_diagonal(matrix, diagonal)
    return filled


def covering(
    rows: slice, columns: slice, sizes: Sequence[int], lower: bool = False
) -> Iterator[tuple[slice, slice]]:
    """Tiles (i, j) of at most `sizes` rows and columns; with `lower` none above the diagonal of the matrix."""
    for i in pieces(rows, sizes[0]):
        for j in pieces(columns, sizes[1]):
            if not (lower and j.start > i.start):
                yield i, j


def pieces(rows: slice, size: int) -> Iterator[slice]:
    for start in range(rows.start, rows.stop, size):
        yield slice(start, min(start + size, rows.stop))


class _Blocks:
    """The tiles of all matrices of a kernel; diagonal entries, known exactly from the rows, are not set."""

    def __init__(self, kernel, side1: Side, side2: Side):
        self.kernel, self.repair = kernel, kernel.needs_repair()
        self.size = tuple(_bucket(len(side), kernel.tile(len(side))) for side in (side1, side2))
        self.leaves, self.tree = jax.tree.flatten(kernel)  # once, not for every tile
        placed = not (on_host() or self.repair)
        whole = [_whole_tiles(side1, self.size[0], placed)]
        whole.append(whole[0] if side2 is side1 else _whole_tiles(side2, self.size[1], placed))
        self.rows = [side.rows for side in whole]
        self.placed = PerDevice((self.leaves, *whole)) if placed else None
        self.quick = kernel.quick_tile(side1, side2) if on_host() and side1.unit is not None else None
        self.units = (side1.unit, side2.unit) if self.quick is None else (None, None)

    def at(self, i: slice, j: slice, same: bool) -> list[np.ndarray]:
        """The entries (i, j) of each matrix; `same`: the two are the same inputs."""
        return self.finish(self.start(i, j, same), i, j, same)

    def start(self, i: slice, j: slice, same: bool) -> tuple[Array, ...]:
        """The same, padded, and perhaps not computed yet."""
        blocks = self._on_device(i, j, same) if self.placed is not None else None
        return self._on_host(i, j, same) if blocks is None else blocks

    def finish(self, blocks: tuple[Array, ...], i: slice, j: slice, same: bool) -> list[np.ndarray]:
        """What `start` began."""
        cut = [np.asarray(block)[: i.stop - i.start, : j.stop - j.start] for block in blocks]
        return [mirrored(block) for block in cut] if same else cut

    def _on_device(self, i: slice, j: slice, same: bool) -> tuple[Array, ...] | None:
        """From inputs that live on a device; None if a pair is so nearly parallel that its gap needs more care."""
        assert self.placed is not None
        leaves, side1, side2 = self.placed.here()
        ends = np.array([[i.start, i.stop], [j.start, j.stop]])
        blocks, near = _placed_pairs(self.tree, self.size, same, leaves, side1, side2, ends)
        return None if near else blocks

    def _on_host(self, i: slice, j: slice, same: bool) -> tuple[Array, ...]:
        if self.quick is not None:
            return (self.quick(i, j),)
        gap, (unit1, unit2), (m1, m2) = None, self.units, self.size
        if unit1 is not None and unit2 is not None:
            gap = gaps(unit1[i], unit2[j], same)
            if same:
                np.fill_diagonal(gap, 1.0)  # where the fewest terms of a series do
            gap = _padded(gap, self.size)
        rows1, rows2 = self.rows[0].part(i.start, m1), self.rows[1].part(j.start, m2)
        if self.repair:
            return self.kernel.repaired_pairs(rows1.rows(), rows2.rows(), gap)
        blocks = None if gap is None else self.kernel.pairs_on_host(rows1.rows, rows2.rows, gap)
        return _pairs(self.tree, self.leaves, rows1, rows2, gap) if blocks is None else blocks


def mirrored(block: np.ndarray) -> np.ndarray:
    """A symmetric block by its lower triangle: the two may differ in the last bit."""
    whole = np.array(block)
    mirror(whole)
    return whole


def mirror(found: np.ndarray) -> None:
    """The same in place."""
    for start in range(0, len(found), _CORNER):
        here = slice(start, start + _CORNER)
        found[:start, here] = found[here, :start].T
        corner = found[here, here]
        np.copyto(corner, corner.T, where=_upper(len(corner)))  # NumPy copies where memory overlaps


@functools.lru_cache(maxsize=_CORNER)
def _upper(n: int) -> np.ndarray:
    return ~np.tri(n, dtype=bool)


@functools.partial(jax.jit, static_argnums=0, compiler_options=_WIDE_REGISTERS)
def _pairs(tree, leaves, rows1, rows2, gap):
    return jax.tree.unflatten(tree, leaves).pairs_of(rows1.rows(), rows2.rows(), gap)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _placed_pairs(tree, size, same, leaves, side1, side2, ends):
    """The blocks that begin at `ends`[:, 0], and whether a gap before `ends`[:, 1] lacks digits."""
    (unit1, rows1), (unit2, rows2) = (
        (
            None if side.unit is None else jax.lax.dynamic_slice_in_dim(side.unit, ends[k, 0], size[k], 0),
            jax.tree.map(lambda a, k=k: jax.lax.dynamic_slice_in_dim(a, ends[k, 0], size[k], -1), side.rows),
        )
        for k, side in enumerate((side1, side2))
    )
    gap, near = None, jnp.asarray(False)
    if unit1 is not None and unit2 is not None:
        gap = 1.0 - jnp.matmul(unit1, unit2.T, precision="highest")
        gap = jnp.where(jnp.eye(size[0], size[1], dtype=bool), 1.0, gap) if same else gap
        down, right = (ends[k, 0] + jnp.arange(size[k]) < ends[k, 1] for k in range(2))
        inside = down[:, None] & right
        near = jnp.any(inside & ((gap < _NEAR) | (gap > 2.0 - _NEAR)))
    return jax.tree.unflatten(tree, leaves).pairs_of(rows1.rows(), rows2.rows(), gap), near


def _whole_tiles(side: Side, size: int, units: bool) -> Side:
    """With the last input repeated until any tile is whole, wherever it begins; unit vectors only if asked for."""
    n = len(side) + size
    unit = _padded(side.unit, (n, side.unit.shape[1])) if units and side.unit is not None else None
    return Side(unit, _Packed.of(side.rows, len(side), size), 0)


def symmetric_tiles(kernel, x: np.ndarray) -> Tiles:
    """Any tile of the symmetric matrix of `x`, from inputs that are made ready once."""
    kernel, side, _ = ready(kernel, x, None)
    return tiles_of(kernel, side)


def tiles_of(kernel, side: Side) -> Tiles:
    """The same of inputs that are ready."""
    blocks = _Blocks(kernel, side, side)
    row_data = side.rows  # not `side`: unit vectors are let go where tiles need none

    def tile(i: slice, j: slice) -> np.ndarray:
        same = i == j
        with jax.enable_x64(True):
            block = blocks.at(i, j, same)[0]
        if same:
            rows = jax.tree.map(lambda a: a[..., i], row_data)
            np.fill_diagonal(block, kernel.diagonals(rows)[0])
        return block

    return Tiles(tile, blocks.size[0], lanes())


def gaps(unit1: np.ndarray, unit2: np.ndarray, same: bool) -> np.ndarray:
    """1 - cos of the angles between unit vectors, to full accuracy also for parallel and antiparallel ones."""
    gap = unit1 @ unit2.T
    np.subtract(1.0, gap, out=gap)
    if same:
        np.fill_diagonal(gap, 1.0)  # set to 0 below: no need to look at these pairs more closely
    if gap.min() < _NEAR:
        for pairs, square in _squares(unit1, unit2, gap < _NEAR, np.subtract):
            gap[pairs] = 0.5 * square
    if gap.max() > 2.0 - _NEAR:
        for pairs, square in _squares(unit1, unit2, gap > 2.0 - _NEAR, np.add):
            gap[pairs] = 2.0 - 0.5 * square
    if same:
        np.fill_diagonal(gap, 0.0)
    return gap


def _squares(unit1: np.ndarray, unit2: np.ndarray, chosen: np.ndarray, combine) -> Iterator[tuple]:
    """(pairs, |u -+ v|^2) of the chosen pairs, a few megabytes at a time."""
    i, j = np.nonzero(chosen)
    chunk = max(1, _NEAR_BYTES // (16 * unit1.shape[1]))
    for at in range(0, len(i), chunk):
        pairs = i[at : at + chunk], j[at : at + chunk]
        combined = combine(unit1[pairs[0]], unit2[pairs[1]])
        yield pairs, np.einsum("ij,ij->i", combined, combined)


def _padded(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if a.shape == shape:
        return a
    return np.pad(a, [(0, full - now) for now, full in zip(a.shape, shape, strict=True)], mode="edge")


def traced_matrices(kernel, x1, x2) -> tuple[Array, ...]:
    """The same under the caller's transformations: one dense pass, no repair of nearly parallel pairs."""

    def side(x):
        x = jnp.asarray(x)
        square = jnp.sum(x * x, axis=1)
        norm = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
        return x / jnp.where(square > 0, norm, 1.0)[:, None], kernel.rows(norm)

    unit1, rows1 = side(x1)
    unit2, rows2 = (unit1, rows1) if x2 is None else side(x2)
    gap = jnp.clip(1.0 - unit1 @ unit2.T, 0.0, 2.0)
    if x2 is not None:
        return kernel.pairs(as_column(rows1), as_row(rows2), gap)
    same = jnp.eye(len(unit1), dtype=bool)
    kernels = kernel.pairs(as_column(rows1), as_row(rows2), jnp.where(same, 0.0, gap))
    return tuple(jnp.where(same, d, m) for m, d in zip(kernels, kernel.diagonals(rows1), strict=True))
