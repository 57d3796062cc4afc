"""What `solve` returns: records whose failures are values with a message."""

import math
from typing import Any

import equinox as eqx
import numpy as np

from .._check import inputs, listed, numeric, positive, shown
from .._memory import rows_that_fit
from .._precision import in_float64
from .._status import Status, StatusKind
from ._algorithms import SpectralAlgorithm, TimedAlgorithm
from ._factor import AbstractFactor, Cholesky, Spectrum
from ._leave_one_out import LeaveOneOut, left_out, refused
from ._tangent import AbstractTangent


class Prediction(eqx.Module):
    """Outputs at new inputs, in the shape of `y`.

    **Fields:** `terms`, one array an order; `cov`, of `SGD` over its batches and noise, (m, m), or (m, out, m, out) for
    targets (n, out); else None.
    """

    terms: tuple[np.ndarray, ...]
    cov: np.ndarray | None = None

    @property
    def mean(self) -> np.ndarray:
        """The sum of the terms."""
        return sum(self.terms[1:], self.terms[0])

    @property
    def correction(self) -> float | None:
        """|z^I| / |z^F|: the size of the first correction; None at order 0."""
        if len(self.terms) < 2:
            return None
        linear, first = (float(np.linalg.norm(term)) for term in self.terms[:2])
        if first == 0:
            return 0.0
        return first / linear if linear > 0 else np.inf

    @property
    def std(self) -> np.ndarray | None:
        """Root of the diagonal of `cov`, in the shape of the mean."""
        if self.cov is None:
            return None
        shape = self.terms[0].shape
        diagonal = np.diagonal(self.cov.reshape(math.prod(shape), -1)).reshape(shape)
        return np.sqrt(np.maximum(diagonal, 0.0))


class AbstractSolution:
    """What every solution says of its kernel matrix and of how its training ends."""

    algorithm: SpectralAlgorithm
    _tangent: AbstractTangent
    _factor: AbstractFactor
    _x: np.ndarray

    @property
    def rank(self) -> int:
        return self._factor.rank

    @property
    def cutoff(self) -> float:
        return self._factor.cutoff

    @property
    @in_float64
    def lambda_max(self) -> float:
        """The largest eigenvalue of the kernel matrix."""
        if math.isnan(self._factor.lam_max):
            self._factor.lam_max = self._tangent.largest_eigenvalue(self._x)
        return self._factor.lam_max

    @property
    def ok(self) -> bool:
        return self.status.ok

    @property
    def status(self) -> Status:
        """Converged, stopped early, singular, or divergent with the limit named."""
        return status_of(self.algorithm, self._factor)


def moved_to(algorithm: SpectralAlgorithm, time: float) -> SpectralAlgorithm:
    """The algorithm stopped at another `time`."""
    if not isinstance(algorithm, TimedAlgorithm):
        raise ValueError(
            f"`time` has no meaning for {type(algorithm).__name__}: solve with GradientFlow or GradientDescent."
        )
    return algorithm.at(positive(time, "time", zero=True, finite=False))


class Solution(AbstractSolution):
    """A trained linear(ized) model, factored once: predicts at any inputs and any time.

    **Fields:** `algorithm`; `status`, an `nk.Status`, and its `ok`; `rank` of the kernel
    matrix and `cutoff`, the eigenvalue below which a direction counts as null (0 if none was cut); `lambda_max`.
    """

    def __init__(
        self,
        tangent: AbstractTangent,
        x: np.ndarray,
        y: np.ndarray,
        algorithm: SpectralAlgorithm,
        vector: bool,
    ):
        self._tangent, self._x, self._y, self._vector = tangent, x, y, vector
        self.algorithm = algorithm
        self._start = tangent.start(x, y.shape[1])
        self._factor = tangent.factor(x, algorithm)
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

    def _at(self, time: float | None) -> np.ndarray:
        if time is None:
            return self._weights
        algorithm = moved_to(self.algorithm, time)
        self.factor_for(algorithm)
        return self._coefficients(algorithm)

    def factor_for(self, algorithm: SpectralAlgorithm) -> AbstractFactor:
        """The factor that is kept, if it serves `algorithm`; else the eigenvalues, kept from now on."""
        shift = algorithm.shift()
        if not (isinstance(self._factor, Cholesky) and shift is not None and self._factor.shift == shift):
            if not isinstance(self._factor, Spectrum):
                self._factor = self._tangent.spectrum(self._x)
        return self._factor

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
        """Outputs (k, m) or (k, m, out) of the same data trained by each of `algorithms`: rates, times, ridges.

        One set of eigenvalues and one kernel with `x_new` serve all of them.
        """
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        chosen = listed(algorithms, "algorithms", "[nk.Ridge(0.1), nk.Ridge(1.0)]")
        for each in chosen:
            if not isinstance(each, SpectralAlgorithm):
                raise TypeError(
                    f"`algorithms` must be ones that act by a filter, e.g. nk.Ridge(0.1); got {shown(each)}."
                )
        if not chosen:
            raise ValueError("`algorithms` is empty.")
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
        chunk = rows_that_fit(8 * out**2 * len(self._x))
        for at in range(0, len(x_new), chunk):
            part = slice(at, at + chunk)
            moved = self._tangent.cross(x_new[part], self._x) @ weights
            for k in range(len(each)):
                found[k, part] -= self._tangent.unflat(moved[:, k * columns : (k + 1) * columns], out)
        found[diverged] = np.inf
        return found[:, :, 0] if self._vector else found

    @property
    def coefficients(self) -> np.ndarray:
        """a in z(x) = z(x; 0) + k(x, X) a, (n, out); (n * out, 1) for an expanded model."""
        return -self._weights

    @in_float64
    def response(self, x_new: Any) -> np.ndarray:
        """R = k(x_new, X) g(K), (m, n): how the trained outputs at `x_new` depend on the targets."""
        cross = self._tangent.cross(inputs(x_new, "x_new", self._x.shape[1:]), self._x)
        return self._factor.apply(self.algorithm, cross.T).T

    @in_float64
    def residual(self, time: float | None = None) -> np.ndarray:
        """z - y on the training set, in the shape of `y`."""
        fitted = self.predict(self._x, time).mean
        return fitted - (self._y[:, 0] if self._vector else self._y)

    @in_float64
    def leave_one_out(self, time: float | None = None) -> LeaveOneOut:
        r"""What each point would be predicted by training on all others: exactly, without training again.

        For a ridge s the residual of a point that was left out is -[(K + s)^-1 y]_i / [(K + s)^-1]_ii. Every other
        algorithm is a sum of such with complex s (`SpectralAlgorithm.ridges`), so one factorization serves all points:
        twice the work of Cholesky's for a ridge, the eigenvalues of K for finite times. All outputs of a point are left
        out together.

        **Arguments:** `time`, as of `predict`.

        **Returns:** a `LeaveOneOut`: `prediction`, `residual`, `std`, `error`, `stderr`, `log_score`, `error_rate()`.
        """
        algorithm = self.algorithm if time is None else moved_to(self.algorithm, time)
        status = status_of(algorithm, self.factor_for(algorithm))
        if not status.ok:
            raise refused(status.message)
        flat = self._tangent.flat(self._y - self._start)
        residual, variance = left_out(self._factor, algorithm, flat, len(self._x))
        return LeaveOneOut(
            self._y[:, 0] if self._vector else self._y,
            residual.reshape(self._y.shape)[:, 0] if self._vector else residual.reshape(self._y.shape),
            None if variance is None else np.sqrt(variance),
        )

    @in_float64
    def params(self, time: float | None = None) -> Any:
        """The trained parameters of a model (kernels have none)."""
        return self._tangent.params(self._x, self._at(time))


def require_finite_coefficients(found: np.ndarray, residual: np.ndarray) -> None:
    if not np.isfinite(found).all():
        raise ValueError(
            f"`y` differs from the start by up to {np.abs(residual).max():.3g}: coefficients of the kernel overflow. "
            "Scale `y` towards 1, or use a larger ridge."
        )


def end_of(algorithm: SpectralAlgorithm) -> str:
    """The end in words, such as "step 100"."""
    return f"{algorithm.unit if isinstance(algorithm, TimedAlgorithm) else 'time'} {algorithm.end():g}"


def status_at(algorithm: SpectralAlgorithm, lam_max: float) -> Status:
    """How training with a kernel of this largest eigenvalue ends."""
    if lam_max >= algorithm.limit():
        return Status(StatusKind.diverged, algorithm.advice(lam_max))
    if math.isinf(algorithm.end()):
        return Status(StatusKind.converged, "converged")
    return Status(StatusKind.finished, f"stopped at {end_of(algorithm)}")


def status_of(algorithm: SpectralAlgorithm, factor: AbstractFactor) -> Status:
    """The same, and whether the matrix is singular."""
    status = status_at(algorithm, factor.lam_max)
    if not (status.ok and isinstance(factor, Spectrum) and factor.rank < len(factor.vectors)):
        return status
    kind = StatusKind.singular if status.kind is StatusKind.converged else status.kind
    return Status(
        kind,
        f"{status}; kernel of rank {factor.rank} < {len(factor.vectors)}: pseudo-inverse, "
        f"eigenvalues below {factor.cutoff:.3g} count as 0",
    )
