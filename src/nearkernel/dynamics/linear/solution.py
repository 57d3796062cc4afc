"""What `solve` returns at order 0: a linear model, factored once."""

import copy
import math
from typing import Any, Self

import numpy as np

from ..._base.check import inputs, listed, numeric, shown
from ..._run.precision import in_float64
from ...scale.iterate import relative
from ..algorithms.spectral import SpectralAlgorithm
from .base import FactoredSolution, Prediction, moved_to, status_of
from .by_products import ByProducts
from .factor import AbstractFactor, Cholesky, Spectrum
from .kept_cross import KeptCross
from .leave_one_out import LeaveOneOut, left_out, refused
from .solvers import AbstractSolver, Direct
from .tangent import AbstractTangent


class Solution(FactoredSolution):
    """A trained linear(ized) model, factored once: it predicts at any inputs and any time.

    **Fields:** `algorithm`; `status`, an `nk.Status`, and its `ok`; `regime`, the result of `nk.regime`, or None;
    `rank` of the kernel matrix and `cutoff`, the eigenvalue below which a direction counts as null (0 if none was cut);
    `lambda_max`; `coefficients`; `solver`, the solver that found them; for an iterative solver also `iterations` and
    `history`, the relative residual at each iteration.
    """

    def __init__(
        self,
        tangent: AbstractTangent,
        x: np.ndarray,
        y: np.ndarray,
        algorithm: SpectralAlgorithm,
        vector: bool,
        factor: AbstractFactor | None = None,
    ):
        self._tangent, self._x, self._y, self._vector = tangent, x, y, vector
        self.algorithm = algorithm
        self._start = tangent.start(x, y.shape[1])
        self._factor = tangent.factor(x, algorithm) if factor is None else factor
        self._cross = KeptCross(tangent, x)
        self._weights = self._coefficients(algorithm)

    def _coefficients(self, algorithm: SpectralAlgorithm) -> np.ndarray:
        """a = g(K) e, with which every prediction is z(0) - k a."""
        residual = self._tangent.flat(self._start - self._y)
        if math.isinf(algorithm.end()) and self._factor.lam_max >= algorithm.limit():
            return np.full_like(residual, np.inf)
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._factor.apply(algorithm, residual)
        if not self._factor.lam_max >= algorithm.limit():  # beyond, it diverges, and infinity is the answer
            require_finite_coefficients(found, residual)
        return found

    def factor_for(self, algorithm: SpectralAlgorithm) -> AbstractFactor:
        """The stored factor if it serves `algorithm`; otherwise a new one, which is then stored."""
        shift, factor = algorithm.shift(), self._factor
        other = isinstance(factor, Cholesky) and factor.shift != shift
        if other or (isinstance(factor, ByProducts) and shift is None):
            self._factor = self._tangent.factor(self._x, algorithm)
        return self._factor

    def _at(self, time: float | None) -> np.ndarray:
        if time is None:
            return self._weights
        algorithm = moved_to(self.algorithm, time)
        self.factor_for(algorithm)
        return self._coefficients(algorithm)

    @in_float64
    def at(self, moment: float | SpectralAlgorithm) -> Self:
        """The same problem at another time `moment` (steps for gradient descent), or trained with another algorithm.

        Kernels and factors are reused.
        """
        other = moment if isinstance(moment, SpectralAlgorithm) else moved_to(self.algorithm, moment)
        found = copy.copy(self)
        found.algorithm = other
        if isinstance(found.factor_for(other), Spectrum):  # which serves all algorithms
            self._factor = found._factor
        found._weights = found._coefficients(other)
        return found

    @in_float64
    def predict(self, x_new: Any, time: Any = None) -> Prediction:
        """Outputs at `x_new` (m, d), at the end of training or at another `time` (steps for gradient descent).

        For an array of times (t,), outputs are (t, m) or (t, m, out), and the kernel is computed once.
        """
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        if np.ndim(time) == 0:
            return Prediction(terms=(self._outputs(x_new, [self._at(time)])[0],))
        times = numeric(time, "time")
        if times.ndim != 1 or not times.size:
            raise ValueError(f"`time` must be a number or a vector of them; got shape {times.shape}.")
        return Prediction(terms=(self._outputs(x_new, [self._at(float(each)) for each in times]),))

    @in_float64
    def predict_each(self, x_new: Any, algorithms: Any) -> np.ndarray:
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
        if not isinstance(self._factor, Spectrum):
            self._factor = self._tangent.spectrum(self._x)
        return self._outputs(x_new, [self._coefficients(each) for each in chosen])

    def _outputs(self, x_new: np.ndarray, each: list[np.ndarray]) -> np.ndarray:
        """Outputs (k, m) or (k, m, out) of k sets of coefficients; infinite where training diverges."""
        out = self._y.shape[1]
        found = np.stack([self._tangent.start(x_new, out)] * len(each))
        diverged = np.array([np.isinf(weights).any() for weights in each])
        weights = np.concatenate(each, axis=1)
        weights = np.where(np.isinf(weights), 0.0, weights)
        columns = each[0].shape[1]
        for part, cross in self._cross.parts(x_new, 8 * out**2 * len(self._x)):
            moved = cross @ weights
            for k in range(len(each)):
                found[k, part] -= self._tangent.unflat(moved[:, k * columns : (k + 1) * columns], out)
        found[diverged] = np.inf
        return found[:, :, 0] if self._vector else found

    @property
    def coefficients(self) -> np.ndarray:
        r"""The coefficients $a$ in $z(x) = z(x; 0) + k(x, X)\, a$, (n, out); (n * out, 1) for an expanded model."""
        return -self._weights

    @in_float64
    def response(self, x_new: Any) -> np.ndarray:
        r"""The response $R = k(x', X)\, g(K)$, (m, n): how the trained outputs at `x_new` depend on the targets."""
        cross = self._tangent.cross(inputs(x_new, "x_new", self._x.shape[1:]), self._x)
        return self.factor_for(self.algorithm).apply(self.algorithm, cross.T).T

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
        wanted = self._tangent.flat(self._y - self._start)
        return relative(
            self._tangent.flat(self.residual().reshape(self._y.shape)) - shift * self._weights, wanted
        )

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
        if isinstance(self._factor, ByProducts):  # which stays what found the coefficients
            factor = self._tangent.factor(self._x, algorithm)
        else:
            factor = self.factor_for(algorithm)
        status = status_of(algorithm, factor)
        if not status.ok:
            raise refused(status.message)
        flat = self._tangent.flat(self._y - self._start)
        residual, variance = left_out(factor, algorithm, flat, len(self._x))
        return LeaveOneOut(
            self._y[:, 0] if self._vector else self._y,
            residual.reshape(self._y.shape)[:, 0] if self._vector else residual.reshape(self._y.shape),
            None if variance is None else np.sqrt(variance),
        )

    @in_float64
    def params(self, time: float | None = None) -> Any:
        """The trained parameters of a model (kernels have none), at the end of training or at `time`."""
        return self._tangent.params(self._x, self._at(time))


def require_finite_coefficients(found: np.ndarray, residual: np.ndarray) -> None:
    if not np.isfinite(found).all():
        raise ValueError(
            f"`y` differs from the initial outputs by up to {np.abs(residual).max():.3g}: coefficients overflow. "
            "Scale `y` towards 1, or use a larger ridge."
        )
