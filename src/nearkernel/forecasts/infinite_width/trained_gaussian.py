r"""The law of trained outputs over initializations, on which forecasts and estimators rest.

With K the covariance at initialization, T the kernel of training and R = T_BA g(T_AA),

    mean = R y,    cov = K_BB - R K_AB - K_BA R^T + R (K_AA + noise) R^T.

`noise` is the variance of targets that differ from network to network. With T = K and g = 1/(K + noise) it is the
posterior of a Gaussian process: sampling, then optimizing, is Bayes.
"""

import functools
from typing import NamedTuple

import numpy as np
import scipy.linalg

from ..._run.executor import by_columns
from ..._run.memory import rows_that_fit
from ..._run.precision import in_float64
from ..._run.unlocked import multiplied, solved
from ...dynamics.algorithms.spectral import GradientFlow, SpectralAlgorithm
from ...dynamics.linear.factor import AbstractFactor, Cholesky, Spectrum, spectrum
from ...dynamics.linear.solution import linear_solution
from ..outputs.kernel_pair import KernelPair


class TrainedLaw:
    """Kernels and factors of the training set: made once, shared by all times and new inputs.

    `solution` is that of the mean. With `together`, both matrices are made at once where that is cheaper.
    """

    @in_float64
    def __init__(
        self,
        pair: KernelPair,
        x: np.ndarray,
        y: np.ndarray,
        algorithm: SpectralAlgorithm,
        vector: bool,
        *,
        noise: float = 0.0,
        together: bool = False,
    ):
        self.pair, self.x, self.y, self.vector, self.noise = pair, x, y, vector, noise
        tangent, start = pair.held(x) if together else (pair.tangent(), None)
        if start is not None:
            self.start = start
        self.solution = linear_solution(tangent, x, y, algorithm, vector)

    @functools.cached_property
    def start(self) -> np.ndarray:
        """Covariance of the outputs at `x` before training, made where a variance is first asked for."""
        return self.pair.start.entries(self.x, None)

    @functools.cached_property
    def half_start(self) -> np.ndarray:
        """The lower triangle of `start` + noise, with half of its diagonal: (n, n), of which the rest is not read."""
        found = self.start.copy()
        found[np.diag_indices_from(found)] = 0.5 * (np.diagonal(self.start) + self.noise)
        return found

    def factor(self, algorithm: SpectralAlgorithm) -> AbstractFactor:
        """Cholesky where it serves, eigenvalues for times that need them."""
        return self.solution.factor_for(algorithm)

    def is_posterior(self, algorithm: SpectralAlgorithm) -> bool:
        """Whether training ends in conditioning: R (K_AA + noise) = K_BA."""
        return self.pair.same and algorithm.shift() == self.noise

    @functools.cached_property
    def root(self) -> "_Root":
        """Of the covariance at initialization, in the eigenvectors of the training kernel."""
        factor = self.factor(GradientFlow(0.0))
        assert isinstance(factor, Spectrum)
        found = factor.vectors.T @ (self.start @ factor.vectors)
        found[np.diag_indices_from(found)] += self.noise
        return _Root(found)

    @in_float64
    def variance(self, x_new: np.ndarray) -> np.ndarray:
        """(m,), in bounded memory, of the algorithm of the solution."""
        chunk = rows_that_fit(4 * 8 * len(self.x))
        parts = [NewPoints(self, x_new[at : at + chunk]) for at in range(0, len(x_new), chunk)]
        algorithm = self.solution.algorithm
        return np.concatenate([part.variance(algorithm, part.response(algorithm)) for part in parts])


class _Root:
    """L with L L^T = S for a positive semidefinite S: triangular if it can be."""

    def __init__(self, matrix: np.ndarray):
        self.lower, info = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1)
        self.spectrum = spectrum(matrix) if info else None

    def times(self, left: np.ndarray) -> np.ndarray:
        """left L."""
        if self.spectrum is None:
            product = functools.partial(multiplied, self.lower, transposed=True)
            return by_columns(product, left.T).T
        return left @ (self.spectrum.vectors * np.sqrt(self.spectrum.lam))

    def whiten(self, left: np.ndarray) -> np.ndarray:
        """left L^-T."""
        if self.spectrum is None:
            return by_columns(functools.partial(solved, self.lower), left.T).T
        return left @ (self.spectrum.vectors / np.sqrt(self.spectrum.lam))


class Response(NamedTuple):
    """R, (m, n), or R V in the eigenvectors V of the training kernel, where a time is a row of numbers."""

    matrix: np.ndarray
    basis: Spectrum | None


class NewPoints:
    """Kernels between new inputs and the training set, made when first needed."""

    def __init__(self, law: TrainedLaw, x_new: np.ndarray):
        self.law, self.x_new = law, x_new
        self._rotated_train: np.ndarray | None = None
        self._completed: tuple[np.ndarray, np.ndarray] | None = None

    @functools.cached_property
    def _both(self) -> tuple[np.ndarray, np.ndarray]:
        return self.law.pair.both(self.x_new, self.law.x)

    @property
    def start(self) -> np.ndarray:
        """K_BA."""
        return self._both[0]

    @property
    def train(self) -> np.ndarray:
        """T_BA."""
        return self._both[1]

    @functools.cached_property
    def prior(self) -> np.ndarray:
        """Covariance at initialization, K_BB."""
        return self.law.pair.both(self.x_new, None)[0]  # both kernels: compiled already

    def response(self, algorithm: SpectralAlgorithm) -> Response:
        """R = T_BA g(T_AA)."""
        factor = self.law.factor(algorithm)
        if isinstance(factor, Cholesky):
            return Response(factor.apply(algorithm, self.train.T).T, None)
        assert isinstance(factor, Spectrum)
        with np.errstate(over="ignore", invalid="ignore"):
            return Response(self._rotated(factor) * algorithm.filter(factor.lam), factor)

    def mean(self, response: Response | None) -> np.ndarray:
        y = self.law.y
        if response is None:
            return np.full((len(self.x_new), y.shape[1]), np.inf)
        return response.matrix @ (y if response.basis is None else response.basis.vectors.T @ y)

    def covariance(self, algorithm: SpectralAlgorithm, response: Response | None) -> np.ndarray:
        """(m, m)."""
        if response is None:
            return np.full_like(self.prior, np.inf)
        if response.basis is None:
            moving = by_columns(
                lambda pull: response.matrix @ pull, self._half_pull(algorithm, response.matrix)
            )
            moving += moving.T  # NumPy copies where memory overlaps
            moving += self.prior
            return moving
        # Completing the square: what no training changes, plus a square that is zero for the best response.
        from_start, fixed = self._square(response.basis)
        excess = self.law.root.times(response.matrix) - from_start
        return fixed + excess @ excess.T

    def variance(self, algorithm: SpectralAlgorithm, response: Response | None) -> np.ndarray:
        """(m,), the diagonal of `covariance` without the matrix."""
        prior = self.law.pair.start.diag(self.x_new)
        if response is None:
            return np.full_like(prior, np.inf)
        if response.basis is None:
            return prior + 2.0 * np.einsum(
                "ij,ji->i", response.matrix, self._half_pull(algorithm, response.matrix)
            )
        from_start = self.law.root.whiten(self.start @ response.basis.vectors)
        excess = self.law.root.times(response.matrix) - from_start
        return prior - (from_start**2).sum(axis=1) + (excess**2).sum(axis=1)

    def _half_pull(self, algorithm: SpectralAlgorithm, response: np.ndarray) -> np.ndarray:
        """P, (n, m), so that R P and its transpose are what training adds to the covariance.

        R (K_AA + noise) R^T - R K_AB - K_BA R^T, where half of a symmetric matrix is a triangular one.
        """
        if self.law.is_posterior(algorithm):
            return -0.5 * self.start.T
        found = by_columns(functools.partial(multiplied, self.law.half_start), response.T)
        found -= self.start.T
        return found

    def _rotated(self, factor: Spectrum) -> np.ndarray:
        """T_BA V, once for all times."""
        if self._rotated_train is None:
            self._rotated_train = self.train @ factor.vectors
        return self._rotated_train

    def _square(self, factor: Spectrum) -> tuple[np.ndarray, np.ndarray]:
        """L^-1 K_AB and K_BB - K_BA K_AA^-1 K_AB, once for all times."""
        if self._completed is None:
            from_start = self.law.root.whiten(self.start @ factor.vectors)
            self._completed = from_start, self.prior - from_start @ from_start.T
        return self._completed
