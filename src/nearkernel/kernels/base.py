"""A kernel: a similarity of two inputs, a small frozen callable."""

import abc
from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import numpy as np

from .._base.check import inputs, positive, shown
from .._base.types import Array, ArrayLike, Float, Num, PyTree
from .._run.blas import one_thread
from .._run.executor import devices
from .._run.memory import parse_bytes, rows_that_fit
from .._run.precision import Portable, in_float64, is_traced, working_dtype
from .finiteness import require_finite
from .tiles import (
    TILE,
    Side,
    Tiles,
    as_column,
    as_row,
    even,
    matrices,
    pieces,
    ready,
    symmetric_tiles,
    traced_matrices,
)

_SHARES = 5  # of a budget: the block, the one before it, and three for what is needed on the way
_COPIES = 3  # of inputs that are made ready: as they are, of length 1, and on the way


class AbstractKernel(Portable, eqx.Module):
    """A kernel: `kernel(x1, x2)` returns the matrix (n1, n2), `kernel(x)` the symmetric matrix (n, n).

    Concrete inputs give float64 NumPy arrays; inputs traced by the caller's `jit`, `grad` or `vmap` give JAX arrays.
    Kernels can be added, multiplied and scaled: `k1 + k2`, `k1 * k2`, `2.0 * k`.
    """

    @in_float64
    def __call__(
        self, x1: Num[ArrayLike, " n1 *d"], x2: Num[ArrayLike, " n2 *d"] | None = None
    ) -> Float[Array, "n1 n2"]:
        if is_traced(self, x1, x2):
            return self.traced(x1, x2)
        x1 = inputs(x1, "x1" if x2 is not None else "x", self.input_dim())
        if x2 is None:
            return self.entries(x1, None)
        return self.entries(x1, inputs(x2, "x2", x1.shape[1:]))

    @abc.abstractmethod
    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        """The kernel matrix of checked, concrete inputs `x1` and `x2`."""

    @abc.abstractmethod
    def traced(self, x1: Array, x2: Array | None) -> Array:
        """The kernel matrix of `x1` and `x2` as a JAX expression."""

    @abc.abstractmethod
    def diagonal(self, x: np.ndarray) -> np.ndarray:
        """$k(x_i, x_i)$ of checked, concrete inputs `x`."""

    def entries(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        """Same as `matrix` of `x1` and `x2`, but raises `ValueError` unless all entries are finite."""
        with np.errstate(over="ignore", invalid="ignore"), jax.ensure_compile_time_eval():
            matrix = self.matrix(x1, x2)  # at once, also where the caller is tracing something else
        return require_finite(matrix, x1, x2, f"{type(self).__name__}(x1, x2)")

    def input_dim(self) -> "int | tuple[int, ...] | None":
        """The number of features of an input, or its shape if it is not a vector; None for vectors of any length."""
        return None

    @in_float64
    def diag(self, x: Num[ArrayLike, " n *d"]) -> Float[np.ndarray, " n"]:
        """The diagonal $k(x_i, x_i)$, (n,), of inputs `x`, without computing the matrix."""
        x = inputs(x, "x", self.input_dim())
        with np.errstate(over="ignore", invalid="ignore"), jax.ensure_compile_time_eval():
            diagonal = self.diagonal(x)
        return require_finite(diagonal, x, None, f"{type(self).__name__}(x, x)")

    @in_float64
    def blocks(
        self,
        x1: Num[ArrayLike, " n1 *d"],
        x2: Num[ArrayLike, " n2 *d"] | None = None,
        memory: "str | int" = "256MiB",
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yields the matrix of `x1` and `x2` in horizontal blocks (rows, block) that fit in about `memory`.

        A block has at least one row. `memory` covers a block, the previous block if you still hold it, and temporary
        arrays, but not the inputs.
        """
        share = parse_bytes(memory) // _SHARES
        x1 = inputs(x1, "x1" if x2 is not None else "x", self.input_dim())
        x2 = x1 if x2 is None else inputs(x2, "x2", x1.shape[1:])
        rows = rows_that_fit(working_dtype().itemsize * len(x2), share)
        rows = 1 << rows.bit_length() - 1 if rows < TILE else rows  # as tiles are padded
        across = rows_that_fit(_COPIES * 8 * x2[0].size, share)
        return self._blocks(x1, x2, min(rows, across), across)

    def tiles(self, x: np.ndarray) -> Tiles:
        """Single tiles of the symmetric matrix of checked inputs `x`, for matrices that do not fit in memory."""

        def tile(i: slice, j: slice) -> np.ndarray:
            with jax.enable_x64(True):
                return self.entries(x[i], None if i == j else x[j])

        return Tiles(tile, 2000, len(devices()))  # one call keeps all cores of a device busy

    def _blocks(self, x1, x2, rows: int, across: int) -> Iterator[tuple[slice, np.ndarray]]:
        """In blocks of `rows`, each of which looks at `across` inputs at a time."""
        for start in range(0, len(x1), rows):
            with jax.enable_x64(True):  # not held across the yield: the caller runs in between
                part = slice(start, min(start + rows, len(x1)))
                if across >= len(x2):
                    block = self.entries(x1[part], x2)
                else:
                    block = np.empty((part.stop - part.start, len(x2)), working_dtype())
                    for piece in pieces(slice(0, len(x2)), across):
                        block[:, piece] = self.entries(x1[part], x2[piece])
            yield part, block
            del block  # the caller's now

    def __add__(self, other: object) -> "AbstractKernel":
        from .algebra import Sum

        return Sum(self, other) if isinstance(other, AbstractKernel) else NotImplemented

    def __mul__(self, other: object) -> "AbstractKernel":
        from .algebra import Multiple, Product

        if isinstance(other, AbstractKernel):
            return Product(self, other)
        return Multiple(self, positive(other, "the factor of a kernel", zero=True))

    __rmul__ = __mul__


def require_kernel(kernel: object, name: str = "kernel") -> None:
    """Raises `TypeError` unless `kernel` is a kernel."""
    if not isinstance(kernel, AbstractKernel):
        raise TypeError(f"`{name}` must be a kernel, e.g. nk.kernels.RBF(1.0); got {shown(kernel)}.")


class InvariantKernel(AbstractKernel):
    """A kernel of the lengths of two inputs and their angle: one that does not change under rotations."""

    @abc.abstractmethod
    def rows(self, norms: Array) -> PyTree:
        """Row data from the lengths of the inputs, a tree with the inputs on the last axis; NumPy if `norms` is."""

    @abc.abstractmethod
    def pairs(self, rows1: PyTree, rows2: PyTree, gap: Array) -> tuple[Array, ...]:
        """One or more matrices from broadcastable row data `rows1`, `rows2` and `gap` = 1 - cos(angle)."""

    def tile(self, n: int) -> int:
        """Inputs on each side of a tile of `n`."""
        return even(n)

    def pairs_of(self, rows1: PyTree, rows2: PyTree, gap: Array) -> tuple[Array, ...]:
        """`pairs` of row data that are not yet broadcast."""
        return self.pairs(as_column(rows1), as_row(rows2), gap)

    @abc.abstractmethod
    def diagonals(self, rows: PyTree) -> tuple[Array, ...]:
        """The diagonals of those matrices, from the same `rows`."""

    def overflow(self, norm: np.ndarray) -> str:
        """What to say of an input of this length (1,) whose row data are not finite."""
        return f"{type(self).__name__} overflows there"

    def prepared(self, norms: np.ndarray) -> "InvariantKernel":
        """This kernel made ready for inputs of these lengths."""
        return self

    def needs_repair(self) -> bool:
        """Whether `pairs` needs help from outside of JAX, which is then in `repaired_pairs`."""
        return False

    def repaired_pairs(self, rows1: PyTree, rows2: PyTree, gap: np.ndarray) -> tuple[np.ndarray, ...]:
        """`pairs` of a kernel that needs repair, by NumPy."""
        raise TypeError(f"{type(self).__name__} needs no repair.")

    def pairs_on_host(
        self, rows1: Callable[[], PyTree], rows2: Callable[[], PyTree], gap: np.ndarray
    ) -> tuple[np.ndarray, ...] | None:
        """`pairs` in NumPy where XLA is slower on a CPU, else None.

        Row data `rows1` and `rows2` are given as functions, for the many kernels that do not ask for them; `gap` may be
        overwritten.
        """
        return None

    def quick_tile(self, side1: Side, side2: Side) -> Callable[[slice, slice], np.ndarray] | None:
        """Tiles (i, j) of `side1` and `side2` in NumPy, without gaps, where that is faster and as exact; else None."""
        return None

    def matrix(self, x1: np.ndarray, x2: np.ndarray | None) -> np.ndarray:
        with one_thread():
            kernel, side1, side2 = ready(self, x1, x2)
            return matrices(kernel, side1, side2, 1)[0]

    def tiles(self, x: np.ndarray) -> Tiles:
        return symmetric_tiles(self, x)

    def traced(self, x1: Array, x2: Array | None) -> Array:
        return traced_matrices(self, x1, x2)[0]

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        kernel, side, _ = ready(self, x, None)
        return np.array(kernel.diagonals(side.rows)[0])


__all__ = ["AbstractKernel", "InvariantKernel", "Side", "require_kernel"]
