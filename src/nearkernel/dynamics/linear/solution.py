"""What `solve` returns at order 0: a linear model, factored once."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from ..._base.check import inputs, listed, numeric, shown
from ..._base.types import ArrayLike
from ..._run.memory import rows_that_fit
from ..._run.precision import in_float64
from ...models.base import Params
from ...scale.iterate import relative
from ..algorithms.spectral import SpectralAlgorithm
from .base import FactoredSolution, Prediction, moved_to, status_of
from .by_products import ByProducts
from .factor import AbstractFactor, Cholesky, Spectrum
from .leave_one_out import LeaveOneOut, left_out, refused
from .solvers import AbstractSolver, Direct
from .tangent import AbstractTangent

_KEPT = 2**28  # bytes of a kernel with new inputs that are kept at most


class KeptCross:
    """k(x_new, x), kept for the last `x_new` if it is not large: for all times at which one asks for them."""

    def __init__(self, tangent: AbstractTangent, x: np.ndarray):
        self._tangent, self._x = tangent, x
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def parts(self, x_new: np.ndarray, row_bytes: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows and the kernel of these rows, in pieces that fit into memory."""
        # Read once: another thread may put its own in place at any time.
        last = self._last
        if last is not None and np.array_equal(last[0], x_new):
            yield slice(None), last[1]
            return
        chunk = rows_that_fit(row_bytes)
        for at in range(0, len(x_new), chunk):
            part = slice(at, at + chunk)
            cross = self._tangent.cross(x_new[part], self._x)
            if len(x_new) <= chunk and cross.nbytes <= _KEPT:
                self._last = x_new.copy(), cross
            yield part, cross


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solution(FactoredSolution):
    """A trained linear(ized) model, factored once: it predicts at any inputs and any time.

    **Fields:** `algorithm`; `status`, an `nk.Status`, and its `ok`; `regime`, the result of `nk.regime`, or None;
    `rank` of the kernel matrix and `cutoff`, the eigenvalue below which a direction counts as null (0 if none was cut);
    `lambda_max`; `coefficients`; `solver`, the solver that found them; for an iterative solver also `iterations` and
    `history`, the relative residual at each iteration.
    """

    _start: np.ndarray
    _cross: KeptCross
    _weights: np.ndarray

    @property
    def _residual(self) -> np.ndarray:
        """z(0) - y on the training set, as right-hand sides."""
        return self._tangent.flat(self._start - self._y)

    def factor_for(self, algorithm: SpectralAlgorithm) -> AbstractFactor:
        """The stored factor if it serves `algorithm`, else another; eigenvalues, which serve all times, are kept."""
        shift, factor = algorithm.shift(), self._factor
        if isinstance(factor, Spectrum):
            return factor
        if shift is None:
            return self._spectrum
        serves = isinstance(factor, ByProducts) or (isinstance(factor, Cholesky) and factor.shift == shift)
        return factor if serves else self._tangent.factor(self._x, algorithm)

    def _coefficients(self, algorithm: SpectralAlgorithm) -> np.ndarray:
        """Those of another algorithm on the same problem."""
        return _solved(self.factor_for(algorithm), algorithm, self._residual)[1]

    def _at(self, time: ArrayLike | None) -> np.ndarray:
        return self._weights if time is None else self._coefficients(moved_to(self.algorithm, time))

    @in_float64
    def at(self, moment: float | SpectralAlgorithm) -> Self:
        """The same problem at another time `moment` (steps for gradient descent), or trained with another algorithm.

        Kernels and factors are reused.
        """
        other = moment if isinstance(moment, SpectralAlgorithm) else moved_to(self.algorithm, moment)
        factor, weights = _solved(self.factor_for(other), other, self._residual)
        return dataclasses.replace(self, algorithm=other, _factor=factor, _weights=weights)

    @in_float64
    def predict(self, x_new: ArrayLike, time: ArrayLike | None = None) -> Prediction:
        """Outputs at `x_new` (m, d), at the end of training or at another `time` (steps for gradient descent).

        For an array of times (t,), outputs are (t, m) or (t, m, out), and the kernel is computed once.
        """
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        if time is None or np.ndim(time) == 0:
            return Prediction(terms=(self._outputs(x_new, [self._at(time)])[0],))
        times = numeric(time, "time")
        if times.ndim != 1 or not times.size:
            raise ValueError(f"`time` must be a number or a vector of them; got shape {times.shape}.")
        return Prediction(terms=(self._outputs(x_new, [self._at(float(each)) for each in times]),))

    @in_float64
    def predict_each(self, x_new: ArrayLike, algorithms: Sequence[SpectralAlgorithm]) -> np.ndarray:
        """Outputs (k, m) or (k, m, out) of the same data trained with each of `algorithms` (learning rates, times,
        ridges).

        One eigendecomposition and one kernel with `x_new` serve all of them.
        """
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        chosen = listed(algorithms, "algorithms", "[nk.Ridge(0.1), nk.Ridge(1.0)]")
        for each in chosen:
            if not isinstance(each, SpectralAlgorithm):
                raise TypeError(
                    f"`algorithms` must be algorithms with a spectral filter, e.g. nk.Ridge(0.1); got {shown(each)}."
                )
        if not chosen:
            raise ValueError("`algorithms` is empty: give at least one.")
        weights = [_solved(self._spectrum, each, self._residual)[1] for each in chosen]
        return self._outputs(x_new, weights)

    def _outputs(self, x_new: np.ndarray, weights: list[np.ndarray]) -> np.ndarray:
        """Outputs (k, m) or (k, m, out) of k sets of coefficients; infinite where training diverges."""
        out, columns = self._y.shape[1], weights[0].shape[1]
        outputs = np.stack([self._tangent.start(x_new, out)] * len(weights))
        side_by_side = np.concatenate(weights, axis=1)
        diverged = np.array([np.isinf(each).any() for each in weights])
        side_by_side = np.where(np.isinf(side_by_side), 0.0, side_by_side)
        for part, cross in self._cross.parts(x_new, 8 * out**2 * len(self._x)):
            moved = cross @ side_by_side
            for k in range(len(weights)):
                outputs[k, part] -= self._tangent.unflat(moved[:, k * columns : (k + 1) * columns], out)
        outputs[diverged] = np.inf
        return outputs[:, :, 0] if self._vector else outputs

    @property
    def coefficients(self) -> np.ndarray:
        r"""The coefficients $a$ in $z(x) = z(x; 0) + k(x, X)\, a$, (n, out); (n * out, 1) for an expanded model."""
        return -self._weights

    @in_float64
    def response(self, x_new: ArrayLike) -> np.ndarray:
        r"""The response $R = k(x', X)\, g(K)$, (m, n): how the trained outputs at `x_new` depend on the targets."""
        cross = self._tangent.cross(inputs(x_new, "x_new", self._x.shape[1:]), self._x)
        return self._factor.apply(self.algorithm, cross.T).T

    @property
    def solver(self) -> AbstractSolver:
        return self._factor.solver if isinstance(self._factor, ByProducts) else Direct()

    @property
    def iterations(self) -> int:
        return len(self.history)

    @property
    def history(self) -> np.ndarray:
        return self._factor.run.history if isinstance(self._factor, ByProducts) else np.zeros(0)

    @property
    @in_float64
    def relative_residual(self) -> float:
        r"""The residual $\lVert y - (K + s) a\rVert / \lVert y\rVert$ of the worst output, with the ridge $s$.

        Only for algorithms that solve $(K + s)\, a = y$.
        """
        shift = self.algorithm.shift()
        if shift is None:
            raise ValueError(
                f"`relative_residual` is defined for (K + ridge) a = y, which {self.algorithm!r} does not solve."
            )
        if isinstance(self._factor, ByProducts):
            return self._factor.run.residual
        left = self._tangent.flat(self.residual().reshape(self._y.shape))
        return relative(left - shift * self._weights, self._residual)

    @in_float64
    def leave_one_out(self, time: float | None = None) -> LeaveOneOut:
        """Exact leave-one-out predictions: each point predicted by training on all others, without retraining.

        For a ridge $s$ the residual of a left-out point is $-[(K + s)^{-1} y]_i / [(K + s)^{-1}]_{ii}$. Every other
        algorithm is a sum of such terms with complex $s$ (`SpectralAlgorithm.ridges`), so one factorization serves
        all points: twice the work of a Cholesky factorization for a ridge, the eigendecomposition of $K$ for finite
        times. All outputs of a point are left out together.

        **Arguments:** `time`: same as `predict`.

        **Returns:** a `LeaveOneOut`: `predictions`, `residuals`, `std`, `error`, `sem`, `log_score`, `error_rate()`.
        """
        algorithm = self.algorithm if time is None else moved_to(self.algorithm, time)
        factor = self.factor_for(algorithm)
        if isinstance(factor, ByProducts):
            factor = self._tangent.factor(self._x, algorithm)
        status = status_of(algorithm, factor)
        if not status.ok:
            raise refused(status.message)
        residual, variance = left_out(factor, algorithm, -self._residual, len(self._x))
        return LeaveOneOut(
            y=self._shaped(self._y),
            residuals=self._shaped(residual.reshape(self._y.shape)),
            std=None if variance is None else np.sqrt(variance),
        )

    @in_float64
    def params(self, time: float | None = None) -> Params:
        """The trained parameters of a model (kernels have none), at the end of training or at `time`."""
        return self._tangent.params(self._x, self._at(time))


def linear_solution(
    tangent: AbstractTangent,
    x: np.ndarray,
    y: np.ndarray,
    algorithm: SpectralAlgorithm,
    vector: bool,
    factor: AbstractFactor | None = None,
) -> Solution:
    """Trains on `x` and `y` (n, out), by a `factor` of the kernel matrix if one is at hand."""
    start = tangent.start(x, y.shape[1])
    factor = tangent.factor(x, algorithm) if factor is None else factor
    factor, weights = _solved(factor, algorithm, tangent.flat(start - y))
    return Solution(
        algorithm=algorithm,
        _x=x,
        _y=y,
        _vector=vector,
        _tangent=tangent,
        _factor=factor,
        _start=start,
        _cross=KeptCross(tangent, x),
        _weights=weights,
    )


def _solved(
    factor: AbstractFactor, algorithm: SpectralAlgorithm, residual: np.ndarray
) -> tuple[AbstractFactor, np.ndarray]:
    """The factor and a = g(K) e, with which every prediction is z(0) - k a."""
    unstable = factor.lam_max >= algorithm.limit()
    if math.isinf(algorithm.end()) and unstable:
        return factor, np.full_like(residual, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        factor, coefficients = factor.solved(algorithm, residual)
    # Beyond the limit training diverges, and infinity is the answer.
    if not unstable:
        require_finite_coefficients(coefficients, residual)
    return factor, coefficients


def require_finite_coefficients(coefficients: np.ndarray, residual: np.ndarray) -> None:
    if not np.isfinite(coefficients).all():
        raise ValueError(
            f"`y` differs from the initial outputs by up to {np.abs(residual).max():.3g}: coefficients overflow. "
            "Scale `y` towards 1, or use a larger ridge."
        )
