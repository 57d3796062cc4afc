"""Kernel matrices tile by tile: bounded memory, both cores, half the work when symmetric.

Every rotation-invariant kernel is a function of the two lengths and of the gap 1 - cos of the angle. The gap
of nearly parallel inputs is recomputed from their difference, since 1 - cos has no digits left there; all
kernels inherit that accuracy.
"""

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._blas import one_thread
from .._memory import cores, require_fits
from .._precision import working_dtype
from ._finite import length

TILE = 400
_SMALL = 128  # rows up to which a tile is padded to this
_NEAR_BYTES = 8 * 2**20  # of differences at a time
_NEAR = 1e-3  # below this gap the rounding of 1 - cos would show in the angle's 14th digit


class Side(NamedTuple):
    """Inputs made ready: unit vectors (n, d), if the kernel sees angles, and row data with inputs on the last axis."""

    unit: np.ndarray | None
    rows: Any
    size: int

    def __len__(self) -> int:
        return self.size


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
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = kernel.prepared(np.concatenate(norms))
        return kernel, _side(kernel, x1, norms[0]), None if x2 is None else _side(kernel, x2, norms[1])


def _lengths(x: np.ndarray, name: str) -> np.ndarray:
    """|x_i| (n,), refused where its square would overflow."""
    with np.errstate(over="ignore"):
        found = np.linalg.norm(x, axis=1)
    most = float(np.finfo(working_dtype()).max) ** 0.5 / 4
    if not found.max() < most:
        row = int(np.abs(x).max(axis=1).argmax())
        raise ValueError(
            f"`{name}` has a row of length {length(x[row]):.3g} (row {row}), whose square overflows: scale the inputs, "
            "e.g. to unit variance."
        )
    return found


def _side(kernel, x: np.ndarray, norm: np.ndarray) -> Side:
    dtype = working_dtype()
    unit = (x / np.where(norm > 0, norm, 1.0)[:, None]).astype(dtype, copy=False)
    chunks, on_host = [], not kernel.compiles_rows()
    size = _bucket(len(x), 4 * TILE)
    for at in range(0, len(x), size):
        part = norm[at : at + size]
        rows = kernel.rows(part) if on_host else _rows(kernel, _padded(part, (size,)).astype(dtype))
        chunks.append(jax.tree.map(lambda a, m=len(part): np.asarray(a, dtype)[..., :m], rows))
    rows = jax.tree.map(lambda *a: np.concatenate(a, axis=-1), *chunks)
    return Side(unit, finite_rows(kernel, rows, x, norm), len(x))


def finite_rows(kernel, rows: Any, x: np.ndarray, seen: np.ndarray) -> Any:
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


@jax.jit
def _rows(kernel, norms):
    return kernel.rows(norms)


@jax.jit
def _pairs(kernel, rows1, rows2, gap):
    return kernel.pairs_of(rows1, rows2, gap)


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
    found = tuple(np.empty((n1, n2), dtype) for _ in range(count))
    job = functools.partial(_one_tile, kernel, side1, other, symmetric, found)
    with (
        one_thread(),
        ThreadPoolExecutor(cores()) as pool,
    ):  # a tile is one thread's work, its products included
        list(pool.map(job, *zip(*_tiles(n1, n2, symmetric, kernel.tile), strict=True)))
    if symmetric:
        for matrix, diagonal in zip(found, kernel.diagonals(side1.rows), strict=True):
            np.fill_diagonal(matrix, diagonal)
    return found


def _tiles(n1: int, n2: int, symmetric: bool, tile: int) -> Iterator[tuple[slice, slice]]:
    for i in range(0, n1, tile):
        for j in range(0, i + 1 if symmetric else n2, tile):
            yield slice(i, min(i + tile, n1)), slice(j, min(j + tile, n2))


def _one_tile(kernel, side1: Side, side2: Side, symmetric: bool, found, i: slice, j: slice) -> None:
    size = _bucket(len(found[0]), kernel.tile), _bucket(len(found[0].T), kernel.tile)
    same = symmetric and i.start == j.start
    for matrix, block in zip(found, _blocks(kernel, side1, side2, i, j, same, size), strict=True):
        matrix[i, j] = block
        if symmetric and not same:
            matrix[j, i] = block.T


def _blocks(kernel, side1: Side, side2: Side, i: slice, j: slice, same: bool, size) -> list[np.ndarray]:
    """The entries (i, j) of each matrix of the kernel, computed in the padded `size`."""
    gap = None
    if side1.unit is not None and side2.unit is not None:
        gap = _padded(gaps(side1.unit[i], side2.unit[j], same), size)
    rows1 = jax.tree.map(lambda a: _padded(a[..., i], (*a.shape[:-1], size[0])), side1.rows)
    rows2 = jax.tree.map(lambda a: _padded(a[..., j], (*a.shape[:-1], size[1])), side2.rows)
    with jax.enable_x64(True):  # thread-local: each task opens its own
        blocks = kernel.repaired_pairs(rows1, rows2, gap) or kernel.pairs_on_host(rows1, rows2, gap)
        blocks = blocks or _pairs(kernel, rows1, rows2, gap)
    found = [np.asarray(block)[: i.stop - i.start, : j.stop - j.start] for block in blocks]
    # The two triangles of a symmetric block may differ in the last bit.
    return [np.tril(block) + np.tril(block, -1).T for block in found] if same else found


def symmetric_tiles(kernel, x: np.ndarray) -> Tiles:
    """Any tile of the symmetric matrix of `x`, from inputs that are made ready once."""
    kernel, side, _ = ready(kernel, x, None)
    return tiles_of(kernel, side)


def tiles_of(kernel, side: Side) -> Tiles:
    """The same of inputs that are ready."""
    size = (_bucket(len(side), kernel.tile),) * 2

    def tile(i: slice, j: slice) -> np.ndarray:
        same = i == j
        block = _blocks(kernel, side, side, i, j, same, size)[0]
        if same:
            rows = jax.tree.map(lambda a: a[..., i], side.rows)
            np.fill_diagonal(block, kernel.diagonals(rows)[0])
        return block

    return Tiles(tile, kernel.tile, cores())


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


def traced_matrices(kernel, x1, x2) -> tuple[jax.Array, ...]:
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
    found = kernel.pairs(as_column(rows1), as_row(rows2), jnp.where(same, 0.0, gap))
    return tuple(jnp.where(same, d, m) for m, d in zip(found, kernel.diagonals(rows1), strict=True))
