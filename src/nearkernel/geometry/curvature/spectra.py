"""Spectra of operators: top eigenpairs, spectral densities, overlaps of subspaces."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import finite_result, numeric, one_of, positive, real_number, shown, whole
from ..._base.result import Result
from ..._base.status import Status, StatusKind
from ..._base.types import Array, ArrayLike, Params
from ..._run.executor import in_order
from ..._run.precision import in_float64, is_traced
from ...dynamics.features.subspace import subspace_overlap
from ...models.base import AbstractModel
from ...statistics.measuring import Estimate
from .operators import AbstractCurvature, Hessian
from .symmetric import AbstractOperator, one_product

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALL = 64  # up to this size a dense matrix is quicker than Lanczos
_WHICH = {"largest": "LA", "smallest": "SA", "magnitude": "LM"}


class Eigenpairs(Result, eqx.Module):
    r"""Eigenvalues `values` (k,), sorted as requested, their `vectors` (P, k), and `residuals` (k,).

    The residual of a pair is $\lVert A v - \lambda v\rVert$.

    `status`, an `nk.Status`, says how many pairs were found; `ok` is True if all were found.
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    status: Status = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status.ok

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the eigenvalues in their order on Matplotlib's `axes`."""
        from ..._plots.spectra import draw_eigenvalues

        return draw_eigenvalues(self.values, axes)


@in_float64
def top_eigenpairs(
    operator: AbstractOperator, k: int, which: str = "largest", *, tol: float = 1e-8, seed: int = 0
) -> Eigenpairs:
    """The `k` eigenpairs at one end of the spectrum, by Lanczos iteration (ARPACK) with matrix-vector products.

    **Arguments:** `operator`, e.g. `Hessian(...)`; `k`, at most its size; `which`: "largest" (first), "smallest"
    (first) or "magnitude" (largest absolute values first); `tol`, relative accuracy of the values; `seed` of the
    first vector.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    _checked(operator)
    size, k, seed = operator.size, whole(k, "k", 1), whole(seed, "seed", 0)
    one_of(which, "which", tuple(_WHICH))
    positive(tol, "tol")
    if k > size:
        raise ValueError(f"`k` must be at most the number of parameters, {size}; got {k}.")
    status = Status(StatusKind.converged, "converged")
    if size <= _SMALL or k > size // 3:
        values, vectors = np.linalg.eigh(operator.dense())
    else:

        def product(vector):
            return np.asarray(one_product(operator, np.ravel(vector)))

        start = np.random.default_rng(seed).normal(size=size)
        linear = LinearOperator((size, size), matvec=product, dtype=np.float64)
        most = min(size, max(2 * k + 20, 40))
        try:
            values, vectors = eigsh(linear, k, which=_WHICH[which], v0=start, tol=tol, ncv=most, maxiter=100)
        except ArpackNoConvergence as failure:
            values, vectors = failure.eigenvalues, failure.eigenvectors
            message = f"not converged: found {len(values)} of {k} eigenpairs"
            status = Status(StatusKind.not_converged, message)
    order = {"largest": -values, "smallest": values, "magnitude": -np.abs(values)}[which]
    chosen = np.argsort(order)[:k]
    values, vectors = values[chosen], vectors[:, chosen]
    images = operator(vectors) if len(values) else vectors
    return Eigenpairs(values, vectors, np.linalg.norm(images - vectors * values, axis=0), status)


@in_float64
def sharpness(
    model: AbstractModel,
    params: Params,
    x: ArrayLike,
    y: ArrayLike,
    loss: str | Callable = "squared",
    *,
    steps: int = 40,
    seed: int = 0,
) -> Array:
    r"""The largest eigenvalue $\lambda$ of the Hessian of the loss: gradient descent is stable if $\eta \lambda < 2$.

    This is plain gradient descent, `nk.simulate(..., lr_factors=1.0)`: the Hessian has no learning-rate factors.

    **Arguments:** `model`, `params`, `x`, `y`, `loss`: same as `Hessian`; `steps`, the number of Lanczos steps under
    tracing, as in `nk.Record({"sharpness": lambda p: nk.geometry.sharpness(net, p, x, y)})`, which records it along a
    run; otherwise Lanczos iterates to a relative error of 1e-8; `seed` of the first vector.
    """
    hessian = Hessian(model, params, x, y, loss)
    steps = whole(steps, "steps", 1)
    if not is_traced(hessian):
        top = top_eigenpairs(hessian, 1, seed=seed)
        return float(top.values[0]) if len(top.values) else float("nan")
    start = np.random.default_rng(seed).normal(size=hessian.size)
    diagonal, off = _tridiagonal(hessian.product, jnp.asarray(start), min(steps, hessian.size))
    return jnp.linalg.eigvalsh(jnp.diag(diagonal) + jnp.diag(off, 1) + jnp.diag(off, -1))[-1]


def _tridiagonal(product: Callable, start: jax.Array, steps: int) -> tuple[jax.Array, jax.Array]:
    """Lanczos with full reorthogonalization. Where the Krylov space ends early, the rest is cut off and decoupled."""
    from matfree import decomp

    algorithm = decomp.tridiag_sym(steps, materialize=False, reortho="full", custom_vjp=False)
    diagonal, off = algorithm(product, start).J_small
    return jnp.where(jnp.isnan(diagonal), diagonal[0], diagonal), jnp.where(jnp.isnan(off), 0.0, off)


class SpectralDensityResult(Result, eqx.Module):
    """The density of eigenvalues: exact `outliers` (k,), largest magnitude first, and a quadrature of the others.

    **Fields:** `outliers`; `nodes` and `weights`, each (probes, steps), where the weights of each probe sum to 1;
    `size` P.
    """

    outliers: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray
    size: int = eqx.field(static=True)

    def moment(self, order: int) -> Estimate:
        r"""$\mathrm{tr}(A^k) / P$ for k = `order`, with the standard error over probes."""
        order = whole(order, "order", 0, most=1000)
        rest = (self.size - len(self.outliers)) / self.size
        each = np.sum(self.outliers**order) / self.size + rest * np.sum(
            self.weights * self.nodes**order, axis=1
        )
        count = len(finite_result(each, "`order` is"))
        sem = np.std(each, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(())
        return Estimate(mean=np.mean(each), sem=sem, size=count)

    def density(self, grid: ArrayLike, width: float) -> np.ndarray:
        """The density at `grid` (m,): each eigenvalue is a Gaussian of deviation `width`, and the integral is 1."""
        grid, width = numeric(grid, "grid"), positive(width, "width")
        rest = (self.size - len(self.outliers)) / self.size / len(self.nodes)
        nodes = np.concatenate([self.outliers, self.nodes.ravel()])
        weights = np.concatenate([np.full(len(self.outliers), 1 / self.size), rest * self.weights.ravel()])
        bells = np.exp(-0.5 * ((grid[..., None] - nodes) / width) ** 2) / (width * np.sqrt(2 * np.pi))
        return bells @ weights

    def count_above(self, threshold: float) -> float:
        """The (estimated) number of eigenvalues above `threshold`."""
        threshold = real_number(threshold, "threshold")
        rest = (self.size - len(self.outliers)) / len(self.nodes)
        return float(
            np.sum(self.outliers > threshold) + rest * np.sum(self.weights * (self.nodes > threshold))
        )

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the density on a logarithmic axis, and the outliers, on Matplotlib's `axes`."""
        from ..._plots.spectra import draw_density

        ends = [*self.outliers, *self.nodes.ravel()]
        low, high = float(min(ends)), float(max(ends))
        blur = max((high - low) / 150, 1e-300)
        return draw_density(
            lambda grid: self.density(grid, blur), (low, high), axes, outliers=self.outliers, log=True
        )


@in_float64
def spectral_density(
    operator: AbstractOperator, *, outliers: int = 10, probes: int = 5, steps: int = 50, seed: int = 0
) -> SpectralDensityResult:
    """The distribution of all eigenvalues by stochastic Lanczos quadrature.

    The few eigenvalues of largest magnitude are computed exactly and projected out, because they would dominate the
    variance. The rest is estimated with random probes, each of which gives a Gauss quadrature from its `steps`
    Lanczos steps (exact for moments of order below twice the number of steps).

    **Arguments:** `operator`, e.g. `Hessian(...)`; `outliers`, the number of exact eigenvalues; `probes`; `steps` per
    probe; `seed`. It costs about `probes` times `steps` products, and memory for `steps` vectors.
    """
    from scipy.linalg import eigh_tridiagonal

    size = _checked(operator).size
    outliers, probes, steps, seed = (
        whole(outliers, "outliers", 0),
        whole(probes, "probes", 1),
        whole(steps, "steps", 1),
        whole(seed, "seed", 0),
    )
    if outliers > size:
        raise ValueError(f"`outliers` must be at most the number of parameters, {size}; got {outliers}.")
    if size - outliers <= probes:  # as many probes as dimensions: no need for chance
        values = np.linalg.eigvalsh(operator.dense())
        values = values[np.argsort(-np.abs(values))]
        rest = values[None, outliers:] if outliers < size else values[None, -1:]
        return SpectralDensityResult(values[:outliers], rest, np.full(rest.shape, 1 / rest.size), size)
    values, basis = np.zeros(0), np.zeros((size, 0))
    if outliers:
        pairs = top_eigenpairs(operator, outliers, "magnitude", tol=1e-6, seed=seed)
        values, basis = pairs.values, pairs.vectors
    draws = np.random.default_rng([seed, 1]).normal(size=(size, probes))
    draws, _ = np.linalg.qr(draws - basis @ (basis.T @ draws))  # orthogonal probes vary less together
    steps = min(steps, size - len(values))

    def quadrature(start):  # one probe a core or device: XLA has little else to share out here
        return tuple(map(np.asarray, _quadrature(operator, basis, start, steps)))

    rules = list(in_order(quadrature, draws.T))
    spectra = [eigh_tridiagonal(diagonal, off) for diagonal, off in rules]
    nodes, weights = np.stack([lam for lam, _ in spectra]), np.stack([v[0] ** 2 for _, v in spectra])
    return SpectralDensityResult(values, nodes, weights, size)


@jax.jit(static_argnums=3)
def _quadrature(operator: AbstractOperator, basis: jax.Array, start: jax.Array, steps: int):
    def project(vector):
        return vector - basis @ (basis.T @ vector)

    return _tridiagonal(lambda v: project(operator.product(project(v))), start, steps)


def _checked(operator: object) -> AbstractOperator:
    if not isinstance(operator, AbstractOperator):
        raise TypeError(
            f"`operator` must be a curvature such as nk.geometry.Hessian(...); got {type(operator).__name__}."
        )
    return operator


def gradient_share(curvature: AbstractCurvature, vectors: ArrayLike) -> float:
    """The fraction of the squared length of the gradient of `curvature`'s loss in the span of `vectors` (P, k)."""
    if not isinstance(curvature, AbstractCurvature):
        raise TypeError(
            f"`curvature` must be a curvature such as nk.geometry.Hessian(...); got {shown(curvature)}."
        )
    return subspace_overlap(numeric(vectors, "vectors").T, curvature.gradient()[None])
