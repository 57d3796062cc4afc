"""How K a = y is solved when a factor of K costs too much: frozen settings of the iterations in `scale/`."""

import abc
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import equinox as eqx
import numpy as np

from ..._base.check import inputs, nearest, plain_array, positive, shown, whole
from ..._base.rooms import renamed
from ..._run.memory import available_bytes, parse_bytes
from ..._run.precision import working_dtype
from ..._run.progress import report
from ...kernels.base import AbstractKernel
from ...scale.iterate import Iterated, conjugate_gradients, eigenpro, richardson
from ...scale.pivoted import Preconditioner, bytes_for, pivoted_cholesky
from ...scale.products import AbstractProducts, products_of
from ...scale.store import open_store
from ...scale.stored import Stored
from ..algorithms.spectral import GradientDescent, SpectralAlgorithm

Watch: TypeAlias = Callable[[int, float], None]
_SHARES = 8  # of a budget: half of it is for the tiles of products
_MOST_COLUMNS = 3000  # of a preconditioner


def _budget(memory: str | int | None) -> int:
    return available_bytes() // 2 if memory is None else parse_bytes(memory)


class AbstractSolver(eqx.Module):
    """One way to the coefficients of a kernel machine."""

    name: eqx.AbstractClassVar[str]


class Direct(AbstractSolver):
    """One factorization, with memory of size $n^2$ and $n^3$ operations; it gives the solution at every time."""

    name = "direct"


class IterativeSolver(AbstractSolver):
    """One that needs only products with K, and stops at a tolerance."""

    tol: eqx.AbstractVar[float]
    memory: eqx.AbstractVar[str | int | None]
    blocks: eqx.AbstractVar[str | Path | None]
    watch: eqx.AbstractVar[Watch | None]

    def budget(self) -> int:
        """The number of bytes it may use: `memory`, or half of the free memory."""
        return _budget(self.memory)

    def products(self, kernel: AbstractKernel, x: np.ndarray) -> AbstractProducts:
        """Matrix products, with the matrix stored, recomputed, or read from `blocks`."""
        if self.blocks is None:
            return products_of(kernel, x, self.budget())
        store = open_store(self.blocks)
        store.require(kernel, x)
        return Stored(store, kernel, self.budget())

    @abc.abstractmethod
    def iterate(
        self, products: AbstractProducts, right: np.ndarray, algorithm: SpectralAlgorithm
    ) -> Iterated:
        """Coefficients for right-hand sides `right` (n, columns) and `algorithm`, by `products` with the matrix."""

    def _watcher(self) -> Watch:
        if self.watch is not None:
            return self.watch
        return lambda k, residual: report("solve", k, f"relative residual {residual:.1e}")

    def _final_ridge(self, algorithm: SpectralAlgorithm) -> float:
        """The ridge; raises `ValueError` unless training ends at (K + ridge)^-1 y."""
        shift = algorithm.shift()
        if shift is None:
            fit = "'richardson', " * isinstance(algorithm, GradientDescent)
            raise ValueError(
                f"`solver` {self.name!r} solves for the end of training, not for {algorithm!r}; for a finite time use "
                f"{fit}'nystrom' or 'direct'."
            )
        return shift


class ConjugateGradients(IterativeSolver):
    r"""Conjugate gradients, preconditioned by randomly pivoted Cholesky; for training to convergence and for ridges.

    **Arguments:** `tol`, tolerance of the residual relative to y; `rank` of the preconditioner, by default $3 \sqrt n$
    for a stored matrix and $\sqrt{2 (d + 25)\, n}$ for one that is recomputed in every product, at most 3000 and at
    most what fits in memory; `iterations`, the maximum number; `memory`, the limit, such as "4GiB", by default half of
    the free memory; `seed` of the pivots; `blocks`, the path of a matrix made by `nk.scale.build`; `watch`, a function
    `watch(iteration, residual)` called after each iteration.
    """

    tol: float = 1e-9
    rank: int | None = None
    iterations: int = 1000
    memory: str | int | None = None
    seed: int = 0
    blocks: str | Path | None = None
    watch: Watch | None = None
    name = "cg"

    def __check_init__(self):
        positive(self.tol, "tol")
        if self.rank is not None:
            whole(self.rank, "rank", 1)
        whole(self.iterations, "iterations", 1)
        whole(self.seed, "seed", 0)
        _budget(self.memory)

    def rank_for(self, products: AbstractProducts) -> int:
        """The rank $r$ whose preparation ($4 n r^2$ operations) costs as much as two `products`, if it fits."""
        n = products.n
        wanted = self.rank or min(_MOST_COLUMNS, math.isqrt(int(0.5 * n * products.work)))
        fits = wanted
        while (
            fits > 1 and bytes_for(n, fits, working_dtype().itemsize) > self.budget() // 2
        ):  # the rest is for tiles
            fits = int(0.95 * fits)
        return max(1, min(wanted, fits, n))

    def iterate(self, products, right, algorithm):
        shift = self._final_ridge(algorithm)
        factor = pivoted_cholesky(products, self.rank_for(products), self.seed)
        # Without a ridge the preconditioner needs one of its own: the size of what the columns left.
        floor = shift or max(factor.left, np.finfo(float).eps * float(products.diagonal().mean()))
        preconditioner = Preconditioner(factor.factor, floor)
        del factor
        return conjugate_gradients(
            products, right, shift, preconditioner, self.tol, self.iterations, self._watcher()
        )


class Richardson(IterativeSolver):
    r"""Gradient descent on the coefficients, for exactly its `steps` or until the tolerance is reached.

    **Arguments:** `tol`, tolerance of the residual relative to y, for training to convergence; `iterations`, the
    maximum number; `memory`, `blocks` and `watch`: same as `ConjugateGradients`. The learning rate is the `lr` of
    `nk.GradientDescent`; for other algorithms it is $1/\lambda_{\max}$.
    """

    tol: float = 1e-6
    iterations: int = 100_000
    memory: str | int | None = None
    blocks: str | Path | None = None
    watch: Watch | None = None
    name = "richardson"

    def __check_init__(self):
        positive(self.tol, "tol")
        whole(self.iterations, "iterations", 1)
        _budget(self.memory)

    def iterate(self, products, right, algorithm):
        if isinstance(algorithm, GradientDescent):
            lr, momentum, steps, shift = algorithm.lr, algorithm.momentum, algorithm.steps, 0.0
            if math.isfinite(steps) and steps > self.iterations:
                raise ValueError(
                    f"`solver` has iterations={self.iterations}, fewer than the {steps:g} steps of {algorithm!r}."
                )
        else:
            shift, momentum, steps = self._final_ridge(algorithm), 0.0, math.inf
            lr = 1.0 / (largest_product(products) + shift)
        return richardson(
            products, right, shift, lr, momentum, steps, self.tol, self.iterations, self._watcher()
        )


class EigenPro(IterativeSolver):
    """EigenPro: stochastic gradients with the top eigendirections damped; for convergence to loose tolerances.

    **Arguments:** `tol`, tolerance of the residual relative to y; `epochs`, the maximum number; `rank`, number of
    damped eigendirections; `sample`, number of points from which they are estimated; `batch_size`; `seed`; `memory`,
    `blocks` and `watch`: same as `ConjugateGradients`.
    """

    tol: float = 1e-3
    epochs: int = 100
    rank: int = 160
    sample: int = 2000
    batch_size: int = 1000
    memory: str | int | None = None
    seed: int = 0
    blocks: str | Path | None = None
    watch: Watch | None = None
    name = "eigenpro"

    def __check_init__(self):
        positive(self.tol, "tol")
        for field in ("epochs", "rank", "sample", "batch_size"):
            whole(getattr(self, field), field, 1)
        whole(self.seed, "seed", 0)
        _budget(self.memory)

    def iterate(self, products, right, algorithm):
        shift = self._final_ridge(algorithm)
        sample = max(2, min(self.sample, self.budget() // (_SHARES * 8 * products.n)))
        batch = max(1, min(self.batch_size, math.isqrt(self.budget() // (_SHARES * 8))))
        return eigenpro(
            products,
            right,
            shift,
            self.rank,
            sample,
            batch,
            self.tol,
            self.epochs,
            self.seed,
            self._watcher(),
        )


@renamed("0.5", centres="centers")
class Nystrom(AbstractSolver):
    """A kernel machine on few centers, from one pass over the data: any algorithm at any time, for millions of
    points.

    **Arguments:** `centers`, the number of centers to draw, or the centers themselves (m, d); `memory`: same as
    `ConjugateGradients`; `seed` for drawing. This is an approximation; with all points as centers it is exact.
    """

    centers: Any = 2000
    memory: str | int | None = None
    seed: int = 0
    name = "nystrom"

    def __check_init__(self):
        if plain_array(self.centers, "centers").ndim == 0:
            whole(self.centers, "centers", 1)
        else:
            inputs(self.centers, "centers")
        whole(self.seed, "seed", 0)
        _budget(self.memory)

    def budget(self) -> int:
        """The number of bytes it may use: `memory`, or half of the free memory."""
        return _budget(self.memory)

    def points(self, x: np.ndarray) -> np.ndarray:
        """The centers, given or drawn from `x`."""
        if np.ndim(self.centers) > 0:
            return inputs(self.centers, "centers", x.shape[1:])
        count = min(self.centers, len(x))
        rows = np.random.default_rng(self.seed).choice(len(x), count, replace=False)
        found = np.asarray(x[np.sort(rows)], dtype=np.float64)
        needed = 6 * 8 * count**2
        if needed > self.budget():
            raise MemoryError(
                f"`centers` = {count} needs {needed / 2**30:.1f} GiB, more than `memory`: use at most "
                f"{math.isqrt(self.budget() // 48)} centers."
            )
        return found


def largest_product(products: AbstractProducts) -> float:
    """lambda_max from products alone."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = products.n
    if n <= 2:
        return float(np.linalg.eigvalsh(products.columns(np.arange(n)))[-1])
    operator = LinearOperator(
        (n, n), matvec=lambda v: products.times(v.reshape(n, 1))[:, 0], dtype=np.float64
    )
    return float(eigsh(operator, k=1, which="LA", tol=1e-3, v0=np.ones(n), return_eigenvectors=False)[0])


_BY_NAME = {cls.name: cls for cls in (Direct, ConjugateGradients, Richardson, EigenPro, Nystrom)}


def get_solver(solver: object) -> AbstractSolver | None:
    """The solver of a name or of itself; None for "auto"."""
    if isinstance(solver, AbstractSolver):
        return solver
    if isinstance(solver, str) and solver in _BY_NAME:
        return _BY_NAME[solver]()
    if isinstance(solver, str) and solver == "auto":
        return None
    names = ["auto", *_BY_NAME]
    raise ValueError(
        f"`solver` must be one of {', '.join(map(repr, names))} or an object such as "
        f"nk.dynamics.ConjugateGradients(tol=1e-6); got {shown(solver)}.{nearest(solver, names)}"
    )
