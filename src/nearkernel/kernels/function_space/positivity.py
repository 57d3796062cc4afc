"""Is a kernel positive on these points, and if not, which of them show it?"""

import functools
from collections.abc import Callable

import equinox as eqx
import numpy as np
import scipy.linalg

from ..._base.check import inputs, numeric, positive, shown
from ..._base.result import Result
from ..._base.status import Status, StatusKind
from ..._base.types import Array, ArrayLike
from ..._run.blas import one_thread
from ..._run.precision import in_float64
from ..base import AbstractKernel

KernelLike = AbstractKernel | Callable[[Array, Array], ArrayLike]
TOLERANCE = 1e-10


class PositivityResult(Result, eqx.Module):
    r"""Whether a kernel is symmetric and positive semidefinite on given points, with a counterexample if it is not.

    **Fields:** `status`, an `nk.Status`: positive, not positive or not symmetric; `ok`, whether it is positive
    semidefinite; `definite`, whether it is positive definite: no eigenvalue is 0 up to rounding; `rank`, the number of
    eigenvalues that are not 0; `smallest`, the smallest eigenvalue of the matrix (of its symmetric part); `points`, the
    indices of a minimal set of points on which the kernel is not positive, empty if `ok`; `weights`, a unit vector $a$
    on these points with $a^\top K a < 0$; `value`, $a^\top K a$.
    """

    status: Status
    smallest: float
    points: np.ndarray
    weights: np.ndarray
    value: float
    rank: int
    definite: bool

    @property
    def ok(self) -> bool:
        return self.status.ok


@in_float64
def positivity(kernel: KernelLike, x: ArrayLike, tolerance: float = TOLERANCE) -> PositivityResult:
    r"""Checks whether `kernel` is symmetric and positive semidefinite on `x` (n, d), and finds points where it is not.

    If a set of points gives a negative eigenvalue, so does every larger set (eigenvalue interlacing). A minimal set
    is found by removing points: first those with small entries in the eigenvector of the most negative eigenvalue,
    then one by one.

    **Arguments:** `kernel`, of this library or any function k(x1, x2) -> (n1, n2); `x`; `tolerance`: eigenvalues
    between $\pm$`tolerance` $\lVert K\rVert$ count as 0, with $\lVert K\rVert$ the largest absolute row sum.
    """
    matrix = gram(kernel, inputs(x))
    tolerance = positive(tolerance, "tolerance", zero=True)
    limit = tolerance * _size(matrix)
    skew = np.abs(matrix - matrix.T)
    pair = np.array(sorted(np.unravel_index(np.argmax(skew), skew.shape)))
    matrix = (matrix + matrix.T) / 2
    eigenvalues = scipy.linalg.eigvalsh(matrix)
    smallest, rank = float(eigenvalues[0]), int((np.abs(eigenvalues) > limit).sum())
    record = functools.partial(PositivityResult, rank=rank, definite=False)
    if skew.max() > limit:
        i, j = pair
        message = f"not symmetric: k(x_{i}, x_{j}) and k(x_{j}, x_{i}) differ by {skew.max():.3g}."
        return record(Status(StatusKind.not_symmetric, message), smallest, pair, np.zeros(2), 0.0)
    if smallest >= -limit:
        nothing = np.empty(0)
        definite = smallest > limit
        kind = "definite" if definite else f"semidefinite, of rank {rank} < {len(matrix)},"
        status = Status(StatusKind.positive, f"positive {kind} on these points.")
        return record(status, smallest, nothing.astype(int), nothing, 0.0, definite=definite)
    points = _witness(matrix, limit)
    value, weights = scipy.linalg.eigh(matrix[np.ix_(points, points)], subset_by_index=[0, 0])
    message = f"not positive: {_listed(points)} the eigenvalue {value[0]:.3g}."
    status = Status(StatusKind.not_positive, message)
    return record(status, smallest, points, weights[:, 0], float(value[0]))


def gram(kernel: KernelLike, x: np.ndarray) -> np.ndarray:
    """The matrix (n, n) of any kernel on checked points."""
    if isinstance(kernel, AbstractKernel):
        return np.asarray(kernel(x), dtype=np.float64)
    return cross(kernel, x, x)


def cross(kernel: KernelLike, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """The matrix (n1, n2) of any kernel between checked points."""
    if not callable(kernel) or isinstance(kernel, type):
        raise TypeError(
            f"`kernel` must be a kernel or a function k(x1, x2) -> (n1, n2); got {shown(kernel)}."
        )
    matrix = numeric(kernel(x1, x2), "kernel(x1, x2)")
    if matrix.shape != (len(x1), len(x2)):
        raise ValueError(
            f"`kernel(x1, x2)` must return (n1, n2); for {len(x1)} and {len(x2)} points it returns {matrix.shape}."
        )
    return matrix


def positive_gram(kernel: KernelLike, x: np.ndarray) -> np.ndarray:
    """The symmetric matrix (n, n) of a kernel that must be positive on `x`; one Cholesky factorization checks it."""
    matrix = gram(kernel, x)
    limit = TOLERANCE * _size(matrix)
    if np.abs(matrix - matrix.T).max() > limit or not _is_positive(matrix, limit):
        sign = positivity(kernel, x)
        if not sign.ok:
            raise ValueError(f"`kernel` is {str(sign.status).removesuffix('.')}; see nk.theory.positivity.")
    return (matrix + matrix.T) / 2


def _size(matrix: np.ndarray) -> float:
    return float(np.abs(matrix).sum(axis=1).max())


def _is_positive(matrix: np.ndarray, limit: float) -> bool:
    """Whether no eigenvalue is below -limit, to rounding."""
    shifted = np.array(matrix, order="F")
    shifted.flat[:: len(matrix) + 1] += limit + len(matrix) * np.finfo(float).eps * _size(matrix)
    with one_thread(len(matrix) // 2):
        return scipy.linalg.lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)[1] == 0


def _witness(matrix: np.ndarray, limit: float) -> np.ndarray:
    """A set of points with an eigenvalue below -limit, such that no smaller part of it has one."""
    vector = scipy.linalg.eigh(matrix, subset_by_index=[0, 0])[1][:, 0]
    order = np.argsort(-np.abs(vector))

    def broken(points: np.ndarray) -> bool:
        part = matrix[np.ix_(points, points)]
        return len(points) > 0 and scipy.linalg.eigvalsh(part, subset_by_index=[0, 0])[0] < -limit

    few, many = 0, len(order)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if broken(order[:middle]) else (middle, many)
    points = order[:many]
    for point in points[::-1]:
        rest = points[points != point]
        points = rest if broken(rest) else points
    return np.sort(points)


def _listed(points: np.ndarray, most: int = 6) -> str:
    if len(points) == 1:
        return f"the point {points[0]} alone has"
    shown = ", ".join(str(int(point)) for point in points[:most])
    return f"the points {shown}{', ...' * (len(points) > most)} ({len(points)} in all) have"
