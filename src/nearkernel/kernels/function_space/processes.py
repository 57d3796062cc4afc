"""Two random objects of a kernel: the Gaussian process, and the determinantal point process."""

import equinox as eqx
import numpy as np
import scipy.linalg

from ..._base.check import inputs, plain_array, shown, whole
from ..._base.keys import Key, generator
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.blas import one_thread
from ..._run.memory import require_fits
from ..._run.precision import in_float64
from .positivity import KernelLike, positive_gram


def _spectrum(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of a positive matrix; what is zero to rounding is left out.

    Smooth kernels have far fewer of them than points. Then a pivoted Cholesky factor, which costs little, finds the
    space they live in, and only the matrix within that space is diagonalized.
    """
    n, eps = len(matrix), np.finfo(float).eps
    # Up to 3000 points: a second thread gains little, and waits if another program has it.
    with one_thread(n // 2):
        factor, order, rank, _ = scipy.linalg.lapack.dpstrf(matrix, lower=1, tol=n * eps * matrix.max())
        space = None
        if 0 < rank < n / 2:
            tall = np.empty((n, rank))
            tall[order - 1] = np.tril(factor)[:, :rank]
            space, triangle = scipy.linalg.qr(tall, mode="economic", overwrite_a=True)
            matrix = triangle @ triangle.T
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", overwrite_a=True)
        real = values > n * eps * max(values[-1], 0.0)
        vectors = vectors[:, real]
        return values[real], vectors if space is None else space @ vectors


@in_float64
def gp_samples(kernel: KernelLike, x: ArrayLike, size: int, key: Key) -> np.ndarray:
    """`size` independent samples of a centered Gaussian process with covariance `kernel`: an array (size, n).

    **Arguments:** `kernel`, positive semidefinite, of this library or any function k(x1, x2) -> (n1, n2); it may be
    singular on `x`; `x` (n, d); `size`; `key`.
    """
    x, size = inputs(x), whole(size, "size", 1)
    require_fits(16 * size * len(x), f"`size` = {size} functions at {len(x)} points", "draw fewer")
    values, vectors = _spectrum(positive_gram(kernel, x))
    return (generator(key).normal(size=(size, len(values))) * np.sqrt(values)) @ vectors.T


class DPP(Result, eqx.Module):
    r"""The determinantal point process of a kernel on n points: $P(S) = \det(K_S) / \det(1 + K)$ for each subset $S$.

    Similar points rarely appear together: a pair has the weight $k(x,x)\, k(y,y) - k(x,y)^2$. The number of points is a
    sum of independent Bernoulli variables; scale the kernel, `c * kernel`, for more or fewer points, or pass `size` to
    `sample` for a fixed number. The matrix is factored once for all samples.

    **Arguments:** `kernel`, positive semidefinite, of this library or any function k(x1, x2) -> (n1, n2); `x` (n, d).
    """

    values: np.ndarray  # (r,) eigenvalues of the matrix
    vectors: np.ndarray  # (n, r)

    @in_float64
    def __init__(self, kernel: KernelLike, x: ArrayLike):
        self.values, self.vectors = _spectrum(positive_gram(kernel, inputs(x)))

    def expected_size(self) -> float:
        r"""The expected number of points, $\mathbb{E}|S| = \sum_i \lambda_i / (1 + \lambda_i)$."""
        return float(np.sum(self.values / (1 + self.values)))

    def inclusion(self) -> np.ndarray:
        """The probability that S contains each point, (n,): the diagonal of $K (1 + K)^{-1}$."""
        return self.vectors**2 @ (self.values / (1 + self.values))

    def sample(self, key: Key, size: int | None = None) -> np.ndarray:
        r"""A random subset drawn with `key`, as sorted indices; with `size`, of exactly that many points (a k-DPP).

        It first selects eigenvectors, each with probability $\lambda/(1 + \lambda)$, or `size` of them with probability
        proportional to the product of their eigenvalues. It then draws points one by one from the projection onto
        these eigenvectors. The sampling is exact and costs $O(n |S|^2)$.
        """
        rng = generator(key)
        if size is None:
            chosen = rng.random(len(self.values)) < self.values / (1 + self.values)
        else:
            chosen = _choose(self.values, self._size(size), rng)
        return _from_projection(self.vectors[:, chosen], rng)

    def log_probability(self, points: ArrayLike, size: int | None = None) -> float:
        """ln P(S) of a subset, given by its indices `points`; with `size`, among all subsets of that many points."""
        points = plain_array(points, "points")
        fine = points.ndim == 1 and (points.size == 0 or points.dtype.kind in "iu")
        if not fine or len(np.unique(points)) < len(points) or np.any((points < 0) | (points >= self._n())):
            raise ValueError(
                f"`points` must be different indices from 0 to {self._n() - 1}; got {shown(points.tolist())}."
            )
        if size is not None and len(points) != self._size(size):
            return -np.inf
        rows = self.vectors[points.astype(int)] * np.sqrt(self.values)
        inside = np.linalg.slogdet(rows @ rows.T)[1] if len(points) else 0.0
        whole_sum = np.sum(np.log1p(self.values)) if size is None else _log_sums(self.values, size)[-1, size]
        return float(inside - whole_sum)

    def _n(self) -> int:
        return len(self.vectors)

    def _size(self, size: int | None) -> int:
        size = whole(size, "size", 1)
        if size > len(self.values):
            raise ValueError(
                f"`size` must be at most {len(self.values)}, the rank of the kernel on these points; got {size}."
            )
        return size


def _log_sums(values: np.ndarray, size: int) -> np.ndarray:
    """ln e_k of the first m values, at [m, k]: e_k(1..m) = e_k(1..m-1) + lambda_m e_{k-1}(1..m-1)."""
    sums = np.full((len(values) + 1, size + 1), -np.inf)
    sums[:, 0] = 0.0
    for m, log_value in enumerate(np.log(values)):
        sums[m + 1, 1:] = np.logaddexp(sums[m, 1:], log_value + sums[m, :-1])
    return sums


def _choose(values: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Which `size` eigenvalues, with probability in proportion to their product; from the last one down."""
    sums, left = _log_sums(values, size), size
    chosen = np.zeros(len(values), bool)
    for m in range(len(values), 0, -1):
        if left == 0:
            break
        log_share = np.log(values[m - 1]) + sums[m - 1, left - 1] - sums[m, left]
        chosen[m - 1] = left == m or np.log(rng.random()) < log_share
        left -= chosen[m - 1]
    return chosen


def _from_projection(vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As many points as there are orthonormal columns, from the process of their projection P = V V^T.

    Given the points so far, the next one falls on i in proportion to the diagonal of P minus what they explain; that is
    the pivoted Cholesky factorization of P, with random pivots.
    """
    n, size = vectors.shape
    left, factor = np.sum(vectors**2, axis=1), np.zeros((n, size))
    points = np.empty(size, int)
    for k in range(size):
        points[k] = point = rng.choice(n, p=left / left.sum())
        factor[:, k] = vectors @ vectors[point] - factor[:, :k] @ factor[point, :k]
        factor[:, k] /= np.sqrt(left[point])
        left = np.maximum(left - factor[:, k] ** 2, 0.0)
        left[points[: k + 1]] = 0.0
    return np.sort(points)
